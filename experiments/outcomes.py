"""Stays in intensive care as sequences of hours to predict from, and what came in the hours after each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from svmem.demo.hours import CHANNELS, Hours
from svmem.errors import InvalidInput

__all__ = ["Cohort", "cohort_of"]

_LIMITS = np.array([channel.calm for channel in CHANNELS])


@dataclass(frozen=True, slots=True, eq=False)
class Cohort:
    """Stays (n), each with its first hours (t); where a stay is shorter, `there` is False at its end.

    vitals: (n, t, 6) in their units, the last reading so far, nan before the first: an hour knows nothing of later
    ones. outcome: an event in the hours ahead. asked: there is an hour ahead, so that the outcome is known. now: an
    event by the vitals so far. recent: the share of event hours among these last hours, as many as lie ahead.
    """

    vitals: NDArray[np.float64]
    there: NDArray[np.bool_]
    outcome: NDArray[np.bool_]
    asked: NDArray[np.bool_]
    now: NDArray[np.bool_]
    recent: NDArray[np.float64]
    patient: NDArray[np.int64]  # (n,), from 0

    def __len__(self) -> int:
        return len(self.patient)

    @property
    def patients(self) -> int:
        """How many patients the stays are of."""
        return int(self.patient.max()) + 1

    @property
    def owner(self) -> NDArray[np.int64]:
        """The patient of each asked hour, in the order of `outcome[asked]`."""
        return np.repeat(self.patient, self.asked.sum(axis=1))

    def folds(self, count: int, seed: int) -> NDArray[np.int64]:
        """Return the fold of each stay: patients are shuffled and dealt out, so that all stays of one are together."""
        order = np.random.default_rng(seed).permutation(self.patients)
        dealt = np.empty(self.patients, np.int64)
        dealt[order] = np.arange(self.patients) % count
        return dealt[self.patient]

    def inputs(self, trained: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return all vitals (n, t, 6), standardised by the hours of the stays that are trained on, and 0 after the end.

        A vital sign that was not read yet has their median.
        """
        seen = self.vitals[trained][self.there[trained]]  # (hours, 6)
        filled = np.where(np.isnan(self.vitals), np.nanmedian(seen, axis=0), self.vitals)
        spread = np.nanstd(seen, axis=0)
        scaled = (filled - np.nanmean(seen, axis=0)) / np.where(spread > 0, spread, 1.0)
        return np.where(self.there[..., None], scaled, 0.0).astype(np.float32)


def cohort_of(hours: Hours, first: int, ahead: int, at_least: int) -> Cohort:
    """Return the first hours of each stay that has so many, and whether an event came in the hours ahead of each.

    The hours ahead are those of the clock, also beyond the first ones; where a stay ends before, those that there are
    decide, and an hour with none is not asked. Whether one is an event hour `Hours` says, which fills vital signs from
    later readings too: that is the outcome's business, and never the input's.
    Raises InvalidInput when no stay is left or all outcomes are the same.
    """
    stays = [span for _, span in hours.stays(at_least)]
    if not stays:
        raise InvalidInput(f"no stay has {at_least} hours: nothing to predict")
    names, patient = np.unique([hours.patient[span.start] for span in stays], return_inverse=True)
    n, places = len(stays), len(CHANNELS)
    vitals = np.full((n, first, places), np.nan)
    there, outcome, asked, now = (np.zeros((n, first), np.bool_) for _ in range(4))
    recent = np.zeros((n, first))
    for number, span in enumerate(stays):
        clock, event = hours.hour[span], hours.event[span]
        known = np.logical_or.accumulate(hours.measured[span], axis=0)
        mine = np.where(known, hours.raw[span], np.nan)
        ill = np.any((mine < _LIMITS[:, 0]) | (mine > _LIMITS[:, 1]), axis=1)  # nan is neither
        later = clock[None] - clock[:, None]  # (hours, hours)
        follows, precedes = (later > 0) & (later <= ahead), (later <= 0) & (later > -ahead)
        m = int((clock < first).sum())
        vitals[number, :m], there[number, :m], now[number, :m] = mine[:m], True, ill[:m]
        outcome[number, :m], asked[number, :m] = (follows & event)[:m].any(axis=1), follows[:m].any(axis=1)
        recent[number, :m] = (precedes & ill)[:m].sum(axis=1) / precedes[:m].sum(axis=1)
    if len(np.unique(outcome[asked])) < 2:
        raise InvalidInput(f"of {asked.sum()} hours in {len(names)} patients all have the same outcome")
    return Cohort(vitals, there, outcome, asked, now, recent, patient.astype(np.int64))
