"""How long a deletion takes, beside solving the retained records again.

    OMP_NUM_THREADS=1 python -m experiments.latency --figure docs/figures/latency.svg

Keys 1.5 N(0, 1) in six dimensions; one random record of all is forgotten through the public interface and put back
after it, so that each deletion starts from the same state. The retained records are solved again by our cold solve, by
libsvm at its own tolerance and at 1e-12, and by general solvers of quadratic programmes, clarabel (interior point) and
quadprog (dual active set), each at its own tolerances and from keys to coefficients. Times drift, so each refit is
timed right beside a deletion of the same record, in turns before and after it, and ratios are taken within such pairs;
the refits push the memory out of the processor's caches, so deletions in a row take less.
Gaps are proven; deviations are those of the gate score from ours, with the offset that the certificate finds for the
coefficients, at the probes of [Ramesh2026]. n = 1,024 and 2,048 are ours.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.figure import Figure

import svmem
from experiments import ledger
from experiments.beside import filled, probes_of
from experiments.latency_claims import claim, table
from experiments.latency_picture import latency_figure
from experiments.ledger import Experiment, Tick, done, silent
from experiments.refits import REFITS, gram_of, version_of
from svmem import RBF, Problem
from svmem.errors import InvalidInput, SvmemError
from svmem.types import Coefficients, Json, Keys

__all__ = ["Config", "arms", "draw", "main", "run"]

FEWEST = 3  # refits of a method, however long they take


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes: the first four are those of [Ramesh2026]."""

    seeds: tuple[int, ...] = (0,)
    sizes: tuple[int, ...] = (120, 256, 384, 512, 1024, 2048)
    removals: int = 30
    width: int = 6
    nu: float = 0.4
    sigma: float = 2.0
    budget: float = 10.0
    most_quadprog: int = 1024

    def __post_init__(self) -> None:
        if min(self.removals, self.width) < 1 or not min(self.sizes) * self.nu > 1:
            raise InvalidInput("removals and width must be at least 1, and each size more than 1/nu")
        if not self.budget >= 0:  # also catches NaN
            raise InvalidInput(f"budget must be at least 0 seconds, got {self.budget}")


SAYS = {
    "seeds": "seeds of keys and of the records that go",
    "sizes": "records of a memory",
    "removals": "deletions a size",
    "width": "coordinates of a key",
    "nu": "C is 1 / (nu n), of the full memory",
    "sigma": "width of the kernel",
    "budget": f"seconds of a method at a size after which it is not refitted again, {FEWEST} times at least",
    "most_quadprog": "records beyond which quadprog is left out: its time grows with their cube",
}


@dataclass(slots=True)
class _Trials:
    """What was measured of one method: seconds of its refits and of the deletions beside them; gaps; deviations."""

    taken: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    deviations: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class _Bench:
    """A memory from which one record at a time is taken, beside refits of the others; it is put back afterwards."""

    def __init__(self, config: Config, n: int, seed: int) -> None:
        self.rng = np.random.default_rng([seed, n])
        self.keys = 1.5 * self.rng.standard_normal((n, config.width))
        self.problem = Problem.from_nu(config.nu, n, RBF(config.sigma))
        self.memory = filled(self.problem, self.keys, np.zeros((n, 1)))
        self.ids = np.array(self.memory.ids)  # by row; a record that comes back has a new one
        self.active = self.memory.alpha > 0
        self.methods = [name for name in REFITS if name != "quadprog" or n <= config.most_quadprog]
        self.trials = {name: _Trials() for name in self.methods}
        self.own, self.config = _Trials(), config
        self.rows: list[int] = []
        self.same_digest = 0

    def removal(self, row: int) -> None:
        """Time a deletion of this record beside each refit that has time left, then judge what each came to."""
        self.rows.append(row)
        kept = np.setdiff1d(np.arange(len(self.keys)), row)
        kept = kept[np.argsort(self.ids[kept])]  # the order of the memory
        found: dict[str, Coefficients] = {}
        deletions: list[float] = []
        for name in self.methods:
            mine = self.trials[name]
            if name != "cold" and sum(mine.taken) > self.config.budget and len(mine.taken) >= FEWEST:
                continue
            try:
                found[name], refit_s, deletion_s = self._pair(name, row, self.keys[kept])
            except SvmemError as error:
                mine.failures.append(str(error))
                continue
            finally:
                self._put_back(row)
            mine.taken.append(refit_s)
            mine.beside.append(deletion_s)
            deletions.append(deletion_s)
        self.own.taken.append(float(np.median(deletions)))
        self._judge(row, kept, found)

    def _pair(self, name: str, row: int, retained: Keys) -> tuple[Coefficients, float, float]:
        """Return the refit's coefficients and the seconds of refit and deletion, one right after the other."""
        answers: list[Coefficients] = []

        def refit() -> None:
            answers.append(REFITS[name](retained, self.problem))

        if len(self.rows) % 2:
            deletion_s, refit_s = self._forget_s(row), _seconds(refit)
        else:
            refit_s, deletion_s = _seconds(refit), self._forget_s(row)
        return answers[0], refit_s, deletion_s

    def _forget_s(self, row: int) -> float:
        return _seconds(lambda: self.memory.forget(ids=[self.ids[row]]))

    def _put_back(self, row: int) -> None:
        if self.ids[row] not in self.memory:
            (self.ids[row],) = self.memory.add(self.keys[row : row + 1], np.zeros((1, 1)))

    def _judge(self, row: int, kept: np.ndarray, found: dict[str, Coefficients]) -> None:
        """Note gaps and deviations of all that was found without this record, and whether our digest is the refit's."""
        retained = self.keys[kept]
        self.memory.forget(ids=[self.ids[row]])
        probes = probes_of(self.rng, retained, self.keys[row : row + 1])
        gram = gram_of(probes, retained, self.problem)
        certificate = svmem.certify(retained, self.memory.alpha, self.problem)
        ours = gram @ self.memory.alpha - certificate.offset
        self.own.gaps.append(certificate.gap)
        self.same_digest += self.memory.digest() == filled(self.problem, retained, np.zeros((len(kept), 1))).digest()
        for name, alpha in found.items():
            certificate = svmem.certify(retained, alpha, self.problem)
            theirs = gram @ alpha - certificate.offset
            self.trials[name].gaps.append(certificate.gap)
            self.trials[name].deviations.append(2 * float(np.abs(theirs - ours).max()))
        self._put_back(row)

    def in_a_row_s(self) -> float:
        """Return the median seconds of the same deletions with nothing between them but putting back."""
        taken = []
        for row in self.rows:
            taken.append(self._forget_s(row))
            self._put_back(row)
        return float(np.median(taken))

    def summary(self) -> list[Json]:
        """Return the row of our deletions, then one for each refit."""
        active, taken = self.active[self.rows], np.array(self.own.taken)
        parts = {"active": taken[active], "reserve": taken[~active]}
        own = {f"{name}_s": float(np.median(part)) if len(part) else None for name, part in parts.items()}
        own |= {"active": int(active.sum()), "same_digest": self.same_digest, "repairs": self.memory.repairs}
        own["in_a_row_s"] = self.in_a_row_s()
        rows = [{"method": "forget", "status": "ok"} | _quartiles("seconds", taken) | own | _worst(self.own)]
        for name, mine in self.trials.items():
            status = f"{len(mine.failures)} failed, first: {mine.failures[0]}" if mine.failures else "ok"
            row = {"method": name, "solver": version_of(name), "status": status} | _quartiles(
                "seconds", np.array(mine.taken)
            )
            rows.append(row | _quartiles("ratio", np.array(mine.taken) / np.array(mine.beside)) | _worst(mine))
        return rows


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _quartiles(name: str, numbers: np.ndarray) -> Json:
    """Return median and quartiles, and how many there are."""
    found = np.quantile(numbers, (0.5, 0.25, 0.75)).tolist() if len(numbers) else (None, None, None)
    return {"count": len(numbers)} | dict(
        zip((f"{name}_{what}" for what in ("median", "low", "high")), found, strict=True)
    )


def _worst(trials: _Trials) -> Json:
    return {"gap": max(trials.gaps, default=None), "deviation": max(trials.deviations, default=None)}


def arms(config: Config) -> list[str]:
    """Return the names of what is timed, in order."""
    return [f"{n}/{seed}" for seed in config.seeds for n in config.sizes]


def run(config: Config, *, finished: Sequence[Json] = (), tick: Tick = silent) -> Iterator[Json]:
    """Yield the rows of each size that is not finished: our deletions, and each refit."""
    missing = [arm for arm in arms(config) if not done(finished, arm)]
    if missing:
        warm = _Bench(config, max(64, int(2 / config.nu)), 0)  # all is compiled and loaded before anything is timed
        for row in (0, 1, 2, 3):
            warm.removal(row)
    for arm in arms(config):
        if arm in missing:
            n, seed = map(int, arm.split("/"))
            start, bench = time.perf_counter(), _Bench(config, n, seed)
            for number, row in enumerate(bench.rng.choice(n, min(config.removals, n), replace=False).tolist()):
                bench.removal(row)
                tick(arm, (number + 1) / config.removals)
            rows, elapsed = bench.summary(), time.perf_counter() - start
            said = {"arm": arm, "n": n, "seed": seed, "removals": len(bench.rows), "seconds": elapsed}
            for row in rows:
                yield said | row | {"last": row is rows[-1]}
        tick(arm, 1.0)


def draw(rows: Sequence[Json]) -> Figure:
    """Draw milliseconds over n, of deletions and refits, and how many times as long each refit takes."""
    return latency_figure(rows)


EXPERIMENT = Experiment("latency", __doc__ or "", Config, SAYS, run, arms, claim, draw, table)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment and return its exit code."""
    return ledger.main(EXPERIMENT, argv)


if __name__ == "__main__":
    sys.exit(main())
