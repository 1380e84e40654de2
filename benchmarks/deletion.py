"""Speed, measured side by side: forget and add through the public interface, and cold solves, against libsvm.

    python -m benchmarks.deletion [--sizes 120,256,384,512,1024,2048,4096,8192] [--json]

Keys 1.5 N(0, 1), d 6, nu 0.4, sigma 2, as in arXiv 2607.12204. libsvm is scikit-learn's OneClassSVM. Every ratio is
taken between neighbours in time: the machine's speed drifts. Times are medians; the proven gaps are of the same solve.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.svm import OneClassSVM

import svmem
from benchmarks.rows import print_table, provenance, write_rows
from svmem.demo.progress import Steps
from svmem.types import Json, Keys

NU, SIGMA, WIDTH = 0.4, 2.0, 6
TIGHTEST = 1e-12  # libsvm's stop tolerance; below, it no longer ends at every size
SIZES = (120, 256, 384, 512, 1024, 2048, 4096, 8192)
ZONES = ("active", "reserve")


def keys_of(n: int, d: int = WIDTH, seed: int = 0) -> Keys:
    """Return the paper's keys for timing."""
    return 1.5 * np.random.default_rng([seed, n, d]).standard_normal((n, d))


def filled(keys: Keys, problem: svmem.Problem) -> svmem.Memory:
    """Return a memory of these keys with one-number values."""
    memory = svmem.Memory(problem, key_dim=keys.shape[1], value_dim=1)
    memory.add(keys, np.zeros((len(keys), 1)))
    return memory


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def libsvm(keys: Keys, tolerance: float) -> OneClassSVM:
    """Return a one-class SVM fitted to the same problem as ours, ridge aside."""
    svm = OneClassSVM(nu=NU, tol=tolerance, cache_size=1000, shrinking=False)
    return svm.set_params(gamma=1 / SIGMA**2).fit(keys)


def libsvm_alpha(fitted: OneClassSVM, n: int, problem: svmem.Problem) -> np.ndarray:
    """Return its coefficients in our scale: their sum is 1 and their cap C."""
    alpha = np.zeros(n)
    dual = np.asarray(fitted.dual_coef_).ravel()
    alpha[fitted.support_] = dual / dual.sum()
    return np.clip(alpha, 0, problem.C)


def forgetting(n: int, pairs: int, refits: int) -> list[Json]:
    """Time forgets of active and of reserve records, and now and then a refit of the rest by libsvm beside them."""
    keys = keys_of(n)
    problem = svmem.Problem.from_nu(NU, n, svmem.RBF(SIGMA))
    memory = filled(keys, problem)
    ids, found = memory.ids, memory.solution
    reserve = np.isin(found.ids, found.reserve)  # for good: each forgotten key comes back before the next one goes
    rows = {"active": np.flatnonzero(~reserve), "reserve": np.flatnonzero(reserve)}
    rng = np.random.default_rng(1)
    taken: dict[str, list[float]] = {zone: [] for zone in ZONES}
    ratios: dict[str, list[float]] = {zone: [] for zone in ZONES}
    for pair in range(pairs):
        for zone in ZONES:
            row = int(rng.choice(rows[zone]))
            taken[zone].append(seconds(lambda: memory.forget(ids=[ids[row]])))  # noqa: B023 - called at once
            ids[row] = memory.add(keys[row : row + 1], np.zeros((1, 1)))[0]
        if pair % max(1, pairs // refits) == pairs // refits // 2:
            refit_s = seconds(lambda: libsvm(keys[1:], TIGHTEST))
            for zone in ZONES:
                ratios[zone].append(refit_s / float(np.median(taken[zone][-20:])))
    return [
        {
            "measure": "forget",
            "n": n,
            "victim": zone,
            "forget_ms": 1e3 * float(np.median(taken[zone])),
            "fastest_ms": 1e3 * min(taken[zone]),
            "refit_over_forget": float(np.median(ratios[zone])),
        }
        for zone in ZONES
    ]


def adding(n: int, d: int, sigma: float, name: str, rounds: int) -> Json:
    """Time adds of single keys and of one batch of 64 to a memory of n keys."""
    keys, more = keys_of(n, d), keys_of(64, d, seed=1)
    memory = filled(keys, svmem.Problem.from_nu(NU, n, svmem.RBF(sigma)))
    single, batch = [], []
    for _ in range(rounds):
        for key in more:
            single.append(seconds(lambda: memory.add(key[None], np.zeros((1, 1)))))  # noqa: B023 - called at once
        memory.forget(ids=memory.ids[n:])
        batch.append(seconds(lambda: memory.add(more, np.zeros((64, 1)))) / 64)
        memory.forget(ids=memory.ids[n:])
    return {
        "measure": "add",
        "n": n,
        "d": d,
        "sigma": name,
        "active_share": 1 - len(memory.solution.reserve) / n,
        "single_us": 1e6 * float(np.median(single)),
        "single_mean_us": 1e6 * float(np.mean(single)),
        "batch_us_a_key": 1e6 * float(np.median(batch)),
    }


def cold(n: int, rounds: int) -> Json:
    """Time cold solves against libsvm at its default tolerance, and prove the gap of both."""
    keys = keys_of(n)
    problem = svmem.Problem.from_nu(NU, n, svmem.RBF(SIGMA))
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(seconds(lambda: svmem.solve(keys, problem)))
        theirs.append(seconds(lambda: libsvm(keys, 1e-3)))
    other = libsvm_alpha(libsvm(keys, 1e-3), n, problem)
    return {
        "measure": "cold solve",
        "n": n,
        "ours_ms": 1e3 * float(np.median(ours)),
        "libsvm_ms": 1e3 * float(np.median(theirs)),
        "libsvm_over_ours": float(np.median(np.array(theirs) / np.array(ours))),
        "our_gap": svmem.certify(keys, svmem.solve(keys, problem).alpha, problem).gap,
        "libsvm_gap": svmem.certify(keys, other, problem).gap,
    }


def main(argv: list[str] | None = None) -> int:
    """Run the timings, print tables or JSON lines, and with --save keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of keys, comma-separated")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of tables")
    parser.add_argument("--save", type=Path, default=None, help="also write the rows there, as JSON lines")
    options = parser.parse_args(argv)
    sizes = [int(size) for size in options.sizes.split(",")]
    steps = Steps(quiet=options.json)
    svmem.solve(keys_of(64), svmem.Problem.from_nu(NU, 64, svmem.RBF(SIGMA)))  # compiled before anything is timed
    forgetting(120, 4, 1)
    rows: list[Json] = []
    with steps.step("Forgetting", len(sizes)) as advance:
        for n in sizes:
            rows.extend(forgetting(n, 200 if n <= 1024 else 40, 5))
            advance(1)
    with steps.step("Adding", 3) as advance:
        for sigma, name in ((svmem.median_sigma(keys_of(512, 64)), "median"), (8.0, "8"), (SIGMA, "2")):
            rows.append(adding(512, 64, sigma, name, 5))
            advance(1)
    with steps.step("Cold solves", len(sizes)) as advance:
        for n in sizes:
            rows.append(cold(n, 5))
            advance(1)
    rows = [row | provenance(f"python -m benchmarks.deletion --sizes {options.sizes}") for row in rows]
    if options.json:
        print("\n".join(json.dumps(row) for row in rows))
    else:
        for measure in ("forget", "add", "cold solve"):
            print_table([row for row in rows if row["measure"] == measure])
    if options.save:
        write_rows(options.save, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
