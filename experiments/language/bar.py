"""A bar on stderr with the loss and the speed, and a line for each row."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from svmem.types import Json

__all__ = ["Bar", "training_bar"]


@dataclass(frozen=True, slots=True)
class Bar:
    """What to call after each step, with loss and tokens a second, and after each row."""

    step: Callable[[float, float], None]
    row: Callable[[Json], None]


@contextmanager
def training_bar(title: str, *, done: int, total: int, quiet: bool) -> Iterator[Bar]:
    """Show the bar while the block runs, with `done` of `total` steps behind it."""
    console = Console(stderr=True, quiet=quiet)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[figures]}")
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task(title, total=total, completed=done, figures="")

        def step(loss: float, speed: float) -> None:
            progress.update(task, advance=1, figures=f"loss {loss:.3f}  {speed:,.0f} tokens/s")

        def row(row: Json) -> None:
            scored = row["bits_per_byte"]
            figures = "no held-out score" if scored is None else f"{scored:.4f} held-out bits per byte"
            console.print(f"step {row['step']:>6}  {figures}  {row['status']}", highlight=False, markup=False)

        yield Bar(step, row)
