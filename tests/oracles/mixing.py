"""The baselines' formulas, token by token and head by head, from the weights of a module. Slow."""

import torch
from torch import Tensor, nn

from svmem.baselines import DeltaNet


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    y = torch.stack([layer.weight @ token for token in x])
    return y if layer.bias is None else y + layer.bias


def sequences(x: Tensor, one) -> Tensor:
    return torch.stack([one(sequence) for sequence in x])


def softmax_reference(module, x: Tensor, *, window: int) -> Tensor:
    """Softmax attention to the last `window` tokens."""

    def head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = []
        for i in range(len(q)):
            seen = range(max(0, i - window + 1), i + 1)
            weights = torch.stack([torch.exp(q[i] @ k[j] / q.shape[1] ** 0.5) for j in seen])
            out.append(sum(w * v[j] for w, j in zip(weights, seen, strict=True)) / weights.sum())
        return torch.stack(out)

    return sequences(x, lambda one: linear(module.out_proj, per_head(module, linear(module.qkv_proj, one), head)))


def linear_reference(module, x: Tensor, *, epsilon: float) -> Tensor:
    """The recurrent form: a matrix of sums, and a vector of them for the weights."""

    def features(a: Tensor) -> Tensor:
        return torch.where(a > 0, a + 1, a.clamp(max=0).exp())

    def head(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        d = q.shape[1]
        state, total, out = q.new_zeros(d, d), q.new_zeros(d), []
        for i in range(len(q)):
            state = state + torch.outer(v[i], features(k[i]))
            total = total + features(k[i])
            out.append(state @ features(q[i]) / (total @ features(q[i]) + epsilon))
        return torch.stack(out)

    return sequences(x, lambda one: linear(module.out_proj, per_head(module, linear(module.qkv_proj, one), head)))


def per_head(module, qkv: Tensor, head) -> Tensor:
    width, d = module.embed_dim, module.embed_dim // module.num_heads
    starts = range(0, width, d)
    return torch.cat(
        [head(*(qkv[:, s + part : s + part + d] for part in (0, width, 2 * width))) for s in starts], dim=1
    )


def delta_reference(module: DeltaNet, x: Tensor) -> Tensor:
    """The recurrent form: S <- S (I - beta k k') + beta v k', read with the query."""

    def convolved(qkv: Tensor) -> Tensor:
        taps = module.conv.weight[:, 0]  # (3 * width, conv), the last for the token itself
        out = []
        for i in range(len(qkv)):
            steps = range(min(i + 1, taps.shape[1]))
            out.append(torch.stack([taps[:, -1 - back] * qkv[i - back] for back in steps]).sum(0))
        return torch.stack(out)

    def one(sequence: Tensor) -> Tensor:
        qkv = convolved(linear(module.qkv_proj, sequence))
        qkv = qkv / (1 + torch.exp(-qkv))
        strengths = iter((1 / (1 + torch.exp(-linear(module.beta_proj, sequence)))).T)
        return linear(module.out_proj, per_head(module, qkv, lambda q, k, v: head(q, k, v, next(strengths))))

    def head(q: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
        d = q.shape[1]
        state, out = q.new_zeros(d, d), []
        for i in range(len(q)):
            key, query = k[i] / k[i].norm(), q[i] / q[i].norm()
            state = state - beta[i] * torch.outer(state @ key, key) + beta[i] * torch.outer(v[i], key)
            read = state @ query
            out.append(module.norm.weight * read / torch.sqrt((read**2).mean() + 1e-5))
        return torch.stack(out)

    return sequences(x, one)
