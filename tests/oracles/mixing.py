"""The baselines' formulas, token by token and head by head, from the weights of a module. Slow."""

import torch
from torch import Tensor, nn

from svmem.baselines import LSTM, DeltaNet, SelectiveSSM
from svmem.baselines.fista_gate import fista_gate
from tests.oracles.naive_attention import naive_hybrid_readout


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    y = torch.stack([layer.weight @ token for token in x])
    return y if layer.bias is None else y + layer.bias


def sequences(x: Tensor, one) -> Tensor:
    return torch.stack([one(sequence) for sequence in x])


def convolved(layer: nn.Conv1d, x: Tensor) -> Tensor:
    """Each channel of x (t, width) as a sum over its last tokens, with weights of its own."""
    taps = layer.weight[:, 0]  # (width, conv), the last for the token itself
    out = []
    for i in range(len(x)):
        steps = range(min(i + 1, taps.shape[1]))
        out.append(torch.stack([taps[:, -1 - back] * x[i - back] for back in steps]).sum(0))
    y = torch.stack(out)
    return y if layer.bias is None else y + layer.bias


def logistic(x: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-x))


def swish(x: Tensor) -> Tensor:
    return x * logistic(x)


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

    def one(sequence: Tensor) -> Tensor:
        qkv = swish(convolved(module.conv, linear(module.qkv_proj, sequence)))
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


def lstm_reference(module: LSTM, x: Tensor) -> Tensor:
    """Cells c <- forget * c + input * new, of which a token puts out out * tanh(c)."""
    weights = dict(module.lstm.named_parameters())
    width = module.embed_dim

    def one(sequence: Tensor) -> Tensor:
        cells, shown, out = sequence.new_zeros(width), sequence.new_zeros(width), []
        for token in sequence:
            sums = weights["weight_ih_l0"] @ token + weights["weight_hh_l0"] @ shown
            if module.lstm.bias:
                sums = sums + weights["bias_ih_l0"] + weights["bias_hh_l0"]
            taken, kept, new, given = (sums[part * width : (part + 1) * width] for part in range(4))
            cells = logistic(kept) * cells + logistic(taken) * torch.tanh(new)
            shown = logistic(given) * torch.tanh(cells)
            out.append(shown)
        return linear(module.out_proj, torch.stack(out))

    return sequences(x, one)


def selective_reference(module: SelectiveSSM, x: Tensor) -> Tensor:
    """Channel by channel: h <- exp(step A) h + step x B, of which a token puts out C . h and the skip."""
    rates = -torch.exp(module.log_decay).T  # (width, state)
    width, state = rates.shape
    rank = module.step_weight.shape[1]

    def one(sequence: Tensor) -> Tensor:
        both = linear(module.in_proj, sequence)
        stream, gate = swish(convolved(module.conv, both[:, :width])), both[:, width:]
        maps = linear(module.select_proj, stream)
        steps = torch.log1p(torch.exp(maps[:, :rank] @ module.step_weight.T + module.step_offset))
        out = []
        for channel in range(width):
            h, shown = stream.new_zeros(state), []
            for step, token, row in zip(steps[:, channel], stream[:, channel], maps, strict=True):
                h = torch.exp(step * rates[channel]) * h + step * token * row[rank : rank + state]
                shown.append(h @ row[rank + state :] + module.skip[channel] * token)
            out.append(torch.stack(shown))
        return linear(module.out_proj, torch.stack(out, dim=1) * swish(gate))

    return sequences(x, one)


def fista_reference(module, x: Tensor) -> Tensor:
    """The coefficients of the gate, which has tests of its own, in the naive readout."""
    q, k, v = (
        part.unflatten(-1, (module.num_heads, -1)).transpose(1, 2)
        for part in sequences(x, lambda one: linear(module.qkv_proj, one)).chunk(3, -1)
    )
    stops = list(range(module.chunk, x.shape[1], module.chunk))
    alpha = fista_gate(k, stops, C=module.C, sigma=module.sigma, ridge=module.ridge).clamp_min(0).to(x.dtype)
    mixed = naive_hybrid_readout(q, k, v, alpha, chunk=module.chunk)
    return sequences(mixed.transpose(1, 2).flatten(2), lambda one: linear(module.out_proj, one))
