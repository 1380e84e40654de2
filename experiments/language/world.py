"""The processes that train together: one, or as many as torchrun started."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from svmem.errors import InvalidInput

__all__ = ["World", "joined"]


@dataclass(frozen=True, slots=True)
class World:
    """This process among the others. Alone, the sum over all processes is the tensor itself."""

    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this process writes the files and shows the progress."""
        return self.rank == 0

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over the processes."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def largest(self, values: Tensor) -> Tensor:
        """Return the largest over the processes, number by number."""
        return self._reduced(values, dist.ReduceOp.MAX)

    def _reduced(self, values: Tensor, how: dist.ReduceOp.RedOpType) -> Tensor:
        if self.size > 1:
            values = values.to(self.device)
            dist.all_reduce(values, how)
        return values


@contextmanager
def joined(device: str) -> Iterator[World]:
    """Join the other processes while the block runs, if torchrun started this one; `device` is "cpu" or "cuda".

    Raises InvalidInput for a GPU that is not there.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise InvalidInput("--device cuda needs a GPU that this torch can use, and there is none: leave it out")
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    here = torch.device(f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if device == "cuda" else device)
    if size == 1:
        yield World(0, 1, here)
        return
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield World(rank, size, here)
    finally:
        dist.destroy_process_group()
