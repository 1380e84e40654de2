"""Progress bars on stderr, one a step, and the seconds each step took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["Steps"]


class Steps:
    """The steps of a job: `with steps.step("load", 3) as advance:` shows a bar and notes the time.

    `seconds` maps each finished step to its duration, in order.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._console = Console(stderr=True, quiet=quiet)

    @contextmanager
    def step(self, title: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """Show a bar of `total` units (None: unknown) while the block runs and reports its units."""
        bar = Progress(
            TextColumn("{task.description:<36}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
        )
        start = time.perf_counter()
        with bar:
            task = bar.add_task(title, total=total)
            yield lambda units: bar.advance(task, units)
        self.seconds[title] = time.perf_counter() - start

    def say(self, sentence: str) -> None:
        """Print one plain line to stderr."""
        self._console.print(sentence, highlight=False, markup=False, soft_wrap=True)
