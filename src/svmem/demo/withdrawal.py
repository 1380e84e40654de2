"""One patient taken out of the memory of all, compared with a memory that never held the patient."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from svmem.core.receipt import Receipt
from svmem.demo.hours import Hours
from svmem.memory import Memory

__all__ = ["Withdrawal", "patient_with_most_hours", "withdraw"]


QUERIES = 3000  # about so many of the others' hours are asked about


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What taking out one patient did. Differences are the largest over the queries, hours of the others.

    `*_difference`: against the refit without the patient. `*_moved`: against the memory that still held the patient.
    """

    hours: int
    hours_left: int
    forget_s: float
    refit_s: float
    digest: str
    digest_refit: str
    queries: int
    score_difference: float
    readout_difference: float
    score_moved: float
    readout_moved: float


def patient_with_most_hours(hours: Hours) -> str:
    """Return the hardest patient to take out: the one with the most hours, the first by name among equals."""
    names, counts = np.unique(hours.patient, return_counts=True)
    return str(names[counts.argmax()])


def withdraw(
    memory: Memory, hours: Hours, patient: str, advance: Callable[[int], None] = lambda _: None
) -> tuple[Withdrawal, Receipt]:
    """Forget the patient in `memory`, which holds `hours`, and compare with a fresh memory of the others."""
    others = hours.patient != patient
    keys, values = hours.keys[others], hours.values[others]
    queries = keys[:: 1 + len(keys) // QUERIES]
    score_before, readout_before = memory.score(queries), memory.read(queries)
    start = time.perf_counter()
    receipt = memory.forget(owner=patient)
    forget_s = time.perf_counter() - start
    advance(1)

    start = time.perf_counter()
    refit = Memory(memory.problem, key_dim=hours.keys.shape[1], value_dim=hours.values.shape[1])
    refit.add(keys, values, owners=hours.patient[others].tolist())
    refit_s = time.perf_counter() - start
    advance(1)
    score, readout = memory.score(queries), memory.read(queries)
    found = Withdrawal(
        hours=int((~others).sum()),
        hours_left=len(memory),
        forget_s=forget_s,
        refit_s=refit_s,
        digest=memory.digest(),
        digest_refit=refit.digest(),
        queries=len(queries),
        score_difference=float(np.abs(score - refit.score(queries)).max()),
        readout_difference=float(np.abs(readout - refit.read(queries)).max()),
        score_moved=float(np.abs(score - score_before).max()),
        readout_moved=float(np.abs(readout - readout_before).max()),
    )
    advance(1)
    return found, receipt
