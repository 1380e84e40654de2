"""Small tables of vital-sign readings, written down as a nurse would: stay, minute, channel, value."""

import numpy as np
import pandas as pd

from svmem.demo.hours import CHANNELS, Hours, hourly_sums, hours_from_sums

START = pd.Timestamp("2150-03-01 08:00")
CALM = {"heart_rate": 80.0, "sbp": 120.0, "dbp": 70.0, "respiratory_rate": 18.0, "spo2": 97.0, "temp_c": 37.0}


def readings(rows: list[tuple[str, float, str, float]]) -> pd.DataFrame:
    """Return readings from (stay, minutes since START, channel, value); stay "a1" is one of patient "a"."""
    table = pd.DataFrame(rows, columns=["stay", "minute", "channel", "value"])
    table["patient"] = table["stay"].str[0]
    table["time"] = START + pd.to_timedelta(table.pop("minute"), unit="m")
    return table


def calm(stay: str, hour: int, **changed: float) -> list[tuple[str, float, str, float]]:
    """Return one reading of each channel in that hour, unremarkable unless changed."""
    return [(stay, 60.0 * hour, name, changed.get(name, value)) for name, value in CALM.items()]


def hours_of(rows: list[tuple[str, float, str, float]]) -> Hours:
    return hours_from_sums(hourly_sums(readings(rows)))


def walk(stays: dict[str, int], seed: int = 0) -> Hours:
    """Return stays of so many hours that wander around the calm values and cross the limits now and then."""
    rng = np.random.default_rng(seed)
    spread = {"heart_rate": 14, "sbp": 14, "dbp": 9, "respiratory_rate": 5, "spo2": 2.5, "temp_c": 0.6}
    rows = []
    for stay, count in stays.items():
        drift = np.zeros(len(CHANNELS))
        for hour in range(count):
            drift = 0.8 * drift + rng.standard_normal(len(CHANNELS)) * 0.8
            values = {c.name: CALM[c.name] + spread[c.name] * drift[i] for i, c in enumerate(CHANNELS)}
            values["spo2"] = min(values["spo2"], 100.0)
            rows += calm(stay, hour, **values)
    return hours_of(rows)
