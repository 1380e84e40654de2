"""The optima of many gates at once, in torch operations of fixed shape: no number comes back to the host on the way.

An interior-point method finds each partition, an active-set method makes it exact, and the conditions of optimality
over all keys prove it. The numbers of steps are fixed; a problem that they do not suffice for is FAILED, never half an
answer. Kernel values have the bits of `svmem.solve`'s and masses are refined beyond their rounding, so the answers are
`svmem.solve`'s up to the last place or two, on every device.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from svmem.nn.batched.gram import Nodes, nodes_of, same_keys
from svmem.nn.batched.interior import BOUND, MARGIN, RESERVE, Limits, Quadratic, guess_partition
from svmem.nn.batched.polish import Settled, polish

__all__ = ["COLLECTING", "FAILED", "INVALID", "OPTIMAL", "BatchedSolution", "in_chunks", "solve_batched"]

OPTIMAL, COLLECTING, INVALID, FAILED = 0, 1, 2, 3  # values of status, as in GateStatus

# Interior-point steps: over random families up to n = 256 the median problem takes 11, the worst 23 to far more digits
# than `polish` needs to start from. Polishing takes one solve where the partition was right, seldom more than two.
STEPS, STEPS_PER_DOUBLING, POLISH = 20, 2, 4
WIDTH = 512  # nodes that are solved for at once; where there are more keys, the nodes are chosen in rounds
ROUNDS, COARSE = 12, 16  # rounds, and interior-point steps of all but the last
GOLDEN = 0.6180339887498949  # its multiples modulo 1 are spread evenly
KKT = 1e-12  # how far an inequality may be broken in a proof, relative to the largest kernel value and the ridge
# Numbers in the matrices of one chunk: on a device as many as leave room for copies; on the host a cache full.
DEVICE_ENTRIES, HOST_ENTRIES = 2**28, 2**20


@dataclass(frozen=True, slots=True)
class BatchedSolution:
    """Optima of p problems over n records each. alpha is not a number throughout where status is INVALID or FAILED."""

    alpha: Tensor  # (..., n) float64, 0 outside the problem
    zone: Tensor  # (..., n) int8: reserve 0, margin 1, bound 2 (all records of a collecting problem)
    offset: Tensor  # (...) float64; 0 without records
    gap: Tensor  # (...) float64 duality gap; 0 while collecting
    status: Tensor  # (...) int8


def solve_batched(
    gram: Tensor,
    valid: Tensor,
    *,
    C: float,
    total: float,
    n_min: int,
    ridge: float,
    iterations: int | None = None,
    width: int | None = None,
) -> BatchedSolution:
    """Return the optimum of (P) over the records where valid (g, p, n) holds; the p problems of a g share one matrix.

    gram (g, n, n) from `gram_batched`; or one matrix a problem, gram (p, n, n) and valid (p, n). total, n_min: as of
    `svmem.Problem`; with fewer than n_min records a problem is collecting. iterations: interior-point steps, by default
    20 and 2 more for every doubling of n over 128. width: most nodes solved for at once, 512 by default. Beyond it
    memory is p width^2 rather than p n^2, and a problem fails whose support exceeds about half of it.
    Takes a ridge from 1e-8 on; under smaller ones near twins may fail.
    """
    if valid.dim() == 2:
        setting = {"C": C, "total": total, "n_min": n_min, "ridge": ridge, "iterations": iterations, "width": width}
        one = solve_batched(gram, valid[:, None], **setting)
        return BatchedSolution(*(x[:, 0] for x in (one.alpha, one.zone, one.offset, one.gap, one.status)))
    limits, n = Limits(C, total, n_min, ridge), valid.shape[-1]
    width = min(n, WIDTH if width is None else width)
    steps = STEPS + STEPS_PER_DOUBLING * max(0, (width - 1).bit_length() - 7) if iterations is None else iterations
    bad = gram.diagonal(dim1=-2, dim2=-1).isnan()
    clean = torch.where(bad.unsqueeze(-1) | bad.unsqueeze(-2), 0.0, gram)
    number = valid.sum(-1, keepdim=True)
    invalid = (valid & bad[:, None]).any(-1, keepdim=True)
    collecting = ~invalid & (number < n_min)
    nodes = nodes_of(same_keys(clean), valid & ~invalid & ~collecting)

    def solve(part: slice, span: slice) -> Settled:
        return _optimum(clean[part], Nodes(*(x[part, span] for x in nodes)), limits, steps, width)

    found = Settled(*in_chunks(solve, valid.shape[:2], width, gram.device))
    equal = torch.where(collecting & valid, 1.0 / number.clamp(min=1).to(gram.dtype), 0.0)
    return _proved(clean, valid, nodes, limits, found, (invalid, collecting, equal))


def in_chunks(
    work: Callable[[slice, slice], tuple[Tensor, ...]], shape: torch.Size, width: int, device: torch.device
) -> list[Tensor]:
    """Return the results of work over all of `shape` (g, p), as many problems of that width at a time as memory allows.

    A problem's numbers do not depend on the chunk that it is in, as far as the matrix routines' do not.
    """
    entries = HOST_ENTRIES if device.type == "cpu" else DEVICE_ENTRIES
    at_once = max(1, entries // max(1, width * width))
    rows = []
    for part in _spans(shape[0], max(1, at_once // max(1, shape[1]))):
        columns = [work(part, span) for span in _spans(shape[1], at_once)]
        rows.append([torch.cat(pieces, 1) for pieces in zip(*columns, strict=True)])
    return [torch.cat(pieces) for pieces in zip(*rows, strict=True)]


def _spans(number: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, number)) for start in range(0, max(number, 1), size)]


def _optimum(gram: Tensor, nodes: Nodes, limits: Limits, steps: int, width: int) -> Settled:
    """Return the optima over nodes (g, p, n): of all at once, or of the `width` that matter, found in rounds."""
    if nodes.leads.shape[-1] <= width:
        q = _quadratic(gram[:, None], nodes.leads, nodes.copies, limits)
        return polish(q, limits, guess_partition(q, limits, steps)[0], POLISH)
    mass = torch.where(nodes.leads, nodes.copies, 0.0)
    mass = limits.total * mass / mass.sum(-1, keepdim=True).clamp(min=1)
    kept = empty = torch.zeros_like(mass)
    for number in range(1, ROUNDS):
        index = _choice(gram, nodes, limits, (mass, kept), number, width)
        q = _chosen(gram, nodes, limits, index)
        zone, inner = guess_partition(q, limits, COARSE)
        mass = empty.scatter(-1, index, inner)
        kept = empty.scatter(-1, index, torch.where(zone == RESERVE, 0.0, inner))
    index = _choice(gram, nodes, limits, (mass, kept), ROUNDS, width)
    q = _chosen(gram, nodes, limits, index)
    last = polish(q, limits, guess_partition(q, limits, steps)[0], POLISH)
    zone = empty.to(torch.int8).scatter(-1, index, last.zone)
    return Settled(zone, empty.scatter(-1, index, last.mass), last.offset, last.done)


def _choice(
    gram: Tensor, nodes: Nodes, limits: Limits, state: tuple[Tensor, Tensor], number: int, width: int
) -> Tensor:
    """Return the nodes to solve for, (g, p, width): of those that carry most, at most half; then those of least slope.

    Half, since otherwise one tight cluster could fill the set for good. Slopes below the level count by a share that
    follows no pattern, since the lowest ones tend to be neighbours, of which one would do.
    """
    mass, kept = state
    slope = mass @ gram + limits.ridge / nodes.copies * mass
    above = slope - (slope * mass).sum(-1, keepdim=True) / limits.total
    own = torch.arange(1, slope.shape[-1] + 1, dtype=slope.dtype, device=slope.device)
    chance = (own * (number * GOLDEN)).frac()
    heavy = kept.topk(width // 2, dim=-1)
    stays = torch.zeros_like(nodes.leads).scatter(-1, heavy.indices, heavy.values > 0)
    score = torch.where(above < 0, above * chance, above)
    score = torch.where(stays, -torch.inf, torch.where(nodes.leads, score, torch.inf))
    return score.topk(width, dim=-1, largest=False).indices.sort(-1).values


def _chosen(gram: Tensor, nodes: Nodes, limits: Limits, index: Tensor) -> Quadratic:
    """Return the problems over the nodes at index (g, p, w)."""
    among = torch.arange(gram.shape[0], device=gram.device)[:, None, None, None]
    kernel = gram[among, index.unsqueeze(-1), index.unsqueeze(-2)]
    return _quadratic(kernel, nodes.leads.gather(-1, index), nodes.copies.gather(-1, index), limits)


def _quadratic(kernel: Tensor, member: Tensor, copies: Tensor, limits: Limits) -> Quadratic:
    """Return the problems over members (g, p, w) with kernel values (g, p or 1, w, w)."""
    matrix = torch.where(member.unsqueeze(-1) & member.unsqueeze(-2), kernel, 0.0)
    matrix.diagonal(dim1=-2, dim2=-1).add_(torch.where(member, limits.ridge / copies, 1.0))
    return Quadratic(matrix, member, copies)


def _proved(
    gram: Tensor,
    valid: Tensor,
    nodes: Nodes,
    limits: Limits,
    found: Settled,
    rest: tuple[Tensor, Tensor, Tensor],
) -> BatchedSolution:
    """Return the solution by records, with what the conditions over all of them say about it."""
    invalid, collecting, equal = rest
    posed = valid & ~invalid & ~collecting
    zone = torch.where(posed, found.zone.gather(-1, nodes.leader), RESERVE)
    share = torch.where(zone == BOUND, limits.C, (found.mass / nodes.copies).gather(-1, nodes.leader))
    alpha = torch.where(zone == RESERVE, equal, share)
    slope = alpha @ gram + limits.ridge * alpha
    margin, bound = zone == MARGIN, zone == BOUND
    highest = torch.where(bound | (collecting & valid), slope, -torch.inf).amax(-1, keepdim=True)
    some = margin.any(-1, keepdim=True)
    level = torch.where(some, found.offset, torch.where(highest.isfinite(), highest, 0.5))
    h = torch.where(posed, slope - level, 0.0)
    broken = torch.where(margin, h.abs(), torch.where(bound, h, -h)).amax(-1, keepdim=True)
    inside = (~margin | ((alpha > 0) & (alpha < limits.C))).all(-1, keepdim=True)
    adds_up = (alpha.sum(-1, keepdim=True) - limits.total).abs() <= KKT
    proved = found.done & (broken <= KKT * (1 + limits.ridge)) & inside & adds_up
    status = torch.where(invalid, INVALID, torch.where(collecting, COLLECTING, torch.where(proved, OPTIMAL, FAILED)))
    gap = torch.where(collecting, 0.0, (alpha * h).sum(-1, keepdim=True) - _least(h, posed, limits))
    lost = status >= INVALID
    return BatchedSolution(
        alpha=torch.where(lost, torch.nan, alpha),
        zone=torch.where(lost, RESERVE, torch.where(collecting & valid, BOUND, zone)).to(torch.int8),
        offset=torch.where(lost, torch.nan, level - 0.5).squeeze(-1),
        gap=torch.where(lost, torch.nan, gap).squeeze(-1),
        status=status.squeeze(-1).to(torch.int8),
    )


def _least(h: Tensor, posed: Tensor, limits: Limits) -> Tensor:
    """Return the least of h . beta over the capped simplex, (g, p, 1): caps go to the lowest first."""
    lowest_first = torch.where(posed, h, torch.inf).sort(-1).values
    taken = limits.C * torch.arange(h.shape[-1], dtype=h.dtype, device=h.device)
    beta = (limits.total - taken).clamp(0.0, limits.C)
    return torch.where((beta > 0) & lowest_first.isfinite(), beta * lowest_first, 0.0).sum(-1, keepdim=True)
