"""Gram matrices of many key sets at once, which keys are equal, and the gradient of a Gram matrix to its keys.

By coordinate differences, one coordinate after the other as in `_jit.rows`, never |x|^2 + |y|^2 - 2xy: near twins keep
their distance, equal keys have distance 0 and rows of the same bits. A block of rows at a time bounds the memory.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from svmem.nn.batched.exponential import exp_neg

__all__ = ["Nodes", "gram_batched", "gram_gradient", "nodes_of", "same_keys"]

DEVICE_BLOCK, HOST_BLOCK = 2**22, 2**16  # numbers in one block of rows: 32 MiB; what the second cache holds
FAR = 8e307  # differences of coordinates below this do not overflow


def gram_batched(keys: Tensor, sigma: Tensor) -> Tensor:
    """Return exp(-|x - y|^2 / sigma^2) in float64, (..., t, t), for keys (..., t, d) and sigma (...) or ().

    Rows and columns of a key that is not finite are not numbers, at least on the diagonal.
    """
    points = keys.to(torch.float64).mT.contiguous()  # (..., d, t)
    scale = (sigma * sigma)[..., None, None]
    rows = []
    for block in _blocks(points):
        squares = torch.zeros_like(points[..., 0, block, None] - points[..., 0, None, :])
        for column in points.unbind(-2):
            difference = column[..., block, None] - column[..., None, :]
            squares += difference.mul_(difference)
        rows.append(exp_neg(squares / scale))
    return torch.cat(rows, dim=-2)


def gram_gradient(keys: Tensor, sigma: Tensor, gram: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of keys (..., t, d) and of sigma (...), given `weight` (..., t, t), that of each gram entry.

    d kappa(x, y) / dx = -2/sigma^2 (x - y) kappa and d kappa / d sigma = 2/sigma^3 |x - y|^2 kappa. Equal keys push
    each other by exactly 0.
    """
    points = keys.to(torch.float64)
    points = torch.where(points.abs() < FAR, points, 0.0)  # keys so far off have kappa 0, or belong to no solution
    points = points.mT.contiguous()  # (..., d, t)
    by_keys, by_sigma = [], torch.zeros_like(points[..., 0, 0])
    for block in _blocks(points):
        both = weight[..., block, :] + weight[..., block].mT
        push = torch.where(both == 0, 0.0, both * gram[..., block, :])  # where a key is not finite, both is 0
        columns = []
        for column in points.unbind(-2):
            difference = column[..., block, None] - column[..., None, :]
            pushed = push * difference
            columns.append(pushed.sum(-1))
            by_sigma = by_sigma + (pushed * difference).sum((-2, -1))
        by_keys.append(torch.stack(columns, dim=-1))
    scale = sigma * sigma
    # Every pair was seen from both ends: half of 2/sigma^3.
    return torch.cat(by_keys, dim=-2) * (-2 / scale)[..., None, None], by_sigma / (scale * sigma)


def _blocks(points: Tensor) -> Iterator[slice]:
    """Yield blocks of rows whose differences to all rows are about as many numbers as a block may hold."""
    t = points.shape[-1]
    entries = HOST_BLOCK if points.device.type == "cpu" else DEVICE_BLOCK
    size = max(1, entries // max(1, points[..., 0, :].numel()))
    for start in range(0, max(t, 1), size):
        yield slice(start, min(start + size, t))


def same_keys(gram: Tensor) -> Tensor:
    """Return for every row the first one that it equals bit for bit, (..., n) int64.

    Equal keys have equal rows. Candidates are found by kappa = 1; a candidate that differs elsewhere is a near twin.
    """
    first = (gram == 1).to(torch.int8).argmax(-1)
    candidates = gram.gather(-2, first[..., None].expand_as(gram))
    own = torch.arange(gram.shape[-1], device=gram.device)
    return torch.where((candidates == gram).all(-1), first, own)


class Nodes(NamedTuple):
    """Which records of each problem stand for their equals, (g, p, n)."""

    leads: Tensor  # bool: the first of its equals in the problem
    leader: Tensor  # int64: the record that stands for this one; itself outside the problem
    copies: Tensor  # float64: how many equals, itself included, the problem has; 1 outside


def nodes_of(same: Tensor, valid: Tensor) -> Nodes:
    """Return the nodes of problems over the records where valid (g, p, n), given same (g, n) from `same_keys`."""
    n = valid.shape[-1]
    label = same[:, None].expand(valid.shape)
    own = torch.arange(n, device=valid.device).expand(valid.shape)
    place = torch.where(valid, own, n)
    first = torch.full_like(place, n).scatter_reduce(-1, label, place, "amin").gather(-1, label)
    leader = torch.where(valid, first, own)
    copies = sum_by(valid.to(torch.float64), leader).gather(-1, leader)
    return Nodes(valid & (leader == own), leader, torch.where(valid, copies, 1.0))


def sum_by(values: Tensor, leader: Tensor) -> Tensor:
    """Return the sums of values (g, p, n) over the records that each record leads, at that record."""
    n = values.shape[-1]
    rows = torch.arange(leader[..., 0].numel(), device=leader.device).reshape(*leader.shape[:-1], 1)
    # In one dimension, since there torch can add in a fixed order on every device when asked to.
    flat = torch.zeros_like(values).reshape(-1).index_add(0, (rows * n + leader).reshape(-1), values.reshape(-1))
    return flat.reshape(values.shape)
