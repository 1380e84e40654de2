"""The runs of the language model that stand beside the paper's, in families that are compared within themselves."""

from dataclasses import dataclass
from pathlib import Path

from experiments.files import ROWS, RUN, read_json, read_rows
from svmem.types import Json

__all__ = ["FAMILIES", "Family", "Run", "finished"]


@dataclass(frozen=True, slots=True)
class Run:
    """One training. `name` is its folder's; `options` follow the family's; the window matches the state of `like`."""

    name: str
    mixer: str
    seed: int = 0
    options: tuple[str, ...] = ()
    like: str | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """Runs of one size on one text. `dictionary`: on gcide or what the user names, else on Wikipedia pages.

    `gpu`: so large that it is run where there is one, and nowhere else.
    """

    name: str
    title: str
    options: tuple[str, ...]
    runs: tuple[Run, ...]
    dictionary: bool = True
    gpu: bool = False

    def command(self, run: Run, results: Path, data: Path | None, device: str = "cpu") -> list[str]:
        """Return what `python -m experiments.lm` is asked for this run, in a folder below `results`."""
        folder = results / self.name
        argv = ["train", "--mixer", run.mixer, "--seed", str(run.seed), "--out", str(folder / run.name)]
        argv += ["--device", device] if device != "cpu" else []
        argv += [*self.options, *run.options]
        argv += ["--data", str(data)] if data is not None and self.dictionary else []
        return argv + (["--match", str(folder / run.like)] if run.like else [])


def pairs(*seeds: int) -> tuple[Run, ...]:
    """Return for each seed the hybrid, then the window that matches its state."""
    each = [(Run(f"sv-{s}", "sv", s), Run(f"window-{s}", "window", s, like=f"sv-{s}")) for s in seeds]
    return tuple(run for pair in each for run in pair)


def others(*mixers: str) -> tuple[Run, ...]:
    """Return a run of seed 0 for each of these mixers."""
    return tuple(Run(f"{mixer}-0", mixer) for mixer in mixers)


SMALL = ("--width", "128")
TEN = ("--width", "384", "--layers", "6", "--heads", "6", "--block", "512")
LARGE = (*TEN, "--batch", "4", "--steps", "200", "--every", "20", "--windows", "16")
THIRTY_TWO = ("--width", "512", "--layers", "10", "--heads", "8", "--block", "512")
FULL = ("--steps", "6000", "--limit-bytes", "20000000")
# In runs of 200 to 500 steps the rate rises for 30: the switches tell what a rise over 3 steps costs.
LOCAL = Run("local-0", "window", options=("--window", "64"))  # as wide as the chunk: no memory at all
FAMILIES = (
    Family(
        "small",
        "0.8M parameters, gcide",
        (*SMALL, "--steps", "1000", "--every", "50", "--windows", "128"),
        (*pairs(0, 1, 2, 3, 4), *others("softmax", "uniform"), LOCAL, *others("linear", "delta", "fista")),
    ),
    Family(
        "switches",
        "0.8M parameters, gcide, one switch each",
        (*SMALL, "--steps", "150", "--every", "15", "--windows", "64"),
        (
            Run("exact-gate", "sv"),
            Run("unit-keys", "sv", options=("--normalize-keys", "--sigma", "1")),
            Run("learned-width", "sv", options=("--learn-sigma",)),
            Run("slow-warm-up", "sv", options=("--warmup", "0.2")),
            Run("wider-kernel", "sv", options=("--sigma", "5")),
            Run("window", "window", options=("--window", "64")),
            Run("window-slow-warm-up", "window", options=("--window", "64", "--warmup", "0.2")),
        ),
    ),
    Family(
        "medium",
        "3.22M parameters, gcide",
        ("--steps", "300", "--warmup", "0.1", "--every", "25", "--windows", "64"),
        pairs(0, 1),
    ),
    Family(
        "wiki",
        "0.8M parameters, Wikipedia XML",
        (*SMALL, "--steps", "500", "--warmup", "0.06", "--every", "50", "--windows", "128"),
        pairs(0),
        dictionary=False,
    ),
    Family("large", "10M parameters, gcide", (*LARGE, "--warmup", "0.15"), pairs(0)),
    Family("paper-3M", "the paper's 3.22M", ("--steps", "6000"), (*pairs(*range(7)), *others("softmax")), gpu=True),
    Family("paper-10M", "the paper's 10M", (*TEN, *FULL), pairs(*range(5)), gpu=True),
    Family("paper-32M", "the paper's 32M", (*THIRTY_TWO, *FULL), pairs(0), gpu=True),
)


def finished(folder: Path) -> bool:
    """Return whether a run has come to its end: to its last step, or to numbers that are none."""
    rows: list[Json] = read_rows(folder / ROWS)
    last = read_json(folder / RUN)["settings"]["steps"] if rows else 0
    return bool(rows) and (rows[-1]["step"] == last or rows[-1]["status"] != "ok")
