"""Exactness, measured: deletions against cold solves, feasibility under churn, and the residual after very many steps.

    python -m benchmarks.audit [--trials 300] [--steps 100000] [--json]

The paper's figures beside ours are those of arXiv 2607.12204 and of its released code, run by us.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import svmem
from benchmarks.contexts import CONTEXTS, Context, clustered
from benchmarks.rows import print_table, provenance, write_rows
from svmem.demo.progress import Steps
from svmem.types import Coefficients, Json, Keys

NU, SIGMA = 0.4, 2.0
SETTINGS = (2, 20)  # records forgotten a trial
RESULTS = Path(__file__).parent / "results" / "audit.jsonl"


def filled(problem: svmem.Problem, keys: Keys) -> svmem.Memory:
    """Return a memory of these keys, each with its own number as value."""
    memory = svmem.Memory(problem, key_dim=keys.shape[1], value_dim=1)
    memory.add(keys, np.arange(len(keys), dtype=np.float64)[:, None])
    return memory


def feasible(alpha: Coefficients, problem: svmem.Problem) -> bool:
    """Return whether coefficients lie in [0, C] exactly and sum to 1."""
    return bool(alpha.min() >= 0 and alpha.max() <= problem.C and abs(alpha.sum() - 1) <= 1e-14)


def one_trial(context: Context, forgotten: int, seed: list[int]) -> Json:
    """Forget some records one by one, and compare with a memory that never held them."""
    rng = np.random.default_rng(seed)
    n = int(np.exp(rng.uniform(np.log(20 + forgotten), np.log(400))))
    keys = context(rng, n)
    problem = svmem.Problem.from_nu(NU, n, svmem.RBF(SIGMA))
    values = np.arange(n, dtype=np.float64)[:, None]
    memory = filled(problem, keys)
    gone = rng.choice(n, forgotten, replace=False)
    repairs = sum(memory.forget(ids=[int(i)]).repairs for i in gone)
    stays = rng.permutation(np.setdiff1d(np.arange(n), gone))
    refit = svmem.Memory(problem, key_dim=keys.shape[1], value_dim=1)
    refit.add(keys[stays], values[stays])
    probes = np.vstack([keys, keys + 0.1 * rng.standard_normal(keys.shape)])
    ours, theirs, order = memory.solution, refit.solution, np.argsort(stays)
    certificate = memory.certify()
    return {
        "n": n,
        "repairs": repairs,
        "feasible": feasible(ours.alpha, problem),
        "same_partition": np.array_equal(ours.margin, np.sort(stays[theirs.margin]))
        and np.array_equal(ours.bound, np.sort(stays[theirs.bound])),
        "same_digest": memory.digest() == refit.digest(),
        "deviation": float(np.abs(memory.score(probes) - refit.score(probes)).max()),
        "alpha_deviation": float(np.abs(ours.alpha - theirs.alpha[order]).max()),
        "score_bound": certificate.score_bound,
        "kkt": certificate.max_kkt,
    }


def deletions(trials: int, advance: Callable[[int], None]) -> Iterator[Json]:
    """Yield one row a context and setting."""
    for number, (name, context) in enumerate(CONTEXTS.items()):
        for forgotten in SETTINGS:
            rows, failures = [], []
            for trial in range(trials):
                try:
                    rows.append(one_trial(context, forgotten, [number, forgotten, trial]))
                except svmem.errors.SvmemError as error:
                    failures.append(str(error))
                advance(1)
            yield {
                "measure": "deletions",
                "context": name,
                "forgotten": forgotten,
                "trials": trials,
                "completed": len(rows),
                "failures": failures,
                "repairs": sum(row["repairs"] for row in rows),
                "infeasible": sum(not row["feasible"] for row in rows),
                "same_partition": sum(row["same_partition"] for row in rows),
                "same_digest": sum(row["same_digest"] for row in rows),
                "worst_deviation": max((row["deviation"] for row in rows), default=None),
                "worst_alpha_deviation": max((row["alpha_deviation"] for row in rows), default=None),
                "worst_score_bound": max((row["score_bound"] for row in rows), default=None),
                "worst_kkt": max((row["kkt"] for row in rows), default=None),
            }


def churn(runs: int, advance: Callable[[int], None]) -> Json:
    """Return how many runs of 200 random adds and forgets on clustered keys ever leave the feasible set."""
    outside, repairs, infeasible = 0.0, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([99, seed])
        problem = svmem.Problem.from_nu(NU, 40, svmem.RBF(SIGMA))
        memory = filled(problem, clustered(rng, 40))
        bad = False
        for _ in range(200):
            repairs += random_step(memory, rng, clustered, 40)
            alpha = memory.solution.alpha
            beyond = max(float(-alpha.min()), float(alpha.max() - problem.C), 0.0)
            outside, bad = max(outside, beyond), bad or not feasible(alpha, problem)
        infeasible += bad
        advance(1)
    return {"measure": "churn", "runs": runs, "infeasible": infeasible, "outside": outside, "repairs": repairs}


def random_step(memory: svmem.Memory, rng: np.random.Generator, context: Context, n: int) -> int:
    """Add or forget one record at random, keeping near n. Return the repairs it took."""
    before = memory.repairs
    if rng.random() < len(memory) / (2 * n):
        memory.forget(ids=[int(rng.choice(memory.ids))])
    else:
        memory.add(context(rng, 1), np.zeros((1, 1)))
    return memory.repairs - before


def long_run(steps: int, advance: Callable[[int], None]) -> Json:
    """Return the largest KKT residual over a long random history, early and late, and whether it ends in the refit."""
    rng = np.random.default_rng(5)
    problem = svmem.Problem.from_nu(NU, 100, svmem.RBF(SIGMA))
    memory = filled(problem, clustered(rng, 100))
    every = max(1, steps // 200)
    residuals, repairs = [], 0
    for step in range(steps):
        repairs += random_step(memory, rng, clustered, 100)
        if (step + 1) % every == 0:
            residuals.append(memory.certify().max_kkt)
            advance(every)
    refit = svmem.Memory(problem, key_dim=4, value_dim=1)
    order = rng.permutation(len(memory))
    refit.add(memory.keys[order], memory.values[order])
    half = len(residuals) // 2
    return {
        "measure": "long run",
        "steps": steps,
        "repairs": repairs,
        "worst_kkt_first_half": max(residuals[:half]),
        "worst_kkt_second_half": max(residuals[half:]),
        "same_digest": memory.digest() == refit.digest(),
    }


def main(argv: list[str] | None = None) -> int:
    """Run the audit, print a table or JSON lines, and with --save keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=300, help="trials a context and setting (300)")
    parser.add_argument("--runs", type=int, default=30, help="runs of 200 steps on clustered keys (30)")
    parser.add_argument("--steps", type=int, default=100_000, help="steps of the long run (100,000)")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a table")
    parser.add_argument("--save", type=Path, default=None, help=f"also write the rows there, e.g. {RESULTS.name}")
    options = parser.parse_args(argv)
    if min(options.trials, options.runs) < 1 or options.steps < 2:
        parser.error("trials and runs must be at least 1, steps at least 2")
    steps = Steps(quiet=options.json)
    rows: list[Json] = []
    with steps.step("Deletions", options.trials * len(CONTEXTS) * len(SETTINGS)) as advance:
        rows.extend(deletions(options.trials, advance))
    with steps.step("Churn on clustered keys", options.runs) as advance:
        rows.append(churn(options.runs, advance))
    with steps.step("Long run", options.steps) as advance:
        rows.append(long_run(options.steps, advance))
    command = f"python -m benchmarks.audit --trials {options.trials} --runs {options.runs} --steps {options.steps}"
    rows = [row | provenance(command) for row in rows]
    if options.json:
        print("\n".join(json.dumps(row) for row in rows))
    else:
        for measure in ("deletions", "churn", "long run"):
            print_table([row for row in rows if row["measure"] == measure])
    if options.save:
        write_rows(options.save, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
