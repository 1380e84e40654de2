"""Cases that look like measured hours: values carried forward, rounded, stuck at a limit."""

import numpy as np

from tests.cases.case import Case
from tests.oracles.setting import Setting

__all__ = ["STREAMS"]

HOURS = 40


def _walk(channels: int, seed: int) -> np.ndarray:
    """Return a slow random walk, (hours, channels)."""
    return np.cumsum(0.3 * np.random.default_rng(seed).standard_normal((HOURS, channels)), axis=0)


def _carried_forward(keys: np.ndarray, seed: int) -> np.ndarray:
    """Return the walk as charted: each channel is read in about one hour of four and kept until the next reading."""
    read = np.random.default_rng(seed).random(keys.shape) < 0.25
    read[0] = True
    last = np.maximum.accumulate(np.where(read, np.arange(HOURS)[:, None], 0), axis=0)
    return np.take_along_axis(keys, last, axis=0)


STREAMS = (
    Case("walk", "a slow walk in six channels", _walk(6, 20), Setting(C=0.0625, sigma=2.0)),
    Case("carried_forward", "repeated hours", _carried_forward(_walk(3, 21), 22), Setting(C=0.1, sigma=2.0)),
    Case("rounded", "readings rounded to halves", (2 * _walk(3, 23)).round() / 2, Setting(C=0.1, sigma=2.0)),
    Case(
        "carried_forward_rounded",
        "readings rounded to tenths and repeated",
        _carried_forward(_walk(3, 24), 25).round(1),
        Setting(C=1 / 12, sigma=2.0),
    ),
    Case("stuck", "every channel clipped at a limit", np.clip(_walk(2, 26), -0.5, 0.5), Setting(C=0.1, sigma=1.0)),
)
