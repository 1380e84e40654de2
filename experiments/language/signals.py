"""Ctrl-C as a wish to stop after the step at hand."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["wish_to_stop"]


@contextmanager
def wish_to_stop() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether Ctrl-C or SIGTERM came while the block runs. A second Ctrl-C interrupts it."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # signals only reach the main one
        yield asked.is_set
        return

    def note(number: int, _: FrameType | None) -> None:
        asked.set()
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
