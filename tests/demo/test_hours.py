"""Cleaning and standardising, on rows small enough to do by hand."""

import numpy as np
import pandas as pd
import pytest

from svmem.demo.hours import CHANNELS, hourly_sums, hours_from_sums
from svmem.errors import InvalidInput
from tests.demo.readings import CALM, calm, hours_of, readings, walk

COLUMN = {channel.name: i for i, channel in enumerate(CHANNELS)}
RANGES = {
    "heart_rate": (10, 300),
    "sbp": (20, 300),
    "dbp": (5, 220),
    "respiratory_rate": (2, 80),
    "spo2": (30, 100),
    "temp_c": (25, 45),
}


def test_an_hour_holds_the_mean_of_its_readings() -> None:
    rows = [*calm("a1", 0, heart_rate=70), ("a1", 59.0, "heart_rate", 90.0), *calm("a1", 1, heart_rate=100)]
    assert hours_of(rows).raw[:, COLUMN["heart_rate"]].tolist() == [80.0, 100.0]


@pytest.mark.parametrize("name", RANGES)
def test_readings_outside_the_plausible_range_are_left_out_and_its_ends_kept(name: str) -> None:
    low, high = RANGES[name]
    rows = [
        *calm("a1", 0, **{name: low}),
        *calm("a1", 1, **{name: high}),
        ("a1", 70.0, name, np.nextafter(high, np.inf)),
        ("a1", 80.0, name, np.nextafter(low, -np.inf)),
        ("a1", 90.0, name, np.nan),
    ]
    assert hours_of(rows).raw[:, COLUMN[name]].tolist() == [low, high]


def test_gaps_are_filled_forward_then_backward_inside_a_stay_then_by_the_cohort_median() -> None:
    rows = [
        *calm("a1", 0),
        *[
            row
            for hour in (0, 1, 2, 3)
            for row in calm("b1", hour, temp_c=38.0)
            if row[2] != "temp_c" or hour in (1, 2)
        ],
        *[row for row in calm("c1", 0) if row[2] != "temp_c"],
    ]
    rows = [(*row[:3], 39.0) if row[0] == "b1" and row[1] == 120.0 and row[2] == "temp_c" else row for row in rows]
    hours = hours_of(rows)
    temperature = hours.raw[:, COLUMN["temp_c"]]
    assert temperature[hours.stay == "b1"].tolist() == [38.0, 38.0, 39.0, 39.0]
    assert temperature[hours.stay == "c1"].tolist() == [38.0]  # the median of 37, 38, 39, measured hours only
    assert hours.measured[:, COLUMN["temp_c"]].tolist() == [True, False, True, True, False, False]


def test_nothing_is_filled_from_another_stay_of_the_same_patient() -> None:
    rows = [
        *calm("a1", 0, spo2=88.0),
        *[row for row in calm("a2", 5) if row[2] != "spo2"],
        *calm("b1", 0),
        *calm("b1", 1),
    ]
    hours = hours_of(rows)
    assert hours.raw[hours.stay == "a2", COLUMN["spo2"]].tolist() == [97.0]


def test_an_hour_without_any_plausible_reading_is_no_row_and_hours_count_from_the_first_of_the_stay() -> None:
    rows = [*calm("a1", 2), ("a1", 200.0, "heart_rate", 0.0), *calm("a1", 5), ("a1", 400.0, "weight_kg", 70.0)]
    assert hours_of(rows).hour.tolist() == [0, 3]


def test_hours_are_those_of_the_clock() -> None:
    hours = hours_of([*calm("a1", 0), ("a1", 59.9, "spo2", 91.0), ("a1", 60.0, "spo2", 95.0)])
    assert hours.raw[:, COLUMN["spo2"]].tolist() == [94.0, 95.0]


EVENTS = [
    ("heart_rate", 130.0, False),
    ("heart_rate", 130.1, True),
    ("heart_rate", 40.0, False),
    ("heart_rate", 39.9, True),
    ("sbp", 200.0, False),
    ("sbp", 200.1, True),
    ("sbp", 90.0, False),
    ("sbp", 89.9, True),
    ("dbp", 20.0, False),
    ("dbp", 200.0, False),
    ("respiratory_rate", 30.0, False),
    ("respiratory_rate", 30.1, True),
    ("respiratory_rate", 6.0, False),
    ("respiratory_rate", 5.9, True),
    ("spo2", 90.0, False),
    ("spo2", 89.9, True),
    ("spo2", 100.0, False),
    ("temp_c", 38.5, False),
    ("temp_c", 38.6, True),
    ("temp_c", 35.0, False),
    ("temp_c", 34.9, True),
]


@pytest.mark.parametrize(("name", "value", "event"), EVENTS)
def test_an_event_hour_is_one_strictly_outside_the_limits(name: str, value: float, event: bool) -> None:
    assert hours_of([*calm("a1", 0), *calm("a1", 1, **{name: value})]).event.tolist() == [False, event]


def test_keys_are_standardised_on_the_cohort_and_a_constant_channel_is_zero() -> None:
    hours = hours_of([*calm("a1", 0, heart_rate=70), *calm("b1", 0, heart_rate=90), *calm("b1", 1, heart_rate=110)])
    deviation = np.sqrt(800 / 3)
    np.testing.assert_allclose(hours.keys[:, 0], [-20 / deviation, 0, 20 / deviation], rtol=1e-15, atol=0)
    assert not hours.keys[:, 1:].any()


def test_the_value_of_an_hour_is_the_next_of_its_stay_and_the_last_repeats_itself() -> None:
    hours = walk({"a1": 3, "a2": 1, "b1": 2})
    assert hours.stay.tolist() == ["a1", "a1", "a1", "a2", "b1", "b1"]
    np.testing.assert_array_equal(hours.values, hours.keys[[1, 2, 2, 3, 5, 5]])


def test_stays_are_runs_of_rows_and_short_ones_can_be_left_out() -> None:
    hours = walk({"b1": 2, "a2": 1, "a1": 3})
    assert list(hours.stays()) == [("a1", slice(0, 3)), ("a2", slice(3, 4)), ("b1", slice(4, 6))]
    assert list(hours.stays(3)) == [("a1", slice(0, 3))]
    assert hours.patient.tolist() == ["a"] * 4 + ["b"] * 2


def test_parts_of_a_cohort_keep_the_standardisation_of_the_whole() -> None:
    hours = walk({"a1": 3, "a2": 1, "b1": 2})
    np.testing.assert_array_equal(hours.of_stay("b1").keys, hours.keys[4:])
    np.testing.assert_array_equal(hours.of_patients(1).keys, hours.keys[:4])
    assert len(hours.of_patients(9)) == 6


def test_sums_of_two_parts_give_the_hours_of_the_whole() -> None:
    table = readings([*calm("a1", 0), *calm("a1", 1, sbp=100), ("a1", 30.0, "sbp", 140.0)])
    halves = [hourly_sums(part) for part in (table.iloc[::2], table.iloc[1::2])]
    whole = hours_from_sums(hourly_sums(table))
    np.testing.assert_array_equal(hours_from_sums(halves[0].add(halves[1], fill_value=0)).raw, whole.raw)


def test_the_order_of_readings_does_not_matter() -> None:
    table = readings([*calm("a1", 0), *calm("b1", 1, sbp=100), *calm("a1", 3, spo2=80), *calm("a1", 1, temp_c=39)])
    shuffled = table.sample(frac=1, random_state=3)
    np.testing.assert_array_equal(hours_from_sums(hourly_sums(shuffled)).keys, hours_from_sums(hourly_sums(table)).keys)


def test_a_table_without_a_plausible_reading_or_a_whole_channel_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="no plausible reading"):
        hours_of([("a1", 0.0, "heart_rate", 0.0)])
    with pytest.raises(InvalidInput, match="none for Temperature"):
        hours_of([row for row in calm("a1", 0) if row[2] != "temp_c"])


def test_a_reading_without_a_time_is_left_out() -> None:
    table = readings([*calm("a1", 0), ("a1", 0.0, "spo2", 50.0)])
    table.loc[table["value"] == 50.0, "time"] = pd.NaT
    assert hours_from_sums(hourly_sums(table)).raw[0, COLUMN["spo2"]] == CALM["spo2"]
