"""Vitals in the layout of MIMIC-IV: icustays.csv.gz and chartevents.csv.gz in a folder the user names."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from svmem.demo.hours import READING_COLUMNS, Hours, hourly_sums, hours_from_sums
from svmem.errors import InvalidInput

__all__ = ["load_mimic"]

CHANNEL_OF_ITEM = {
    220045: "heart_rate",
    220050: "sbp",  # arterial
    220179: "sbp",  # cuff
    220051: "dbp",
    220180: "dbp",
    220210: "respiratory_rate",
    220277: "spo2",
    223761: "temp_c",  # recorded in °F
    223762: "temp_c",
}
FAHRENHEIT_ITEM = 223761
ROWS_A_PART = 1_000_000  # of chartevents, whose 300 million rows do not fit into memory at once


def load_mimic(folder: Path, advance: Callable[[int], None] = lambda _: None) -> Hours:
    """Return the hours of all stays in a MIMIC-IV folder (or its `icu` subfolder).

    `advance` is called with the number of rows of each part of chartevents that was read. Raises InvalidInput when a
    file or column is missing.
    """
    stays = _known_stays(_file(folder, "icustays"))
    events = _file(folder, "chartevents")
    columns = ["stay_id", "charttime", "itemid", "valuenum"]
    total = None
    try:
        with pd.read_csv(events, usecols=columns, chunksize=ROWS_A_PART, parse_dates=["charttime"]) as parts:
            for part in parts:
                sums = hourly_sums(_readings(part, stays))
                total = sums if total is None else total.add(sums, fill_value=0)
                advance(len(part))
    except (ValueError, EOFError) as error:  # EOFError: a .gz that was cut off
        raise InvalidInput(f"{events.name} must be a table with the columns {', '.join(columns)}: {error}") from None
    assert total is not None  # pandas gives one part, an empty one, for a table without rows
    return hours_from_sums(total)


def _readings(part: pd.DataFrame, stays: pd.DataFrame) -> pd.DataFrame:
    part = part[part["itemid"].isin(CHANNEL_OF_ITEM)].merge(stays, on="stay_id", validate="many_to_one")
    value = part["valuenum"].astype("float64")
    fahrenheit = part["itemid"] == FAHRENHEIT_ITEM
    readings = pd.DataFrame(
        {
            "patient": part["subject_id"],
            "stay": part["stay_id"],
            "time": part["charttime"],
            "channel": part["itemid"].map(CHANNEL_OF_ITEM),
            "value": value.where(~fahrenheit, (value - 32) / 1.8),
        }
    )
    return readings[list(READING_COLUMNS)]


def _known_stays(path: Path) -> pd.DataFrame:
    columns = ["subject_id", "stay_id"]
    try:
        return pd.read_csv(path, usecols=columns).drop_duplicates("stay_id")
    except (ValueError, EOFError) as error:
        raise InvalidInput(f"{path.name} must be a table with the columns {', '.join(columns)}: {error}") from None


def _file(folder: Path, name: str) -> Path:
    for path in (place / f"{name}.csv{end}" for place in (folder, folder / "icu") for end in (".gz", "")):
        if path.is_file():
            return path
    raise InvalidInput(f"a MIMIC-IV folder must hold {name}.csv.gz (itself or in icu/); there is none in {folder}")
