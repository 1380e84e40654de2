"""Gate and readouts in plain torch: one problem, one token at a time, double precision, differentiable throughout."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from tests.oracles.gates import GateAnswer, reference_gate

__all__ = ["naive_gate", "naive_hybrid_readout", "naive_rbf_readout"]


def naive_gate(
    keys: Tensor,
    boundaries: Sequence[int],
    *,
    C: float | Tensor,
    sigma: float | Tensor,
    ridge: float,
    lengths: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return alpha (b, h, B, t) and offset (b, h, B); autograd runs through a solve on the margin of the optimum."""
    b, h, t, _ = keys.shape
    C = torch.as_tensor(C, dtype=torch.float64)
    widths = torch.as_tensor(sigma, dtype=torch.float64).expand(h)
    alphas, offsets = [], []
    for i in range(b):
        for j in range(h):
            for s in boundaries:
                n = s if lengths is None else min(s, int(lengths[i]))
                alpha, offset = _one_gate(keys[i, j, :n].double(), C, widths[j], ridge)
                alphas.append(torch.cat([alpha, alpha.new_zeros(t - n)]))
                offsets.append(offset)
    shape = (b, h, len(boundaries))
    if not alphas:
        return keys.new_zeros(*shape, t, dtype=torch.float64), keys.new_zeros(shape, dtype=torch.float64)
    return torch.stack(alphas).view(*shape, t), torch.stack(offsets).view(shape)


def _one_gate(keys: Tensor, C: Tensor, sigma: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    n = len(keys)
    if n == 0:
        return keys.new_zeros(0), keys.new_full((), math.nan)
    raw = keys.detach().numpy()
    answer = reference_gate(raw, n, float(C.detach()), float(sigma.detach()), ridge)
    dist2 = (keys[:, None] - keys[None]).square().sum(-1)
    gram = torch.exp(-dist2 / sigma**2)
    return _on_partition(gram, answer, C, ridge)


def _on_partition(gram: Tensor, answer: GateAnswer, C: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """Return coefficients and offset as functions of the Gram matrix and the cap, the partition held fixed."""
    n = len(gram)
    if answer.collecting:
        alpha = gram.new_full((n,), 1 / n)
        return alpha, (gram @ alpha).max() + ridge / n - 0.5
    inside, full = torch.tensor(answer.margin, dtype=torch.long), torch.tensor(answer.bound, dtype=torch.long)
    alpha = gram.new_zeros(n).index_put((full,), C.expand(len(full)))
    if not len(inside):
        return alpha, (gram @ alpha + ridge * alpha)[full].max() - 0.5
    k = len(inside)
    block = gram[inside][:, inside] + ridge * torch.eye(k, dtype=gram.dtype)
    ones = gram.new_ones(k, 1)
    matrix = torch.cat([torch.cat([block, -ones], 1), torch.cat([ones.T, gram.new_zeros(1, 1)], 1)])
    side = torch.cat([0.5 - gram[inside] @ alpha, (1 - alpha.sum()).view(1)])
    solved = torch.linalg.solve(matrix, side)
    return alpha.index_put((inside,), solved[:k]), solved[k]


def naive_hybrid_readout(
    query: Tensor, key: Tensor, value: Tensor, alpha: Tensor | None, *, chunk: int, padding: Tensor | None = None
) -> Tensor:
    """Return softmax attention with logits q.k / sqrt(d), + log alpha on the support and + 0 in the own chunk.

    alpha (b, h, B, t) has the boundaries chunk, 2 chunk, ...; None gives every earlier token the coefficient 1.
    padding (b, t) is True where a key does not exist; a row that sees no key is 0.
    """
    logits = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    one = query.new_zeros(())
    return _token_by_token(logits, value, alpha, (one, one), chunk, padding)


def naive_rbf_readout(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    alpha: Tensor | None,
    *,
    chunk: int,
    sigma: float | Tensor,
    C: float | Tensor,
    padding: Tensor | None = None,
) -> Tensor:
    """Return the Gaussian readout: logits (2 q.x - |x|^2) / sigma^2, + log alpha on the support, + log C in the chunk.

    Without alpha every earlier token weighs C too.
    """
    width = torch.as_tensor(sigma, dtype=query.dtype).reshape(-1, 1, 1)
    logits = (2 * query @ key.transpose(-1, -2) - key.square().sum(-1).unsqueeze(-2)) / width**2
    log_C = torch.as_tensor(C, dtype=query.dtype).log()
    return _token_by_token(logits, value, alpha, (log_C, log_C), chunk, padding)


def _token_by_token(
    logits: Tensor,
    value: Tensor,
    alpha: Tensor | None,
    constants: tuple[Tensor, Tensor],  # added in the own chunk, and to earlier tokens where there is no gate
    chunk: int,
    padding: Tensor | None,
) -> Tensor:
    b, h, t, _ = logits.shape
    outputs = []
    for i in range(b):
        there = [padding is None or not bool(padding[i, j]) for j in range(t)]
        for j in range(h):
            for token in range(t):
                start = token // chunk * chunk
                terms, seen = [], []
                for past in range(token + 1):
                    if not there[past]:
                        continue
                    if past >= start:
                        extra = constants[0]
                    elif alpha is None:
                        extra = constants[1]
                    elif alpha[i, j, start // chunk - 1, past] > 0:
                        extra = alpha[i, j, start // chunk - 1, past].log()
                    else:
                        continue
                    terms.append(logits[i, j, token, past] + extra)
                    seen.append(past)
                if not seen:
                    outputs.append(value.new_zeros(value.shape[-1]))
                    continue
                outputs.append(torch.softmax(torch.stack(terms), 0) @ value[i, j, seen])
    return torch.stack(outputs).view(b, h, t, value.shape[-1])
