"""The exact gate beside the paper's training path: time, proven gap, gradient error, and a curve of training with each.

    python -m benchmarks.gate [--pairs 7] [--batch 4] [--steps 200] [--seeds 3] [--json] [--save FILE]

The paper's path (arXiv 2607.12204) is 80 float32 FISTA steps and one masked solve, written here from its description.
Both gates get ridge 1e-3, C 0.1 and the same float32 keys; calls alternate, and a ratio is the median over pairs.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import svmem
from benchmarks.deletion import seconds
from benchmarks.rows import print_table, provenance, write_rows
from benchmarks.teacher import train_both
from svmem.baselines.fista_gate import fista_gate
from svmem.demo.progress import Steps
from svmem.nn import gate
from svmem.types import Coefficients, Json
from tests.oracles.gate_derivatives import dense_jacobian

RIDGE, CAP = 1e-3, 0.1
SHAPE, BOUNDARIES = (4, 128, 32), (32, 64, 96, 128)  # heads, tokens, width
Way = Callable[[Tensor, float], Tensor]  # keys and sigma to dense coefficients


def sphere(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return directions, uniformly distributed."""
    keys = rng.standard_normal(shape)
    return keys / np.linalg.norm(keys, axis=-1, keepdims=True)


def redundant(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return near copies of eight centres in each head."""
    b, h, t, d = shape
    centres = rng.standard_normal((b, h, 8, d))
    picked = np.take_along_axis(centres, rng.integers(8, size=(b, h, t, 1)), axis=2)
    return picked + 0.02 * rng.standard_normal(shape)


KEYS: dict[str, tuple[Callable[[np.random.Generator, tuple[int, ...]], np.ndarray], float]] = {
    "random": (lambda rng, shape: rng.standard_normal(shape), 6.0),
    "redundant": (redundant, 6.0),
    "unit sphere": (sphere, 1.0),
}


def exact(keys: Tensor, sigma: float) -> Tensor:
    """Return the dense coefficients of the exact gate."""
    return gate(keys, BOUNDARIES, C=CAP, sigma=sigma, ridge=RIDGE).dense(keys.shape[2])


def fista(keys: Tensor, sigma: float) -> Tensor:
    """Return the dense coefficients of the paper's training path."""
    return fista_gate(keys, BOUNDARIES, C=CAP, sigma=sigma, ridge=RIDGE)


def projected(alpha: Coefficients) -> Coefficients:
    """Return the nearest point of the capped simplex, to the last bits of float64."""
    low, high = alpha.min() - 1, alpha.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(alpha - middle, 0, CAP).sum() > 1 else (low, middle)
    return np.clip(alpha - high, 0, CAP)


def proven_gap(keys: np.ndarray, alpha: Tensor, sigma: float) -> float:
    """Return the largest certified gap over a batch, after a projection onto the capped simplex in float64."""
    problem = svmem.Problem(svmem.RBF(sigma), C=CAP, ridge=RIDGE)
    found = []
    for i, j in np.ndindex(*keys.shape[:2]):
        for k, n in enumerate(BOUNDARIES):
            point = projected(alpha[i, j, k, :n].detach().double().numpy())
            found.append(svmem.certify(keys[i, j, :n], point, problem).gap)
    return max(found)


def slope(way: Way, keys: Tensor, sigma: float) -> Tensor:
    """Return the gradient to the keys of a fixed linear function of the coefficients."""
    leaf = keys.detach().clone().requires_grad_()
    alpha = way(leaf, sigma)
    weight = torch.arange(alpha.numel(), dtype=torch.float64).view(alpha.shape).sin()
    return torch.autograd.grad((alpha.double() * weight).sum(), leaf)[0].double()


def true_slope(keys: np.ndarray, sigma: float) -> Tensor:
    """Return the same gradient from one dense system for each problem."""
    b, h, t, _ = keys.shape
    size = b * h * len(BOUNDARIES) * t
    weight, out = np.sin(np.arange(float(size))).reshape(b, h, len(BOUNDARIES), t), np.zeros(keys.shape)
    for i, j in np.ndindex(b, h):
        for k, n in enumerate(BOUNDARIES):
            found = dense_jacobian(keys[i, j], n, CAP, sigma, RIDGE)
            out[i, j, :n] += np.einsum("i,ijd->jd", weight[i, j, k, :n], found.alpha_keys)
    return torch.tensor(out)


def compare(name: str, pairs: int, batch: int) -> Json:
    """Return times, gaps and gradient errors of both gates on one kind of keys."""
    make, sigma = KEYS[name]
    shape = (batch, *SHAPE)
    keys = torch.tensor(make(np.random.default_rng(0), shape), dtype=torch.float32)
    wide, few = keys.double().numpy(), keys[:1, :1].double()
    truth = true_slope(few.numpy(), sigma)
    ways: dict[str, Way] = {"ours": exact, "fista": fista}
    times: dict[str, list[float]] = {f"{way}_{part}": [] for way in ways for part in ("forward", "step")}
    row: Json = {"measure": "gate", "keys": name, "shape": "x".join(map(str, shape)), "pairs": pairs}
    for turn in range(pairs + 1):  # the first warms both up
        for way, call in ways.items():
            forward, step = seconds(lambda: call(keys, sigma)), seconds(lambda: slope(call, keys, sigma))  # noqa: B023
            if turn:
                times[f"{way}_forward"].append(forward)
                times[f"{way}_step"].append(step)
    row |= {f"{part}_ms": 1e3 * float(np.median(spent)) for part, spent in times.items()}
    for part in ("forward", "step"):
        row[f"{part}_ratio"] = float(np.median(np.array(times[f"fista_{part}"]) / np.array(times[f"ours_{part}"])))
    for way, call in ways.items():
        alpha = call(keys.double(), sigma)
        row[f"{way}_gap"] = proven_gap(wide, alpha, sigma)
        row[f"{way}_outside"] = float(
            torch.maximum(-alpha, alpha - torch.tensor(CAP, dtype=alpha.dtype)).clamp_min(0).max()
        )
        error = slope(call, few, sigma) - truth
        row[f"{way}_gradient_error"] = float(error.norm() / truth.norm())
    return row


def main(argv: list[str] | None = None) -> int:
    """Run the comparison, print tables or JSON lines, and with --save keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7, help="timed pairs of calls for each kind of keys (7)")
    parser.add_argument("--batch", type=int, default=4, help="sequences in a timed call, of 4 heads each (4)")
    parser.add_argument("--steps", type=int, default=200, help="training steps of a student (200)")
    parser.add_argument("--seeds", type=int, default=3, help="students for each kind of tokens (3)")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of tables")
    parser.add_argument("--save", type=Path, default=None, help="also write the rows there, as JSON lines")
    options = parser.parse_args(argv)
    if min(options.pairs, options.batch, options.steps, options.seeds) < 1:
        parser.error("pairs, batch, steps and seeds must be at least 1")
    steps, rows = Steps(quiet=options.json), []
    with steps.step("Gates side by side", len(KEYS)) as advance:
        for name in KEYS:
            rows.append(compare(name, options.pairs, options.batch))
            advance(1)
    with steps.step("Students of a fixed teacher", 2 * options.seeds) as advance:
        for tokens in ("random", "redundant"):
            for seed in range(options.seeds):
                rows += train_both(tokens, seed, options.steps)
                advance(1)
    command = "python -m benchmarks.gate " + " ".join(
        f"--{name} {getattr(options, name)}" for name in ("pairs", "batch", "steps", "seeds")
    )
    rows = [row | provenance(command) | {"torch": torch.__version__} for row in rows]
    if options.json:
        print("\n".join(json.dumps(row) for row in rows))
    else:
        for measure in ("gate", "training"):
            print_table([row for row in rows if row["measure"] == measure])
    if options.save:
        write_rows(options.save, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
