"""Threads for compiled work without the GIL: as many as torch uses, safe from many callers and after a fork."""

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

__all__ = ["in_parallel"]

SLABS_A_THREAD = 4  # more than one, since slabs differ in the time they take

T = TypeVar("T")

_lock = threading.Lock()
_pools: dict[int, ThreadPoolExecutor] = {}  # by size


def _renew_lock() -> None:
    global _lock  # a fork may have copied it while it was held; and threads do not survive one
    _lock = threading.Lock()
    _pools.clear()


os.register_at_fork(after_in_child=_renew_lock)


def _pool(workers: int) -> ThreadPoolExecutor:
    with _lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="svmem")
        return _pools[workers]


def in_parallel(work: Callable[[int, int], T], items: int) -> list[T]:
    """Return the results of work(start, stop) over slabs that cover range(items), in order.

    Uses torch.get_num_threads() threads, the caller's included, so that torch's setting governs this too.
    """
    threads = min(torch.get_num_threads(), items)
    slabs = min(items, threads * SLABS_A_THREAD) if threads > 1 else 1
    edges = [items * k // max(slabs, 1) for k in range(slabs + 1)]
    spans = list(itertools.pairwise(edges))
    if threads <= 1:
        return [work(*span) for span in spans]
    remaining = iter(enumerate(spans))
    results: dict[int, T] = {}
    turn = threading.Lock()

    def take() -> None:
        while True:
            with turn:
                following = next(remaining, None)
            if following is None:
                return
            results[following[0]] = work(*following[1])

    others = [_pool(threads - 1).submit(take) for _ in range(threads - 1)]
    take()
    for other in others:
        other.result()
    return [results[k] for k in range(len(spans))]
