"""Answers of a memory: readout, weights, score and explanation, against plain sums."""

import json
import math
from typing import Any

import numpy as np
import pytest

import svmem
from svmem.errors import InvalidInput
from svmem.kernels import RBF, Kernel, Laplacian
from svmem.memory import Memory

pytestmark = [pytest.mark.usefixtures("compiled_memory"), pytest.mark.timeout(600, func_only=True)]

KERNELS = [RBF(2.0), Laplacian(1.5)]
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def made(kernel: Kernel = KERNELS[0], n: int = 60) -> tuple[Memory, np.ndarray]:
    """Return a memory with some equal keys, and queries."""
    random = np.random.default_rng(0)
    memory = Memory(svmem.Problem(kernel, C=0.1), key_dim=3, value_dim=2)
    keys = random.standard_normal((n, 3))
    keys[5] = keys[6] = keys[7]
    memory.add(keys, random.standard_normal((n, 2)), owners=[f"p{i % 4}" if i % 5 else None for i in range(n)])
    return memory, 1.5 * random.standard_normal((30, 3))


def kappa(x: Any, y: Any, kernel: Kernel) -> float:
    if isinstance(kernel, RBF):
        return math.exp(-math.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / kernel.sigma**2)
    assert isinstance(kernel, Laplacian)
    return math.exp(-math.fsum(abs(a - b) for a, b in zip(x, y, strict=True)) / kernel.sigma)


def plain_weights(memory: Memory, query: np.ndarray) -> dict[int, float]:
    """Return the weight of each active record by id."""
    state = memory.solution
    raw = {
        int(i): alpha * kappa(query, key, memory.problem.kernel)
        for i, alpha, key in zip(state.ids, state.alpha, memory.keys, strict=True)
        if alpha > 0
    }
    whole = math.fsum(raw.values())
    return {i: w / whole for i, w in raw.items()}


@kernels
def test_the_readout_is_the_mean_of_the_values_under_alpha_kappa(kernel: Kernel) -> None:
    memory, queries = made(kernel)
    values = dict(zip(memory.ids, memory.values, strict=True))
    for query, answer in zip(queries, memory.read(queries), strict=True):
        weights = plain_weights(memory, query)
        expected = [math.fsum(w * values[i][c] for i, w in weights.items()) for c in range(2)]
        np.testing.assert_allclose(answer, expected, rtol=0, atol=2e-14)


@kernels
def test_the_score_is_positive_inside_zero_on_the_margin_and_negative_outside(kernel: Kernel) -> None:
    memory, queries = made(kernel)
    state = memory.solution
    for query, got in zip(queries, memory.score(queries), strict=True):
        f = math.fsum(a * kappa(query, key, kernel) for a, key in zip(state.alpha, memory.keys, strict=True))
        assert got == pytest.approx(2 * (f - 0.5 - state.offset), abs=1e-15)
    own = dict(zip(memory.ids, memory.score(memory.keys), strict=True))
    assert all(own[i] > 0 for i in state.reserve.tolist())
    assert all(abs(own[i]) < 1e-8 for i in state.margin.tolist())
    assert all(own[i] < 1e-8 for i in state.bound.tolist())
    assert memory.score(np.full((1, 3), 1e9))[0] == 2 * (-0.5 - state.offset)


@kernels
def test_weights_come_with_ids_heaviest_first(kernel: Kernel) -> None:
    memory, queries = made(kernel)
    out, ids, weights = memory.read(queries, return_weights=True)
    assert out.tobytes() == memory.read(queries).tobytes()
    assert ids.shape == weights.shape == (30, np.count_nonzero(memory.solution.alpha))
    for query, row, weight in zip(queries, ids, weights, strict=True):
        expected = plain_weights(memory, query)
        assert set(row.tolist()) == set(expected)
        np.testing.assert_allclose(weight, [expected[i] for i in row.tolist()], rtol=1e-12)
        assert (np.diff(weight) <= 0).all()


@kernels
@pytest.mark.parametrize("k", [1, 3, 17, 59, 60, 10_000])
def test_the_top_k_are_rescaled(kernel: Kernel, k: int) -> None:
    memory, queries = made(kernel)
    out, ids, weights = memory.read(queries, top_k=k, return_weights=True)
    active = np.count_nonzero(memory.solution.alpha)
    assert ids.shape == (30, min(k, active))
    assert memory.read(queries, top_k=k).tobytes() == out.tobytes()
    values = dict(zip(memory.ids, memory.values, strict=True))
    for query, answer, row, weight in zip(queries, out, ids, weights, strict=True):
        every = plain_weights(memory, query)
        best = sorted(every.values(), reverse=True)[: min(k, active)]
        np.testing.assert_allclose(weight, np.array(best) / math.fsum(best), rtol=1e-12)
        expected = sum(w * values[i] for i, w in zip(row.tolist(), weight, strict=True))
        np.testing.assert_allclose(answer, expected, atol=2e-14)
    if k >= active:
        assert out.tobytes() == memory.read(queries).tobytes()


def test_a_query_has_the_same_bits_alone_and_in_a_batch_of_300():
    memory, _ = made()
    queries = np.random.default_rng(4).standard_normal((300, 3))
    read, score = memory.read(queries), memory.score(queries)
    for row in range(0, 300, 23):
        assert memory.read(queries[row : row + 1])[0].tobytes() == read[row].tobytes()
        assert memory.score(queries[row : row + 1])[0] == score[row]
    strided = np.asfortranarray(queries)[::2]
    assert memory.read(strided).tobytes() == read[::2].tobytes()
    assert memory.read(queries.tolist()).tobytes() == read.tobytes()


def test_history_leaves_no_trace_in_an_answer():
    memory, queries = made()
    random = np.random.default_rng(9)
    order = random.permutation(60)
    other = Memory(memory.problem, 3, 2)
    ids = []
    for i in order:
        other.add(random.standard_normal((1, 3)), [[9.0, 9.0]])
        ids += other.add(memory.keys[i : i + 1], memory.values[i : i + 1])
    other.forget(ids=[i for i in other.ids if i not in set(ids)])
    assert other.read(queries).tobytes() == memory.read(queries).tobytes()
    assert other.read(queries, top_k=3).tobytes() == memory.read(queries, top_k=3).tobytes()
    assert other.score(queries).tobytes() == memory.score(queries).tobytes()


def test_while_collecting_every_record_answers():
    memory = Memory(svmem.Problem(RBF(1.0), C=0.1), 1, 1)
    memory.add([[0.0], [2.0]], [[0.0], [1.0]])
    assert memory.read([[1.0]])[0, 0] == 0.5
    assert memory.read([[-1e200], [1e200]]).tolist() == [[0.0], [1.0]]
    assert [share.zone for share in memory.explain([1.0]).shares] == ["bound", "bound"]


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        ([0.0, 0.0, 0.0], r"queries must have shape \(rows, 3\), got \(3,\); pass a single row as \[queries\]"),
        ([[0.0, 0.0]], r"got \(1, 2\)"),
        (0.0, r"got \(\)"),
        ([[0.0, 0.0, float("nan")]], "finite"),
        ([["a", "b", "c"]], "real numbers"),
    ],
)
def test_bad_queries_are_refused(queries: Any, words: str) -> None:
    memory, _ = made()
    with pytest.raises(InvalidInput, match=words):
        memory.read(queries)
    with pytest.raises(InvalidInput):
        memory.score(queries)


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "3"])
def test_top_k_is_a_count(k: Any) -> None:
    memory, queries = made()
    with pytest.raises(InvalidInput, match="top_k must be a whole number"):
        memory.read(queries, top_k=k)
    with pytest.raises(InvalidInput, match="top_k must be a whole number"):
        memory.explain(queries[0], top_k=k)


@kernels
def test_an_explanation_names_the_records_behind_the_answer(kernel: Kernel) -> None:
    memory, queries = made(kernel)
    state, query = memory.solution, queries[0]
    keys, owners = dict(zip(memory.ids, memory.keys, strict=True)), dict(zip(memory.ids, memory.owners, strict=True))
    found = memory.explain(query, top_k=4)
    _, ids, weights = memory.read(query[None], return_weights=True)
    assert found.output == tuple(memory.read(query[None])[0])  # of all active records, not of the four
    assert found.score == memory.score(query[None])[0]
    assert [share.id for share in found.shares] == ids[0, :4].tolist()
    assert [share.weight for share in found.shares] == weights[0, :4].tolist()
    assert found.active == len(ids[0])
    assert found.rest == pytest.approx(weights[0, 4:].sum())
    for share in found.shares:
        assert share.owner == owners[share.id]
        assert share.kernel == pytest.approx(kappa(query, keys[share.id], kernel), rel=1e-14)
        assert isinstance(kernel, RBF | Laplacian)
        power = 2 if isinstance(kernel, RBF) else 1
        assert math.exp(-((share.distance / kernel.sigma) ** power)) == pytest.approx(share.kernel, rel=1e-13)
        assert share.zone == ("margin" if share.id in state.margin else "bound")
    assert memory.explain(query[None], top_k=4) == found
    assert memory.explain(query.tolist(), top_k=1000).rest == 0
    data = json.loads(json.dumps(found.to_json()))
    assert data["shares"][0]["id"] == found.shares[0].id


def test_an_explanation_prints_as_a_table():
    memory, queries = made()
    text = str(memory.explain(queries[0], top_k=3)).splitlines()
    assert text[0].startswith("answer (")
    assert text[1].split() == ["id", "owner", "weight", "kernel", "distance", "zone"]
    assert len({len(line) for line in text[1:5]}) == 1
    assert text[5].endswith(f"carry {memory.explain(queries[0], top_k=3).rest:.4f}")


def test_an_explanation_of_a_far_query_has_numbers():
    memory, _ = made()
    found = memory.explain([1e200, 0.0, -1e200])
    assert found.shares[0].weight == 1.0
    assert found.shares[0].kernel == 0.0
    assert found.shares[0].distance == pytest.approx(math.sqrt(2) * 1e200)


@pytest.mark.parametrize("query", [[[0.0] * 3] * 2, [0.0, 0.0], [], [[[0.0] * 3]], "abc"])
def test_an_explanation_takes_one_query(query: Any) -> None:
    memory, _ = made()
    with pytest.raises(InvalidInput):
        memory.explain(query)
