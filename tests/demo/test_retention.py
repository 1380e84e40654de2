"""What the support set keeps of the event hours: by hand on small stays, and the paper's claim on real ones."""

import numpy as np
import pytest
from sklearn.svm import OneClassSVM

from svmem.demo.clif import load_clif
from svmem.demo.retention import HELD_OUT, SELECTORS, VITALS, Protocol, measure_retention
from svmem.errors import InvalidInput
from tests.demo.readings import calm, hours_of, walk

pytestmark = pytest.mark.usefixtures("compiled")
SMALL = Protocol(hours_at_least=12, draws=5, resamples=200)


def test_only_stays_that_are_long_enough_and_have_an_event_count_but_progress_counts_all() -> None:
    quiet = [row for hour in range(12) for row in calm("q1", hour, heart_rate=80 + hour)]
    hours = hours_of(quiet + [row for hour in range(12) for row in calm("r1", hour, sbp=85 + 2 * hour)])
    calls: list[int] = []
    found = measure_retention(hours, hours.event, VITALS, SMALL, calls.append)
    assert [row.stay for row in found.rows] == ["r1"]
    assert (found.stays, found.events, found.hours) == (1, 3, 12)
    assert calls == [1, 1]


def test_every_rule_keeps_as_many_hours_as_the_support_set_and_shares_are_shares() -> None:
    hours = walk({"a1": 40, "b1": 30, "c1": 11})
    found = measure_retention(hours, hours.event, VITALS, SMALL)
    assert tuple(found.kept) == tuple(found.answered) == SELECTORS
    for row in found.rows:
        assert row.hours * SMALL.nu <= row.budget < row.hours
        assert all(0 <= share <= 1 for share in (*row.kept, *row.answered))
        assert row.kept[3] == hours.event[hours.stay == row.stay][-row.budget :].sum() / row.events


def test_the_support_set_is_that_of_a_one_class_machine() -> None:
    hours = walk({"a1": 40})
    (row,) = measure_retention(hours, hours.event, VITALS, SMALL).rows
    support = OneClassSVM(nu=SMALL.nu, tol=1e-10).set_params(gamma=1 / SMALL.sigma**2).fit(hours.keys).support_
    assert row.budget == len(support)
    assert row.kept[0] == hours.event[support].sum() / row.events


def test_the_hidden_column_plays_no_part() -> None:
    hours = walk({"a1": 40})
    others = tuple(column for column in VITALS if column != HELD_OUT)
    before = measure_retention(hours, hours.event, others, SMALL)
    hours.keys[:, HELD_OUT] = 7.0
    assert measure_retention(hours, hours.event, others, SMALL) == before


def test_an_interval_holds_its_mean_and_the_difference_is_paired() -> None:
    hours = walk({"a1": 40, "b1": 30, "c1": 20, "d1": 25})
    found = measure_retention(hours, hours.event, VITALS, SMALL)
    for estimate in (*found.kept.values(), *found.answered.values(), found.kept_difference):
        assert estimate.low <= estimate.mean <= estimate.high
    difference = found.kept["support"].mean - found.kept["heavy-hitter"].mean
    assert found.kept_difference.mean == pytest.approx(difference)


def test_the_interval_is_that_of_resampled_stays() -> None:
    hours = walk({f"{letter}1": 14 for letter in "abcdefghijklmnopqrstuvwxyz"}, seed=3)
    found = measure_retention(hours, hours.event, VITALS, Protocol(hours_at_least=12, draws=2, resamples=20_000))
    shares = np.array([row.kept[3] for row in found.rows])
    rng = np.random.default_rng(11)
    means = [shares[rng.integers(len(shares), size=len(shares))].mean() for _ in range(20_000)]
    low, high = np.quantile(means, [0.025, 0.975])
    assert found.kept["last k"].low == pytest.approx(low, abs=0.03)
    assert found.kept["last k"].high == pytest.approx(high, abs=0.03)


def test_the_same_seed_gives_the_same_numbers() -> None:
    hours = walk({"a1": 40, "b1": 30})
    assert measure_retention(hours, hours.event, VITALS, SMALL) == measure_retention(hours, hours.event, VITALS, SMALL)


def test_without_any_event_there_is_nothing_to_compare() -> None:
    hours = walk({"a1": 20})
    with pytest.raises(InvalidInput, match="nothing to compare"):
        measure_retention(hours, np.zeros(20, bool), VITALS, SMALL)


def test_on_real_stays_the_support_set_keeps_the_event_hours_that_heavy_hitters_lose() -> None:
    hours = load_clif()
    found = measure_retention(hours, hours.event, VITALS, Protocol())
    kept = {name: round(estimate.mean, 2) for name, estimate in found.kept.items()}
    assert found.stays == 61
    assert kept == {"support": 0.77, "heavy-hitter": 0.04, "random": 0.33, "last k": 0.25}  # paper: .80 .05 .34 .30
    assert found.kept_difference.low > 0.6
    assert found.answered["support"].mean > 0.9 > found.answered["random"].mean
    assert round(found.budget, 2) == 0.33
