"""Check the batched gates on one device: their tests there, agreement with the CPU, and times beside fused softmax.

    python -m scripts.device_check [--device cuda] [--small] [--save rows.jsonl]

Prints every row as a line of JSON as soon as it is measured, and in the end a table a measure. Exit codes: 0 all is
well, 1 a test or a comparison failed, 3 there is no such device.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

import svmem
from benchmarks.rows import print_table, provenance, write_rows
from svmem.baselines import SoftmaxAttention
from svmem.nn import HybridSVAttention
from svmem.nn.batched.gate import gate_on_device, gate_on_device_backward
from svmem.nn.batched.solution import FAILED, OPTIMAL, BatchedSolution
from svmem.types import Json

NO_DEVICE = 3
LIMIT_S = 280.0  # for everything
CAP, RIDGE, CHUNK, HEADS, HEAD_DIM = 0.25, 1e-3, 64, 8, 64
KINDS, NOISE = 32, 0.1  # of redundant tokens
TOKENS = 16384  # in a batch that is timed
ALPHA, GRADIENT = 1e-12, 1e-8  # largest differences between the devices, the second relative to the largest entry
NUMBERS = ("problems", "failed", "forward_s", "backward_s"), ("softmax_s", "ours_s", "ratio")
GATE, LAYER = (
    {"measure": name, "keys": "", "t": 0, **dict.fromkeys(numbers), "note": ""}
    for name, numbers in zip(("gate", "layer"), NUMBERS, strict=True)
)
TESTS = [f"tests/nn/batched/test_{name}.py" for name in ("solution", "gradient", "operator", "host")]


def main(argv: list[str] | None = None) -> int:
    """Run all checks and return the exit code."""
    parser = argparse.ArgumentParser(description="Check the batched gates on one device.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes that a CPU does in a minute")
    parser.add_argument("--save", type=Path, help="write the rows here, too")
    args = parser.parse_args(argv)
    device = torch.device(args.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("There is no GPU here (torch.cuda.is_available() is false), so nothing was checked.", file=sys.stderr)
        return NO_DEVICE
    sizes, kinds = [128] if args.small else [256, 4096, 16384], ("random", "redundant")
    start = time.perf_counter()
    rows = [reported(agreement(kind, device, 64 if args.small else 192)) for kind in kinds]
    for measure, empty in ((time_gate, GATE), (time_layer, LAYER)):
        for t in sizes:
            rows += [reported(attempted(measure, empty, kind, t, device, args.small)) for kind in kinds]
    rows.append(reported(run_tests(device, args.small, LIMIT_S - (time.perf_counter() - start))))
    for measure in ("agreement", "gate", "layer", "tests"):
        print_table([{k: v for k, v in row.items() if k != "torch"} for row in rows if row["measure"] == measure])
    if args.save:
        write_rows(args.save, rows)
    return 0 if all(row.get("passed", True) for row in rows) else 1


def reported(row: Json) -> Json:
    """Print a row as soon as it is there, since the time on a device may end before the rest is."""
    row = row | provenance("python -m scripts.device_check") | {"torch": torch.__version__}
    print(json.dumps(row), flush=True)
    return row


def run_tests(device: torch.device, small: bool, limit_s: float) -> Json:
    """Run the batched gates' tests on the device."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", *(TESTS[-1:] if small else TESTS)]
    environment = os.environ | {"SVMEM_TEST_DEVICE": str(device)}
    try:
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit_s)
        passed, said = ran.returncode == 0, ran.stdout
    except subprocess.TimeoutExpired as late:
        passed, said = False, f"{(late.stdout or b'').decode()}\nnot done within {limit_s:.0f} s"
    print(said[-4000:], file=sys.stderr)
    row: Json = {"measure": "tests", "device": name_of(device), "passed": passed}
    return row | {"said": (said.strip().splitlines() or [""])[-1], "seconds": time.perf_counter() - start}


def name_of(device: torch.device) -> str:
    """Return the name that the device goes by."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def tokens_of(kind: str, shape: tuple[int, ...]) -> Tensor:
    """Return random tokens, or redundant ones: a few kinds, and noise."""
    generator = torch.Generator().manual_seed(shape[-2])
    if kind == "random":
        return torch.randn(shape, generator=generator)
    centres = torch.randn(KINDS, shape[-1], generator=generator)
    return centres[torch.randint(KINDS, shape[:-1], generator=generator)] + NOISE * torch.randn(
        shape, generator=generator
    )


class Gates:
    """The gates of all chunks of one batch of unit keys, and their gradient, on one device."""

    def __init__(self, kind: str, shape: tuple[int, int, int, int], device: torch.device) -> None:
        b, h, t, _ = shape
        self.keys = nn.functional.normalize(tokens_of(kind, shape), dim=-1).to(device)
        self.valid = torch.ones(b, t, dtype=torch.bool, device=device)
        self.sigma = torch.ones(h, dtype=torch.float64, device=device)
        self.stops = list(range(CHUNK, t, CHUNK)) or [t]
        self.problem = svmem.Problem(kernel=svmem.RBF(1.0), C=CAP, ridge=RIDGE)

    def solve(self) -> BatchedSolution:
        """Return all optima."""
        problem = self.problem
        numbers = (problem.C, problem.total[0], problem.n_min, problem.ridge)
        return gate_on_device(self.keys, self.valid, self.stops, self.sigma, *numbers)

    def pull(self, found: BatchedSolution) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients for fixed upstream gradients."""
        up = torch.linspace(-1, 1, found.alpha.shape[-1], dtype=torch.float64, device=found.alpha.device)
        off = torch.ones_like(found.offset)
        state = (found.alpha, found.zone, found.status)
        return gate_on_device_backward(up.expand_as(found.alpha), off, self.keys, self.sigma, *state, RIDGE)


def agreement(kind: str, device: torch.device, t: int) -> Json:
    """Compare optima and gradients with those of the CPU, and some optima with the cold solve."""
    there, here = (Gates(kind, (2, 2, t, HEAD_DIM), where) for where in (device, torch.device("cpu")))
    found, expected = there.solve(), here.solve()
    grads = zip(there.pull(found), here.pull(expected), strict=True)
    gradient = max(float((one.cpu() - other).abs().max() / other.abs().max().clamp(min=1e-12)) for one, other in grads)
    apart = float((found.alpha.cpu() - expected.alpha).abs().max())
    same = bool((found.zone.cpu() == expected.zone).all()) and bool((found.status.cpu() == OPTIMAL).all())
    cold = 0.0
    for k, stop in enumerate(here.stops):
        truth = svmem.solve(here.keys[1, 1, :stop].double().numpy(), here.problem)
        cold = max(cold, float(abs(found.alpha[1, 1, k, :stop].cpu().numpy() - truth.alpha).max()))
    return {
        "measure": "agreement",
        "keys": kind,
        "t": t,
        "problems": found.status.numel(),
        "same partitions": same,
        "alpha": apart,
        "alpha to cold solve": cold,
        "gradient": gradient,
        "passed": same and max(apart, cold) <= ALPHA and gradient <= GRADIENT,
    }


def attempted(measure: Callable[..., Json], empty: Json, kind: str, t: int, device: torch.device, small: bool) -> Json:
    """Return a measure's row, with a note where memory or the operator for this device is missing."""
    row = empty | {"keys": kind, "t": t}
    try:
        return row | measure(kind, t, device, small)
    except (torch.OutOfMemoryError, NotImplementedError) as error:
        return row | {"note": str(error).strip().splitlines()[0][:80]}


def seconds(work: Callable[[], object], device: torch.device, small: bool) -> float:
    """Return the median time of a few runs, the device's queue empty before and after."""
    times = []
    for _ in range(2 if small else 4):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
    return sorted(times[1:])[len(times[1:]) // 2]


def time_gate(kind: str, t: int, device: torch.device, small: bool) -> Json:
    """Time the gates of a batch of about TOKENS tokens, forward and backward."""
    gates = Gates(kind, (1 if small else max(1, TOKENS // t), HEADS, t, HEAD_DIM), device)
    found = gates.solve()
    return {
        "problems": found.status.numel(),
        "failed": int((found.status == FAILED).sum()),
        "forward_s": seconds(gates.solve, device, small),
        "backward_s": seconds(lambda: gates.pull(found), device, small),
    }


def time_layer(kind: str, t: int, device: torch.device, small: bool) -> Json:
    """Time forward and backward of a whole layer beside torch's fused softmax attention in its place."""
    width = HEADS * HEAD_DIM
    x = tokens_of(kind, (1 if small else max(1, TOKENS // t), t, width)).to(device).requires_grad_()
    softmax = SoftmaxAttention(width, HEADS).to(device)
    ours = HybridSVAttention(width, HEADS, chunk=CHUNK, C=CAP, ridge=RIDGE).to(device)
    softmax_s = seconds(lambda: softmax(x).square().mean().backward(), device, small)
    ours_s = seconds(lambda: ours(x).square().mean().backward(), device, small)
    return {"softmax_s": softmax_s, "ours_s": ours_s, "ratio": ours_s / softmax_s}


if __name__ == "__main__":
    sys.exit(main())
