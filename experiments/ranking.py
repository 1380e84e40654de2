"""How well scores rank what came: the area under two curves, for whole patients drawn again and again."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["auroc", "average_precision", "interval", "resampled"]

_BLOCK = 1000  # resamples at a time: a block is a matrix of these by the hours with an event ahead


def resampled(patients: int, resamples: int, seed: int) -> NDArray[np.float64]:
    """Return how often each patient is drawn in each resample, (1 + resamples, patients); in the first: once."""
    drawn = np.random.default_rng(seed).multinomial(patients, np.full(patients, 1 / patients), size=resamples)
    return np.vstack([np.ones(patients), drawn]).astype(np.float64)


# Both areas are sums over the hours with an event ahead, i, of something of the hours that score as much or more than
# i. How many of those a patient has, `above`, does not change from resample to resample; how often it counts does. So a
# resample c (patients) needs c @ above and no sorting.


def auroc(
    scores: NDArray[np.float64], outcome: NDArray[np.bool_], owner: NDArray[np.int64], counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the share of pairs of an hour with and one without the outcome that are in order, a tie as half a pair.

    One number for each row of counts (resamples, patients); nan where a resample lacks one kind of hour.
    """
    patients = counts.shape[1]
    without, mine = ~outcome, owner[outcome]
    level, strict = (
        _above(scores[without], owner[without], scores[outcome], patients, side) for side in ("left", "right")
    )
    number = np.bincount(owner[without], minlength=patients)[:, None]
    below = number - (level + strict) / 2  # (patients, hours with the outcome)
    # of two patients: pairs in order between the hours with the outcome of one and those without of the other
    between = np.stack([np.bincount(mine, row, patients) for row in below])
    pairs = (counts @ number[:, 0]) * (counts @ np.bincount(mine, minlength=patients))
    return _over(((counts @ between) * counts).sum(axis=1), pairs)


def average_precision(
    scores: NDArray[np.float64], outcome: NDArray[np.bool_], owner: NDArray[np.int64], counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean precision over the hours with the outcome, each at its own score as the threshold.

    One number for each row of counts (resamples, patients); nan where a resample has no such hour.
    """
    patients, mine = counts.shape[1], owner[outcome]
    every = _above(scores, owner, scores[outcome], patients, "left")
    hits = _above(scores[outcome], mine, scores[outcome], patients, "left")
    found = []
    for some in np.array_split(counts, -(-len(counts) // _BLOCK)):
        weight = some[:, mine]
        precision = (some @ hits) / np.maximum(some @ every, 1)  # where there is nothing, nothing weighs
        found.append(_over((weight * precision).sum(axis=1), weight.sum(axis=1)))
    return np.concatenate(found)


def interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the first value and the 95 % interval of the others, those that are no number left out."""
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return float(values[0]), float(low), float(high)


def _above(
    scores: NDArray[np.float64], owner: NDArray[np.int64], at: NDArray[np.float64], patients: int, side: str
) -> NDArray[np.float64]:
    """Return how many scores of each patient are at least (left) or above (right) each threshold, (patients, at)."""
    found = np.empty((patients, len(at)))
    for one in range(patients):
        mine = np.sort(scores[owner == one])
        found[one] = len(mine) - np.searchsorted(mine, at, side="left" if side == "left" else "right")
    return found


def _over(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the quotient; nan where there is nothing to divide by."""
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=whole > 0)
