"""The layout of MIMIC-IV, on a small file in that layout written here."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from svmem.demo import mimic
from svmem.demo.clif import demo_folder, load_clif
from svmem.demo.mimic import load_mimic
from svmem.errors import InvalidInput

STAYS = """subject_id,hadm_id,stay_id,first_careunit,last_careunit,intime,outtime,los
10,20,30,MICU,MICU,2150-01-01 00:10:00,2150-01-02 00:00:00,1.0
11,21,31,SICU,SICU,2150-01-05 00:00:00,2150-01-06 00:00:00,1.0
"""
HEADER = "subject_id,hadm_id,stay_id,caregiver_id,charttime,storetime,itemid,value,valuenum,valueuom,warning\n"


def event(stay: int, time: str, item: int, value: str) -> str:
    return f"{stay - 20},{stay - 10},{stay},7,2150-01-{time}:00,2150-01-{time}:30,{item},{value},{value},x,0\n"


EVENTS = "".join(
    [
        event(30, "01 00:15", 220045, "80"),
        event(30, "01 00:45", 220045, "90"),
        event(30, "01 00:20", 220050, "110"),  # arterial
        event(30, "01 00:25", 220179, "130"),  # cuff: the hour's mean is of both
        event(30, "01 00:20", 220051, "60"),
        event(30, "01 00:20", 220180, "70"),
        event(30, "01 00:20", 220210, "18"),
        event(30, "01 00:20", 220277, "96"),
        event(30, "01 00:20", 223761, "98.6"),  # °F
        event(30, "01 02:20", 223762, "39.5"),  # °C, two hours later
        event(30, "01 02:21", 223761, "37"),  # °C in the wrong field: 2.8 °C, not plausible
        event(30, "01 02:22", 220045, ""),
        event(30, "01 02:23", 999999, "5"),  # something else
        event(31, "05 00:00", 220045, "140"),
        event(99, "05 00:00", 220045, "20"),  # a stay that icustays does not list
    ]
)


def write(folder: Path, events: str = HEADER + EVENTS, stays: str = STAYS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("icustays", stays), ("chartevents", events)):
        with gzip.open(folder / f"{name}.csv.gz", "wt", encoding="utf-8") as file:
            file.write(text)
    return folder


def test_items_become_the_six_channels_hour_by_hour(tmp_path: Path) -> None:
    hours = load_mimic(write(tmp_path))
    assert hours.stay.tolist() == ["30", "30", "31"]
    assert hours.patient.tolist() == ["10", "10", "11"]
    assert hours.hour.tolist() == [0, 2, 0]
    assert hours.raw[0].tolist() == [85.0, 120.0, 65.0, 18.0, 96.0, pytest.approx(37.0, abs=1e-12)]
    assert hours.raw[1].tolist() == [85.0, 120.0, 65.0, 18.0, 96.0, 39.5]
    assert hours.raw[2, 0] == 140.0
    assert hours.event.tolist() == [False, True, True]


def test_the_file_may_be_read_in_parts_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load_mimic(write(tmp_path))
    monkeypatch.setattr(mimic, "ROWS_A_PART", 2)
    rows: list[int] = []
    parts = load_mimic(tmp_path, rows.append)
    np.testing.assert_array_equal(parts.raw, whole.raw)
    assert parts.stay.tolist() == whole.stay.tolist()
    assert rows == [2] * 7 + [1]


def test_the_icu_subfolder_and_unpacked_files_are_found(tmp_path: Path) -> None:
    packed = load_mimic(write(tmp_path / "one" / "icu").parent)
    plain = tmp_path / "two"
    plain.mkdir()
    (plain / "icustays.csv").write_text(STAYS, encoding="utf-8")
    (plain / "chartevents.csv").write_text(HEADER + EVENTS, encoding="utf-8")
    np.testing.assert_array_equal(load_mimic(plain).raw, packed.raw)


def test_a_missing_file_or_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"must hold icustays\.csv\.gz"):
        load_mimic(tmp_path)
    with pytest.raises(InvalidInput, match="valuenum"):
        load_mimic(write(tmp_path / "events", events=HEADER.replace("valuenum", "number") + EVENTS))
    with pytest.raises(InvalidInput, match="stay_id"):
        load_mimic(write(tmp_path / "stays", stays=STAYS.replace("stay_id", "id")))


def test_an_empty_table_of_events_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no plausible reading"):
        load_mimic(write(tmp_path, events=HEADER))


def test_the_same_readings_in_both_layouts_give_the_same_hours(tmp_path: Path) -> None:
    stays = pd.read_parquet(
        demo_folder() / "clif_hospitalization.parquet", columns=["patient_id", "hospitalization_id"]
    )
    stays = stays[stays["patient_id"].isin(sorted(stays["patient_id"].unique())[:6])]
    vitals = pd.read_parquet(demo_folder() / "clif_vitals.parquet")
    vitals = vitals[vitals["hospitalization_id"].isin(stays["hospitalization_id"])]
    stays.to_parquet(tmp_path / "clif_hospitalization.parquet")
    vitals.to_parquet(tmp_path / "clif_vitals.parquet")

    item = {channel: number for number, channel in mimic.CHANNEL_OF_ITEM.items() if number != mimic.FAHRENHEIT_ITEM}
    joined = vitals.merge(stays, on="hospitalization_id")
    joined = joined[joined["vital_category"].isin(item)]
    table = joined.assign(itemid=joined["vital_category"].map(item), time=joined["recorded_dttm"].dt.tz_localize(None))
    columns = {
        "patient_id": "subject_id",
        "hospitalization_id": "stay_id",
        "time": "charttime",
        "vital_value": "valuenum",
    }
    table = table.rename(columns=columns)
    table.to_csv(tmp_path / "chartevents.csv.gz", index=False)
    table[["subject_id", "stay_id"]].drop_duplicates().to_csv(tmp_path / "icustays.csv.gz", index=False)

    one, other = load_clif(tmp_path), load_mimic(tmp_path)
    assert (one.stay.tolist(), one.patient.tolist()) == (other.stay.tolist(), other.patient.tolist())
    np.testing.assert_array_equal(one.hour, other.hour)
    np.testing.assert_allclose(other.raw, one.raw, rtol=1e-12)
    np.testing.assert_array_equal(one.event, other.event)
