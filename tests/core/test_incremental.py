"""Adding and forgetting through a memory, on every named case: always the bits of the cold solve."""

import numpy as np
import pytest

from tests.cases import ALL, Case, Step, truth
from tests.cases.history import History, filled
from tests.cases.truth import VANISHING
from tests.oracles import float_gram

pytestmark = [pytest.mark.usefixtures("compiled_memory"), pytest.mark.timeout(120, func_only=True)]

named = pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
steps = pytest.mark.parametrize(
    ("case", "step"), [pytest.param(c, s, id=f"{c.name}-{i}") for c in ALL for i, s in enumerate(c.steps)]
)


@named
def test_adding_one_by_one_gives_the_bits_of_the_cold_solve(case: Case) -> None:
    history = History(case.setting, case.keys.shape[1])
    for number, key in enumerate(case.keys):
        history.add(key)
        if number < 3 or number % 7 == 0:
            history.check(seed=1)
    history.check()


@named
def test_forgetting_one_by_one_gives_the_bits_of_the_cold_solve(case: Case) -> None:
    history = filled(case)
    for number in np.random.default_rng(5).permutation(sorted(history.records)):
        history.forget([int(number)])
        if len(history.records) < 4 or len(history.records) % 7 == 0:
            history.check(seed=1)
    assert len(history.memory) == 0


@named
def test_every_single_record_can_be_forgotten_and_added_back(case: Case) -> None:
    history = filled(case)
    for number in sorted(history.records)[:: max(1, len(case.keys) // 8)]:
        record = history.records[number]
        history.forget([number])
        history.check(seed=1)
        history.add(np.array(record.key))
        history.check(seed=1)


@named
def test_forgetting_a_group_equals_forgetting_one_by_one(case: Case) -> None:
    together, apart = filled(case), filled(case)
    gone = [int(i) for i in np.random.default_rng(6).permutation(sorted(together.records))[: (len(case.keys) + 1) // 2]]
    together.forget(gone)
    for i in gone:
        apart.forget([i])
    assert together.memory.digest() == apart.memory.digest()
    together.check()


@named
def test_adding_and_forgetting_a_group_restores_the_digest(case: Case) -> None:
    history = filled(case)
    before = history.memory.digest()
    history.forget(history.add(np.concatenate([case.keys[:5], case.keys[:3], np.full((1, history.d), 0.4375)])))
    assert history.memory.digest() == before
    history.check()


@steps
def test_known_steps_give_their_known_answers(case: Case, step: Step) -> None:
    history = filled(case)
    if step.forget is not None:
        history.forget([i for i, r in history.records.items() if (np.array(r.key) == step.forget).all(axis=1).any()])
    if step.add is not None:
        history.add(step.add)
    solution = history.memory.solution
    history.check()
    if step.alpha is not None:
        assert solution.alpha == pytest.approx(step.alpha, abs=step.digits)
    if step.alpha_at is not None:
        place, value = step.alpha_at
        after = Case("after", "", history.keys, case.setting)
        explained = abs(truth(after).alpha64[place] - truth(after, VANISHING).alpha64[place])
        assert abs(solution.alpha[place] - value) <= step.digits + explained
    if step.level is not None:
        f = float_gram(history.keys, case.setting) @ solution.alpha
        chosen = solution.margin if len(solution.margin) else solution.bound
        assert f[np.isin(solution.ids, chosen)].max() == pytest.approx(step.level, abs=1e-9)


@named
def test_three_rounds_of_adding_and_forgetting_the_same_key(case: Case) -> None:
    history = filled(case)
    before = history.memory.digest()
    for key in (case.keys[0], case.keys.mean(axis=0) if np.abs(case.keys).max() < 1e100 else case.keys[-1]):
        if case.setting.kernel == "cosine":
            key = key + 0.4375  # never the zero key
        for _ in range(3):
            ids = history.add(key)
            history.check(seed=1)
            history.forget(ids)
            assert history.memory.digest() == before
    history.check()
