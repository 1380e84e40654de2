"""Language models on bytes, one mixer against another.

    python -m experiments.lm train --mixer sv --out runs/sv-0
    torchrun --nproc_per_node 2 -m experiments.lm train --mixer softmax --out runs/softmax-0
    python -m experiments.lm sample runs/sv-0 --prompt "The "
    python -m experiments.lm figure runs/* --out curves.svg
    python -m experiments.lm compare runs/* --mixers sv window

The same `train` command goes on where its folder stands: after Ctrl-C, or after a crash.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from experiments import files
from experiments.language import checkpoint
from experiments.language.bar import training_bar
from experiments.language.mixer import mixer
from experiments.language.settings import MIXERS, Settings, read_settings
from experiments.language.signals import wish_to_stop
from experiments.language.text import read_text, wikipedia
from experiments.language.train import Progress, best, matched_window, open_run, train
from experiments.language.trainer import Trainer
from experiments.language.world import joined
from svmem.errors import InvalidInput, SvmemError
from svmem.nn.lm import LanguageModel, generate

__all__ = ["main"]

HELP = {
    "mixer": f"what mixes the tokens: {', '.join(MIXERS)}",
    "width": "width of the model",
    "layers": "number of layers",
    "heads": "heads a layer",
    "block": "longest context",
    "chunk": "sv: tokens between two gates",
    "C": "sv: cap of a coefficient",
    "sigma": "sv: width of the kernel",
    "ridge": "sv: ridge of the problem",
    "normalize_keys": "sv: show the kernel keys of length 1, for which --sigma 1 is a start",
    "learn_sigma": "sv: let every head learn its width",
    "window": "window: tokens that one attends to",
    "steps": "training steps",
    "batch": "contexts a step, over all processes",
    "lr": "peak learning rate",
    "warmup": "share of the steps before the peak",
    "seed": "seed of weights and batches",
    "every": "steps between two rows",
    "windows": "held-out contexts scored for a row",
    "limit_bytes": "bytes of the text that are used",
}
EPILOG = "Ends with 0, with 1 for an error, with 2 for a command typed wrongly, with 130 when it was stopped."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    options = parser().parse_args(argv)
    try:
        return options.run(options, shlex.join(["python", "-m", "experiments.lm", *argv]))
    except (SvmemError, OSError) as error:
        print(f"experiments.lm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("experiments.lm: interrupted; the last checkpoint stands", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """Return the parser of the commands."""
    top = argparse.ArgumentParser(
        prog="python -m experiments.lm",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(required=True, metavar="train | sample | figure | compare")

    one = commands.add_parser("train", help="train a model, or go on training it", epilog=EPILOG)
    one.set_defaults(run=run_train)
    one.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of the run")
    one.add_argument("--data", type=Path, metavar="PATH", help="text, also packed (Wikipedia pages inside gensim)")
    one.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where to compute (cpu)")
    one.add_argument("--match", type=Path, metavar="DIR", help="window: as wide as the state of this sv run")
    add_settings(one)

    one = commands.add_parser("sample", help="print text that a model makes up", epilog=EPILOG)
    one.set_defaults(run=run_sample)
    one.add_argument("folder", type=Path, metavar="DIR", help="folder of the run")
    one.add_argument("--prompt", default="\n", help="what comes before (a new line)")
    one.add_argument("--bytes", type=int, default=400, help="bytes to draw (%(default)s)")
    one.add_argument("--temperature", type=float, default=0.8, help="0 takes the likeliest byte (%(default)s)")
    one.add_argument("--top-k", type=int, default=40, help="draw among so many bytes (%(default)s)")
    one.add_argument("--seed", type=int, default=0, help="seed of the draws (%(default)s)")

    one = commands.add_parser("figure", help="draw the learning curves of runs", epilog=EPILOG)
    one.set_defaults(run=run_figure)
    one.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="folders of runs")
    one.add_argument("--out", type=Path, required=True, metavar="FILE", help="picture, by its ending: svg, png, pdf")

    one = commands.add_parser("compare", help="compare two mixers seed by seed", epilog=EPILOG)
    one.set_defaults(run=run_compare)
    one.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="folders of runs")
    one.add_argument("--mixers", nargs=2, choices=MIXERS, default=["sv", "window"], help="the two (%(default)s)")
    return top


def add_settings(command: argparse.ArgumentParser) -> None:
    """Add an option for each field of the settings."""
    for field in fields(Settings):
        kind = type(field.default)
        how: dict[str, Any] = {"action": argparse.BooleanOptionalAction} if kind is bool else {"type": kind}
        name, says = f"--{field.name.replace('_', '-')}", f"{HELP[field.name]} (%(default)s)"
        command.add_argument(name, dest=field.name, default=field.default, help=says, **how)


def run_train(options: argparse.Namespace, command: str) -> int:
    """Train until the last step, or until somebody wants it to stop."""
    settings = Settings(**{field.name: getattr(options, field.name) for field in fields(Settings)})
    if options.match is not None:
        if settings.mixer != "window":
            raise InvalidInput(f"--match sets the width of --mixer window, and the mixer is {settings.mixer}")
        settings = replace(settings, window=matched_window(options.match))
    text = read_text(options.data or wikipedia(), limit_bytes=settings.limit_bytes, block=settings.block)
    with joined(options.device) as world, wish_to_stop() as stop:
        trainer = Trainer(settings, text, world)
        open_run(trainer, options.out, command)
        title = f"{settings.mixer}, seed {settings.seed}"
        with training_bar(title, done=trainer.step, total=settings.steps, quiet=not world.first) as bar:
            for row in train(trainer, options.out, command, Progress(stop, bar.step)):
                bar.row(row)
    return conclude(trainer, options.out) if world.first else 0


def conclude(trainer: Trainer, folder: Path) -> int:
    """Say how a run ended, and return the exit code for it."""
    rows, step, steps = files.read_rows(folder / files.ROWS), trainer.step, trainer.settings.steps
    if rows and rows[-1]["status"] != "ok":
        raise SvmemError(f"{folder}: {rows[-1]['status']} at step {rows[-1]['step']}; a lower --lr may help")
    if step < steps:
        print(f"stopped after step {step} of {steps}; the same command goes on from there", file=sys.stderr)
        return 130
    if row := best(rows):
        print(f"{folder}: best {row['bits_per_byte']:.4f} held-out bits per byte, at step {row['step']} of {steps}")
    return 0


def run_sample(options: argparse.Namespace, _: str) -> int:
    """Print the prompt and what the model writes after it."""
    settings = read_settings(files.read_json(options.folder / files.RUN), options.folder / files.RUN)
    if not options.prompt:
        raise InvalidInput("the prompt must hold at least one byte to start from")
    model = LanguageModel(settings.model, mixer(settings))
    checkpoint.load_model(checkpoint.read_arrays(options.folder / files.CHECKPOINT), model)
    prompt = torch.tensor([list(options.prompt.encode())])
    with Console(stderr=True).status(f"drawing {options.bytes} bytes"):
        tokens = generate(
            model,
            prompt,
            options.bytes,
            temperature=options.temperature,
            top_k=options.top_k,
            generator=torch.Generator().manual_seed(options.seed),
        )
    text = bytes(tokens[0].tolist()).decode(errors="replace")
    print("".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text))
    return 0


def run_figure(options: argparse.Namespace, _: str) -> int:
    """Draw the curves."""
    from experiments.drawing import save  # matplotlib is for this command only
    from experiments.language.figure import curves_figure, read_curve

    save(curves_figure([read_curve(folder) for folder in options.folders]), options.out)
    print(options.out)
    return 0


def run_compare(options: argparse.Namespace, _: str) -> int:
    """Print how two mixers compare."""
    from experiments.language.compare import compared  # scipy and matplotlib are for such commands only
    from experiments.language.figure import read_curve

    print(compared([read_curve(folder) for folder in options.folders], *options.mixers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
