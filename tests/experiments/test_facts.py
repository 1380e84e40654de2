"""The sequences of the recall experiment can be answered, and their answers are right."""

import numpy as np
import pytest
import torch

from experiments.facts import BLANK, KEYS, NONE, VALUES, Task, episode

TASKS = [Task("pairs", 8), Task("copy", 8, 40), Task("distinct", 8, 40), Task("delete", 8)]


def made(task, size=20):
    return episode(task, size, np.random.default_rng(0))


def answer(keys, values, key):
    """What one who reads the tokens in order knows of a key in the end."""
    known = None
    for one, value in zip(keys, values, strict=True):
        if one == key and value != BLANK:
            known = value
    return known


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_question_is_answered_by_the_last_token_before_it_with_its_key(task):
    given = made(task)
    for keys, values, targets in zip(given.key.tolist(), given.value.tolist(), given.target.tolist(), strict=True):
        asked = [place for place, target in enumerate(targets) if target >= 0]
        assert len(asked) == task.facts
        assert len({keys[place] for place in asked}) == task.facts
        for place in asked:
            assert values[place] == BLANK
            assert targets[place] == answer(keys[:place], values[:place], keys[place])


def test_half_of_the_facts_are_deleted_after_they_came_and_no_other_answer_is_none():
    given = made(Task("delete", 8))
    assert ((given.target == NONE).sum(1) == 4).all()
    for keys, values in zip(given.key.tolist(), given.value.tolist(), strict=True):
        for place, value in enumerate(values):
            if value == NONE:
                assert keys[place] in keys[:place]
    for task in TASKS[:3]:
        assert not (made(task).target == NONE).any()


def test_redundant_filler_is_of_four_tokens_with_noise_and_distinct_filler_of_as_many_as_there_are():
    redundant, distinct = made(TASKS[1]), made(TASKS[2])
    for row in redundant.key:
        assert 1 < len(row[row >= KEYS].unique()) <= 4
    for row in distinct.key:
        assert len(row[row >= KEYS].unique()) == 40
    assert (redundant.noise > 0).eq(redundant.key >= KEYS).all()
    assert not distinct.noise.any()


def test_facts_have_values_that_can_be_answered_and_the_same_generator_gives_the_same_sequences():
    one, other = made(TASKS[0]), made(TASKS[0])
    assert torch.equal(one.key, other.key)
    assert torch.equal(one.target, other.target)
    assert int(one.target.max()) < VALUES
