"""Filling, withdrawing and small deletions on wandering stays: equal to the refit, bit for bit."""

import numpy as np
import pytest

from svmem.core.problem import Problem
from svmem.demo.deviation import AuditProtocol, apart, audit_deletions
from svmem.demo.growth import compile_once, grow
from svmem.demo.withdrawal import patient_with_most_hours, withdraw
from svmem.errors import InvalidInput
from svmem.kernels import RBF
from tests.demo.readings import calm, hours_of, walk

pytestmark = pytest.mark.usefixtures("compiled_memory")
KERNEL = RBF(3.0)


def test_growth_counts_every_hour_once_and_selects_only_from_1_over_c_hours_on() -> None:
    hours = walk({"a1": 30, "b1": 20})
    problem = Problem.from_nu(0.3, len(hours), KERNEL)
    calls: list[int] = []
    memory, growth = grow(hours, problem, 8, calls.append)
    assert calls == [8] * 6 + [2]
    assert growth.seen.tolist() == [8, 16, 24, 32, 40, 48, 50]
    assert (growth.margin + growth.bound + growth.reserve).tolist() == growth.seen.tolist()
    assert growth.needed == 15
    assert growth.reserve[0] == 0 < growth.reserve[-1]
    assert memory.owners == hours.patient.tolist()


def test_the_way_of_arrival_leaves_no_trace() -> None:
    hours = walk({"a1": 30, "b1": 20})
    problem = Problem.from_nu(0.3, len(hours), KERNEL)
    assert len({grow(hours, problem, batch)[0].digest() for batch in (1, 7, 50)}) == 1


def test_a_withdrawn_patient_leaves_the_memory_that_never_held_them() -> None:
    hours = walk({"a1": 30, "b1": 25, "b2": 15, "c1": 20})
    patient = patient_with_most_hours(hours)
    memory, _ = grow(hours, Problem.from_nu(0.3, len(hours), KERNEL), 32)
    calls: list[int] = []
    found, receipt = withdraw(memory, hours, patient, calls.append)
    assert patient == "b"
    assert (found.hours, found.hours_left, found.queries) == (40, 50, 50)
    assert found.digest == found.digest_refit == memory.digest()
    assert (found.score_difference, found.readout_difference) == (0.0, 0.0)
    assert found.score_moved > 0 < found.readout_moved
    assert receipt.count == 40
    assert "b" not in memory.owners
    assert calls == [1, 1, 1]


def test_among_patients_with_equally_many_hours_the_first_by_name_is_taken() -> None:
    assert patient_with_most_hours(walk({"c1": 3, "b1": 3, "a1": 2})) == "b"


def test_small_deletions_equal_the_refit_and_damped_coefficients_do_not() -> None:
    hours = walk({"a1": 45, "b1": 40, "c1": 39})
    calls: list[int] = []
    trials = audit_deletions(hours, AuditProtocol(trials=12), calls.append)
    assert calls == [1] * 12
    assert [trial.stay for trial in trials] == ["a1", "b1"] * 6
    assert all(trial.ours == 0 and trial.same_digest and trial.same_partition for trial in trials)
    assert sum(trial.decay > 1e-3 for trial in trials) > 6


def test_damping_is_exact_where_the_forgotten_hours_were_silent() -> None:
    hours = walk({"a1": 45, "b1": 40})
    decays = [trial.decay for trial in audit_deletions(hours, AuditProtocol(trials=40))]
    assert 0.0 in decays
    assert all(decay == 0 or decay > 1e-6 for decay in decays)


def test_the_same_seed_gives_the_same_trials() -> None:
    hours = walk({"a1": 40})
    assert audit_deletions(hours, AuditProtocol(trials=3)) == audit_deletions(hours, AuditProtocol(trials=3))


def test_hours_that_repeat_each_other_are_dropped_from_a_context() -> None:
    keys = np.array([[0.0, 0.0], [0.05, 0.0], [0.1, 0.0], [0.15, 0.0], [0.0, 0.0], [5.0, 5.0]])
    assert apart(keys, 0.1) == [0, 2, 5]
    rows = [row for hour in range(44) for row in calm("a1", hour, heart_rate=60.0 + hour // 2)]
    (trial,) = audit_deletions(hours_of(rows), AuditProtocol(trials=1))
    assert trial.n == 20


def test_without_a_long_stay_there_is_no_trial() -> None:
    with pytest.raises(InvalidInput, match="at least 40 hours"):
        audit_deletions(walk({"a1": 39}), AuditProtocol(trials=1))


def test_everything_can_be_compiled_beforehand() -> None:
    calls: list[int] = []
    compile_once(calls.append)
    assert calls == [1, 1, 1, 1]
