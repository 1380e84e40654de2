"""Files of the commands: a memory that no other command changes meanwhile, and outputs that are whole or not there."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from svmem.cli.output import note
from svmem.errors import FileRefused, InvalidInput
from svmem.memory import Memory

__all__ = ["check_target", "draft", "held", "load"]


def load(path: Path) -> Memory:
    """Return the memory in a file. Raises FileRefused with the file's name."""
    try:
        return Memory.load(path)
    except FileRefused as error:
        raise FileRefused(f"{path}: {error}") from None


@contextmanager
def held(path: Path) -> Iterator[Memory]:
    """Give the memory in a file to the block, and keep other commands from changing the file until it ends.

    Without this a command that loaded the file before a forget could save the forgotten records again after it.
    """
    while True:
        with open(path, "rb+") as file:  # a file that may not be written to is refused here
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note(f"waiting for another svmem to finish with {path}")
                fcntl.flock(file, fcntl.LOCK_EX)
            # A save puts a new file in the place of the one that was locked; then the lock is on nothing.
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                yield load(path)
                return


def check_target(path: Path, *, force: bool, source: Path | None = None) -> None:
    """Raise InvalidInput where an output cannot go, before any work is done for it: never over its own source."""
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise InvalidInput(f"{path} is the memory itself; name another file for the output")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file")
    if path.exists() and not force:
        raise InvalidInput(f"{path} is there already; --force replaces it")
    if not path.parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} to write {path.name} to; make it first")
    if not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"the folder {path.parent} may not be written to")


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """Give the block a file beside `path` to write; in the end it takes the place of `path`, or goes on an error."""
    target = Path(os.path.realpath(path))  # a link stays a link
    place = target.with_name(f".{secrets.token_hex(4)}.{target.name}")
    try:
        yield place
        os.replace(place, target)
    except BaseException:
        with suppress(FileNotFoundError):
            place.unlink()
        raise
