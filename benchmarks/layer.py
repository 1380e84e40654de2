"""The layer beside softmax attention: a model's step, one layer over long contexts, decoding, memory.

    python -m benchmarks.layer [--pairs 5] [--train 20] [--longest 16384] [--save benchmarks/results/layer.jsonl]

The yardstick is torch's fused `scaled_dot_product_attention` in the same model, in float32. Arms alternate, and a ratio
is the median over pairs, ours over softmax. Models are first trained for a few steps on this repository's own sources,
so that their keys are trained ones; single layers are timed on random and on redundant tokens (32 kinds, and noise).
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.rows import print_table, provenance, write_rows
from svmem.baselines import SoftmaxAttention
from svmem.demo.progress import Steps
from svmem.nn import HybridSVAttention, SVCache, gate_statistics
from svmem.nn.lm import LanguageModel, LMConfig, next_token_loss
from svmem.types import Json

WIDTH, HEADS, CHUNK, CAP = 256, 4, 64, 0.25
KINDS, NOISE = 32, 0.1
CONTEXT, DECODED = 32768, 64
NAMES = ("model", "memory", "layer", "decoding")
ARMS: dict[str, Callable[[LMConfig, int], nn.Module]] = {
    "ours": lambda config, _: HybridSVAttention(config.width, config.heads, config.bias, chunk=CHUNK, C=CAP),
    "softmax": lambda config, _: SoftmaxAttention(config.width, config.heads, config.bias),
}


def sources() -> Tensor:
    """Return the bytes of this repository's Python files."""
    files = sorted((Path(__file__).parents[1] / "src").rglob("*.py"))
    return torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in files)), dtype=torch.uint8).long()


def batches(t: int, b: int, seed: int) -> Tensor:
    """Return windows of the sources, (b, t + 1)."""
    text = sources()
    starts = np.random.default_rng([seed, t, b]).integers(len(text) - t - 1, size=b)
    return torch.stack([text[start : start + t + 1] for start in starts])


def model_of(arm: str, t: int) -> LanguageModel:
    """Return the 3.22M model with that mixer, from a fixed seed."""
    torch.manual_seed(0)
    return LanguageModel(LMConfig(width=WIDTH, heads=HEADS, block=t), ARMS[arm])


def step(model: LanguageModel, tokens: Tensor) -> float:
    """Forward, loss and backward; return the seconds."""
    start = time.perf_counter()
    model.zero_grad()
    next_token_loss(model(tokens[:, :-1]), tokens[:, 1:]).backward()
    return time.perf_counter() - start


def trained(arm: str, t: int, b: int, steps: int) -> LanguageModel:
    """Return a model after some steps of AdamW."""
    model = model_of(arm, t)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for number in range(steps):
        step(model, batches(t, b, number))
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return model


def figures_of(model: nn.Module) -> Json:
    """Return what a row says of the gates of a model's last forward pass."""
    found = gate_statistics(model)
    assert found is not None  # it has gates
    return {"support": found.mean_support, "worst_gap": found.worst_gap}


def paired(ours: Callable[[], float], softmax: Callable[[], float], pairs: int) -> Json:
    """Return median seconds of both and the median ratio of neighbours in time; the first pair warms up."""
    times = np.array([(ours(), softmax()) for _ in range(pairs + 1)])[1:]
    ratio = float(np.median(times[:, 0] / times[:, 1]))
    return {"ours_s": float(np.median(times[:, 0])), "softmax_s": float(np.median(times[:, 1])), "ratio": ratio}


def time_model(t: int, b: int, train: int, pairs: int) -> Json:
    """Time a training step of the whole model."""
    arms = {arm: trained(arm, t, b, train) for arm in ARMS}
    tokens = batches(t, b, -1 % 2**31)
    row: Json = {"measure": "model step", "t": t, "batch": b, "keys": f"trained for {train} steps"}
    row |= paired(lambda: step(arms["ours"], tokens), lambda: step(arms["softmax"], tokens), pairs)
    return row | figures_of(arms["ours"])


def tokens_of(kind: str, t: int) -> Tensor:
    """Return random or redundant inputs of a layer, (1, t, WIDTH)."""
    generator = torch.Generator().manual_seed(t)
    if kind == "random":
        return torch.randn(1, t, WIDTH, generator=generator)
    centres = torch.randn(KINDS, WIDTH, generator=generator)
    picked = centres[torch.randint(KINDS, (t,), generator=generator)]
    return (picked + NOISE * torch.randn(t, WIDTH, generator=generator))[None]


def pass_through(layer: nn.Module, x: Tensor) -> float:
    """Forward and backward of one layer; return the seconds."""
    x = x.clone().requires_grad_()
    start = time.perf_counter()
    layer(x).square().mean().backward()
    return time.perf_counter() - start


def time_layer(kind: str, t: int, pairs: int) -> Json:
    """Time forward and backward of one layer."""
    torch.manual_seed(0)
    config = LMConfig(width=WIDTH, heads=HEADS)
    ours, softmax, x = ARMS["ours"](config, 0), ARMS["softmax"](config, 0), tokens_of(kind, t)
    row: Json = {"measure": "layer", "t": t, "batch": 1, "keys": kind}
    row |= paired(lambda: pass_through(ours, x), lambda: pass_through(softmax, x), pairs)
    return row | figures_of(ours)


class FullCache:
    """Decoding with softmax attention over all keys and values so far, in room that was made beforehand."""

    def __init__(self, layer: SoftmaxAttention, x: Tensor, room: int) -> None:
        self.layer, self.length = layer, x.shape[1]
        self.keys, self.values = (torch.zeros(1, HEADS, room, WIDTH // HEADS) for _ in range(2))
        _, key, value = self.project(x)
        self.keys[:, :, : self.length], self.values[:, :, : self.length] = key, value

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return query, key and value of each head."""
        return tuple(self.layer.split(part) for part in self.layer.qkv_proj(x).chunk(3, dim=-1))

    def read(self, x: Tensor) -> Tensor:
        """Take up one token (1, 1, WIDTH) and return the layer's output."""
        query, key, value = self.project(x)
        self.keys[:, :, self.length], self.values[:, :, self.length] = key[:, :, 0], value[:, :, 0]
        self.length += 1
        out = scaled_dot_product_attention(query, self.keys[:, :, : self.length], self.values[:, :, : self.length])
        return self.layer.out_proj(self.layer.join(out))


@torch.no_grad()
def time_decoding(kind: str, exact: bool, pairs: int) -> Json:
    """Time the decoding of a chunk of tokens, one by one, after a long context."""
    torch.manual_seed(0)
    ours, softmax = HybridSVAttention(WIDTH, HEADS, chunk=CHUNK, C=CAP), SoftmaxAttention(WIDTH, HEADS)
    x = tokens_of(kind, CONTEXT + DECODED * (pairs + 1))
    cache = SVCache(ours, exact=exact)
    ours(x[:, :CONTEXT], cache=cache)
    full = FullCache(softmax, x[:, :CONTEXT], x.shape[1])

    def decode(call: Callable[[Tensor], Tensor], start: int) -> float:
        begin = time.perf_counter()
        for position in range(start, start + DECODED):
            call(x[:, position : position + 1])
        return time.perf_counter() - begin

    row: Json = {"measure": "decoding", "t": CONTEXT, "batch": 1, "keys": f"{kind}, {'exact' if exact else 'bounded'}"}
    row |= paired(
        lambda: decode(lambda token: ours(token, cache=cache), cache.length),
        lambda: decode(full.read, full.length),
        pairs,
    )
    sizes = [len(cache.support(0, head)[0]) for head in range(HEADS)]
    return row | {"support": float(np.mean(sizes)), "worst_gap": cache.report().worst_gap}


def resident(field: str) -> int:
    """Return a size of this process in bytes, as Linux has it: VmRSS now, VmHWM at its peak."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def peak_memory(arm: str, t: int) -> int:
    """Return the bytes that one step takes at its peak beyond the model."""
    model, tokens = model_of(arm, t), batches(t, 1, 0)
    step(model_of(arm, 128), batches(128, 1, 0))  # loads and compiles
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    step(model, tokens)
    return resident("VmHWM") - before


def compare_memory(t: int) -> Json:
    """Return the peak memory of a step of both models, each in a process of its own."""
    found = {}
    for arm in ARMS:
        command = [sys.executable, "-m", "benchmarks.layer", "--peak", arm, "--longest", str(t)]
        found[arm] = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {
        "measure": "memory of a step", "t": t, "batch": 1, "keys": "untrained",
        "ours_mb": found["ours"] / 1e6, "softmax_mb": found["softmax"] / 1e6, "ratio": found["ours"] / found["softmax"],
    }  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    out = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--pairs", type=int, default=5, help="timed pairs for each measure (5)")
    out.add_argument("--train", type=int, default=20, help="training steps before a model is timed (20)")
    out.add_argument("--longest", type=int, default=16384, help="longest context of a single layer (16384)")
    out.add_argument("--only", choices=NAMES, help="only measures of this name")
    out.add_argument("--json", action="store_true", help="JSON lines instead of tables")
    out.add_argument("--save", type=Path, default=None, help="also write the rows there, as JSON lines")
    out.add_argument("--peak", choices=list(ARMS), default=None, help=argparse.SUPPRESS)
    return out


def measures(options: argparse.Namespace) -> list[Callable[[], Json]]:
    """Return everything that is to be measured."""
    lengths = [t for t in (1024, 2048, 4096, 8192, 16384, 32768) if t <= options.longest]
    out: list[tuple[str, Callable[[], Json]]] = [
        ("model", lambda: time_model(256, 16, options.train, options.pairs)),
        ("model", lambda: time_model(4096, 1, options.train, options.pairs)),
        ("memory", lambda: compare_memory(4096)),
    ]
    for kind in ("redundant", "random"):
        out += [("layer", lambda kind=kind, t=t: time_layer(kind, t, options.pairs)) for t in lengths]
    out += [
        ("decoding", lambda exact=exact: time_decoding("redundant", exact, options.pairs)) for exact in (True, False)
    ]
    return [measure for name, measure in out if options.only in (None, name)]


def merged(path: Path, rows: list[Json]) -> list[Json]:
    """Return the rows of a file with these in the place of those that say the same thing."""
    old = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    names = {tuple(row[field] for field in ("measure", "t", "keys")) for row in rows}
    return [row for row in old if tuple(row[field] for field in ("measure", "t", "keys")) not in names] + rows


def main(argv: list[str] | None = None) -> int:
    """Measure, print tables or JSON lines, and with --save keep the rows."""
    options = parser().parse_args(argv)
    torch.set_num_threads(2)
    if options.peak:
        print(peak_memory(options.peak, options.longest))
        return 0
    steps, rows, todo = Steps(quiet=options.json), [], measures(options)
    command = f"python -m benchmarks.layer --pairs {options.pairs} --train {options.train} --longest {options.longest}"
    with steps.step("Layers side by side", len(todo)) as advance:
        for measure in todo:
            rows.append(measure() | provenance(command) | {"torch": torch.__version__})
            advance(1)
            if options.save:
                write_rows(options.save, merged(options.save, rows))
    if options.json:
        print("\n".join(json.dumps(row) for row in rows))
    else:
        for names in ({"ours_s"}, {"ours_mb"}):
            if some := [row for row in rows if names <= row.keys()]:
                print_table(some)
    return 0


if __name__ == "__main__":
    sys.exit(main())
