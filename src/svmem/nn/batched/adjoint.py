"""Derivatives of batched gates with respect to the Gram matrix and C, the partitions held fixed.

With S the margin, E the bound set, A = K_SS + ridge, upstream gradients g of alpha and g_mu of the offset:
    A alpha_S - mu 1 = 1/2 - C K_SE 1,   1'alpha_S = total - C |E|
    A p - nu 1 = g_S,   -1'p = g_mu,     dL = -p' dK alpha + (nu |E| + sum over E of g - p' K_SE 1) dC.
So the gradient of a matrix that many problems share is one product, -sum over problems of p alpha'. p does not change
when a constant is added to g, and nu by minus that constant: it is taken off first, so that the gradient of a sum of
coefficients is exactly 0.

A node of m equal records has mass m alpha, ridge / m and the mean of their g; what their own g differ by meets the
ridge alone: p = P / m + (g - mean g) / ridge. Where S is empty mu is f + ridge C - 1/2 at its maximiser over E, so p is
-g_mu there; likewise while collecting, where alpha is 1/n.
"""

import torch
from torch import Tensor

from svmem.nn.batched.gram import Nodes, nodes_of, same_keys, sum_by
from svmem.nn.batched.interior import BOUND, MARGIN, solved, times
from svmem.nn.batched.solution import COLLECTING, INVALID, WIDTH, BatchedSolution, in_chunks

__all__ = ["adjoint_batched"]

SOLVES = 2  # one solve with the factor, and one that refines it


def adjoint_batched(
    gram: Tensor,
    solution: BatchedSolution,
    g_alpha: Tensor,
    g_offset: Tensor,
    *,
    ridge: float,
    width: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of gram (g, n, n), entry by entry and not symmetric, and of C (g, p), one a problem.

    For solutions of shape (g, p, n) by `solve_batched` with these gram, ridge and width; g_alpha (g, p, n),
    g_offset (g, p). Problems that are INVALID or FAILED have gradient 0 and touch no other. The margins are factored
    again: to keep their factors would cost p n^2 numbers for as long as the forward pass lives.
    """
    held = (solution.status < INVALID).unsqueeze(-1)
    alpha = torch.where(held, solution.alpha, 0.0)
    bad = gram.diagonal(dim1=-2, dim2=-1).isnan()
    clean = torch.where(bad.unsqueeze(-1) | bad.unsqueeze(-2), 0.0, gram)
    collecting = (solution.status == COLLECTING).unsqueeze(-1)
    margin, bound = held & (solution.zone == MARGIN), held & (solution.zone == BOUND)
    pull = torch.where(held, g_offset.unsqueeze(-1), 0.0)
    nodes = nodes_of(same_keys(clean), margin | bound)
    g, taken = _differences(g_alpha, margin | bound, collecting)
    mean = sum_by(g, nodes.leader).gather(-1, nodes.leader) / nodes.copies
    wide = min(gram.shape[-1], WIDTH if width is None else width)

    def solve(part: slice, span: slice) -> tuple[Tensor, Tensor]:
        chunk = Nodes(*(x[part, span] for x in nodes))
        return _solve(clean[part], chunk, margin[part, span], (mean[part, span], pull[part, span]), ridge, wide)

    mass, nu = in_chunks(solve, margin.shape[:2], wide, gram.device)
    of_margin = torch.where(margin, mass.gather(-1, nodes.leader) / nodes.copies + (g - mean) / ridge, 0.0)
    at_top = _first_highest(torch.where(bound, alpha @ clean, -torch.inf)) & bound
    some = margin.any(-1, keepdim=True)
    p = torch.where(some, of_margin, torch.where(at_top, -pull, 0.0))
    at_cap = (bound & ~collecting).to(clean.dtype)
    # Without a margin the total follows C, so that what was taken off counts for every record at the cap.
    rest = torch.where(some, nu, taken) * at_cap.sum(-1, keepdim=True) + torch.where(some, 0.0, ridge * pull)
    by_cap = (g * at_cap - p * (at_cap @ clean)).sum(-1, keepdim=True) + rest
    return -(p.mT @ alpha), torch.where(held & ~collecting, by_cap, 0.0).squeeze(-1)


def _differences(g_alpha: Tensor, carries: Tensor, collecting: Tensor) -> tuple[Tensor, Tensor]:
    """Return the upstream gradients less the largest, and that: being one of them, it leaves equal ones exactly 0."""
    taken = torch.where(carries, g_alpha, -torch.inf).amax(-1, keepdim=True)
    taken = torch.where(taken == -torch.inf, 0.0, taken)
    return torch.where(carries & ~collecting, g_alpha - taken, 0.0), taken


def _first_highest(value: Tensor) -> Tensor:
    """Return where the first largest value is, as a mask."""
    return torch.arange(value.shape[-1], device=value.device) == value.argmax(-1, keepdim=True)


def _solve(
    gram: Tensor, nodes: Nodes, margin: Tensor, right: tuple[Tensor, Tensor], ridge: float, width: int
) -> tuple[Tensor, Tensor]:
    """Return P (g, p, n) of margin nodes and nu (g, p, 1) in (K + ridge / m) P - nu = mean g, -1'P = g_mu."""
    mean, pull = right
    active = nodes.leads & margin
    index = active.to(torch.int8).topk(width, dim=-1).indices.sort(-1).values
    among = torch.arange(gram.shape[0], device=gram.device)[:, None, None, None]
    kernel = gram[among, index.unsqueeze(-1), index.unsqueeze(-2)] if width < gram.shape[-1] else gram[:, None]
    active, mean, copies = (x.gather(-1, index) for x in (active, mean, nodes.copies))
    matrix = torch.where(active.unsqueeze(-1) & active.unsqueeze(-2), kernel, 0.0)
    matrix.diagonal(dim1=-2, dim2=-1).add_(torch.where(active, ridge / copies, 1.0))
    factor, _ = torch.linalg.cholesky_ex(matrix)
    ones = solved(factor, active.to(matrix.dtype))
    some = active.any(-1, keepdim=True)
    whole = torch.where(some, ones.sum(-1, keepdim=True), 1.0)
    mass, nu = torch.zeros_like(mean), torch.zeros_like(pull)
    for _ in range(SOLVES):
        part = solved(factor, torch.where(active, mean + nu - times(matrix, mass), 0.0))
        rise = torch.where(some, -(pull + (mass + part).sum(-1, keepdim=True)) / whole, 0.0)
        mass, nu = mass + (part + rise * ones), nu + rise
    return torch.zeros_like(nodes.copies).scatter(-1, index, mass), nu
