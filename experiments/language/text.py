"""Bytes to learn from: any file, or the Wikipedia pages inside the package gensim."""

import bz2
import gzip
import hashlib
import importlib.util
import lzma
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from svmem.errors import FileRefused, InvalidInput

__all__ = ["Text", "batch", "read_text", "wikipedia", "windows"]

INSTALL = "pip install --no-deps gensim==4.4.0"
PAGES = "enwiki-latest-pages-articles1.xml*shortened.bz2"
OPENERS = {
    ".bz2": bz2.open,
    ".gz": gzip.open,
    ".dz": gzip.open,  # dictzip: gzip that can also be entered in the middle
    ".xz": lzma.open,
}


@dataclass(frozen=True, slots=True)
class Text:
    """Bytes in two parts, uint8: nine tenths to train on, then one held out. `digest` is the SHA-256 of all."""

    name: str
    digest: str
    train: Tensor
    held_out: Tensor


def wikipedia() -> Path:
    """Return the file of Wikipedia pages inside the installed package gensim, which is located and never imported."""
    spec = importlib.util.find_spec("gensim")
    if spec is None or spec.origin is None:
        raise InvalidInput(
            f"the default text comes with the package gensim, which is not installed: {INSTALL}, or name a file: --data"
        )
    found = sorted((Path(spec.origin).parent / "test" / "test_data").glob(PAGES))
    if not found:
        raise InvalidInput(f"gensim is installed without its Wikipedia pages: {INSTALL}, or name a file: --data")
    return found[0]


def read_text(path: Path, *, limit_bytes: int, block: int) -> Text:
    """Return the first bytes of a file, unpacked by its ending (.bz2, .gz, .dz, .xz), in two parts.

    Raises FileRefused when it cannot be read, or a part is too short for one context of `block` and its next bytes.
    """
    try:
        with OPENERS.get(path.suffix, open)(path, "rb") as file:
            data = file.read(limit_bytes)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise FileRefused(f"{path} cannot be read: {error}") from None
    # A tenth must hold block + 1 bytes.
    if len(data) < 10 * (block + 1):
        raise FileRefused(
            f"a block of {block} needs a text of at least {10 * (block + 1)} bytes; {path} has {len(data)}"
        )
    tokens = torch.from_numpy(np.frombuffer(data, dtype=np.uint8).copy())
    cut = len(data) * 9 // 10
    return Text(path.name, hashlib.sha256(data).hexdigest(), tokens[:cut], tokens[cut:])


def batch(tokens: Tensor, *, block: int, size: int, seed: int, step: int) -> Tensor:
    """Return the batch of a step, (size, block + 1) int64: a function of its arguments, with no generator to save."""
    starts = np.random.default_rng([seed, step]).integers(0, len(tokens) - block, size)
    return stretches(tokens, torch.from_numpy(starts), block)


def windows(tokens: Tensor, *, block: int, count: int) -> Tensor:
    """Return at most `count` stretches of the text, evenly spaced, (count, block + 1) int64: no target twice."""
    count = min(count, (len(tokens) - 1) // block)
    starts = torch.from_numpy(np.linspace(0, len(tokens) - block - 1, count).astype(np.int64))
    return stretches(tokens, starts, block)


def stretches(tokens: Tensor, starts: Tensor, block: int) -> Tensor:
    """Return block + 1 tokens from each start."""
    return tokens[starts[:, None] + torch.arange(block + 1)].long()
