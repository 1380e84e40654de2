"""Hourly vitals of intensive-care stays as keys: cleaned, filled, standardised, with the deterioration hours marked."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from svmem.errors import InvalidInput
from svmem.types import Keys, Values

__all__ = ["CHANNELS", "READING_COLUMNS", "Channel", "Hours", "hourly_sums", "hours_from_sums"]

READING_COLUMNS = ("patient", "stay", "time", "channel", "value")
_HOUR_NS = 3_600_000_000_000


@dataclass(frozen=True, slots=True)
class Channel:
    """One vital sign: the range of true readings, and the limits outside which an hour is deterioration."""

    name: str
    label: str
    unit: str
    plausible: tuple[float, float]  # both ends included
    calm: tuple[float, float]  # an hour with its value strictly outside is an event hour


CHANNELS = (
    Channel("heart_rate", "Heart rate", "/min", (10, 300), (40, 130)),
    Channel("sbp", "Systolic pressure", "mmHg", (20, 300), (90, 200)),
    Channel("dbp", "Diastolic pressure", "mmHg", (5, 220), (-np.inf, np.inf)),
    Channel("respiratory_rate", "Respiratory rate", "/min", (2, 80), (6, 30)),
    Channel("spo2", "Oxygen saturation", "%", (30, 100), (90, np.inf)),
    Channel("temp_c", "Temperature", "°C", (25, 45), (35, 38.5)),
)
_NAMES = tuple(channel.name for channel in CHANNELS)


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """One row per stay and observed hour, sorted by stay and hour, so that each stay is one run of rows.

    keys: the six vitals of the hour, standardised on the cohort. values: those of the next observed hour of the same
    stay (the last hour repeats itself). raw: the cleaned and filled vitals in their units. measured: which of them were
    read in that very hour. hour: clock hours since the stay's first. event: deterioration, judged on `raw`.
    """

    keys: Keys
    values: Values
    raw: Values
    measured: NDArray[np.bool_]
    stay: NDArray[np.str_]
    patient: NDArray[np.str_]
    hour: NDArray[np.int64]
    event: NDArray[np.bool_]
    channels: tuple[Channel, ...] = CHANNELS

    def __len__(self) -> int:
        return len(self.keys)

    def stays(self, at_least: int = 1) -> Iterator[tuple[str, slice]]:
        """Yield each stay of at least that many hours with its run of rows, in order of the stay's name."""
        starts = np.flatnonzero(np.append(True, self.stay[1:] != self.stay[:-1])) if len(self) else np.empty(0, int)
        for start, end in zip(starts, [*starts[1:], len(self)], strict=True):
            if end - start >= at_least:
                yield str(self.stay[start]), slice(int(start), int(end))

    def of_stay(self, stay: str) -> "Hours":
        """Return the hours of one stay as they are: the standardisation stays that of the whole cohort."""
        return self._where(self.stay == stay)

    def of_patients(self, count: int) -> "Hours":
        """Return the hours of the first so many patients by name."""
        return self._where(np.isin(self.patient, np.unique(self.patient)[:count]))

    def _where(self, rows: NDArray[np.bool_]) -> "Hours":
        columns = ("keys", "values", "raw", "measured", "stay", "patient", "hour", "event")
        return Hours(**{name: getattr(self, name)[rows] for name in columns}, channels=self.channels)


def hourly_sums(readings: pd.DataFrame) -> pd.DataFrame:
    """Return sum and count of the plausible readings per patient, stay, clock hour and channel.

    Sums and counts of two parts of a table add up to those of the whole, so a large file can be read in parts. Readings
    of other channels, without a time, or outside the plausible range are left out.
    """
    # astype: in a part without any row pandas cannot tell the type
    low = readings["channel"].map({c.name: c.plausible[0] for c in CHANNELS}).astype("float64")
    high = readings["channel"].map({c.name: c.plausible[1] for c in CHANNELS}).astype("float64")
    kept = readings[readings["value"].between(low, high) & readings["time"].notna()]
    clock = kept["time"].astype("datetime64[ns]").astype("int64") // _HOUR_NS
    grouped = kept.assign(clock=clock).groupby(["patient", "stay", "clock", "channel"])["value"]
    return grouped.agg(["sum", "count"])


def hours_from_sums(sums: pd.DataFrame) -> Hours:
    """Return the cohort's hours: means, filled forward then backward in a stay, then by the cohort median.

    An hour is a row as soon as one channel has a plausible reading in it. Raises InvalidInput when nothing is left.
    """
    if sums.empty:
        raise InvalidInput("no plausible reading of heart rate, pressures, respiration, SpO2 or temperature was found")
    mean = (sums["sum"] / sums["count"]).unstack("channel").reindex(columns=list(_NAMES))
    mean = mean.reset_index().sort_values(["stay", "clock"], kind="stable").reset_index(drop=True)
    observed = mean[list(_NAMES)]
    if not observed.notna().any().all():
        missing = [c.label for c in CHANNELS if observed[c.name].isna().all()]
        raise InvalidInput(f"every vital sign needs at least one plausible reading; none for {', '.join(missing)}")
    filled = observed.groupby(mean["stay"]).ffill()
    filled = filled.groupby(mean["stay"]).bfill().fillna(observed.median())
    raw = filled.to_numpy(dtype=np.float64)
    stay = mean["stay"].astype(str).to_numpy(dtype=np.str_)
    keys = standardised(raw)
    return Hours(
        keys=keys,
        values=_next_in_stay(keys, stay),
        raw=raw,
        measured=observed.notna().to_numpy(),
        stay=stay,
        patient=mean["patient"].astype(str).to_numpy(dtype=np.str_),
        hour=(mean["clock"] - mean.groupby("stay")["clock"].transform("min")).to_numpy(dtype=np.int64),
        event=event_hours(raw),
    )


def standardised(raw: Values) -> Keys:
    """Return each column with mean 0 and standard deviation 1; a constant column becomes 0."""
    spread = raw.std(axis=0)
    return (raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def event_hours(raw: Values) -> NDArray[np.bool_]:
    """Return the hours in which some channel is strictly outside its calm limits."""
    low = np.array([c.calm[0] for c in CHANNELS])
    high = np.array([c.calm[1] for c in CHANNELS])
    return np.any((raw < low) | (raw > high), axis=1)


def _next_in_stay(keys: Keys, stay: NDArray[np.str_]) -> Values:
    following = np.minimum(np.arange(len(keys)) + 1, len(keys) - 1)
    same = stay[following] == stay
    return keys[np.where(same, following, np.arange(len(keys)))]
