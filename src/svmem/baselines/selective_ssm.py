"""A state-space model whose step size, input and output depend on the token: a state of fixed size."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, pad, silu, softplus

from svmem.baselines.mixer import TokenMixer
from svmem.errors import InvalidInput

__all__ = ["SelectiveSSM"]

STEPS = (1e-3, 1e-1)  # between which the step sizes start, evenly in their logarithm
TOKENS_PER_RANK = 16  # the step sizes of all channels come from a sixteenth as many numbers as a token has


class SelectiveSSM(TokenMixer):
    """The mixer of Mamba; time grows with t. [GuDao2023, sections 3.2 to 3.4, 3.6]

    As published: a stream and a gate, `expand` times as wide as the tokens; on the stream a causal depthwise
    convolution over the last `conv` tokens and SiLU, then a diagonal system of `state` numbers for each channel, whose
    step size, input and output are maps of the token and whose rates start as -1..-state [GuEtAl2022]; around it a
    skip, and SiLU of the gate. Without `bias` the step sizes still have their offset, from which they start.
    `num_heads` is there because all layers are made alike: every channel has a system of its own, and the number
    changes nothing. `chunk` changes the speed and not the result: with few channels shorter ones are faster.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        bias: bool = True,
        *,
        state: int = 16,
        expand: int = 2,
        conv: int = 4,
        chunk: int = 256,
    ) -> None:
        super().__init__(embed_dim, num_heads)
        if min(state, expand, conv, chunk) < 1:
            raise InvalidInput(
                f"state, expand, conv and chunk must be at least 1, got {state}, {expand}, {conv} and {chunk}"
            )
        width, rank = expand * embed_dim, -(-embed_dim // TOKENS_PER_RANK)
        self.chunk = chunk
        self.sizes = (rank, state, state)
        self.in_proj = nn.Linear(embed_dim, 2 * width, bias=bias)
        self.conv = nn.Conv1d(width, width, conv, groups=width, bias=bias)
        self.select_proj = nn.Linear(width, sum(self.sizes), bias=False)
        # No nn.Linear: a model that starts all of those alike would undo the steps that are published.
        self.step_weight = nn.Parameter(torch.empty(width, rank).uniform_(-1, 1) / math.sqrt(rank))
        low, high = map(math.log, STEPS)
        step = torch.empty(width).uniform_(low, high).exp()
        self.step_offset = nn.Parameter(step + torch.log(-torch.expm1(-step)))  # softplus gives the step back
        self.log_decay = nn.Parameter(torch.arange(1.0, state + 1).log()[:, None].repeat(1, width))  # (n, w)
        self.skip = nn.Parameter(torch.ones(width))
        self.out_proj = nn.Linear(width, embed_dim, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the mixed tokens; output i depends on inputs 0..i only."""
        self._check(x)
        stream, gate = self.in_proj(x).chunk(2, dim=-1)  # (b, t, width) each
        stream = silu(self.conv(pad(stream.mT, (self.conv.kernel_size[0] - 1, 0)))).mT
        low, write, read = self.select_proj(stream).split(self.sizes, dim=-1)
        step = softplus(linear(low, self.step_weight, self.step_offset))
        out = scan(step, stream, write, read, -self.log_decay.exp(), chunk=self.chunk)
        return self.out_proj((out + self.skip * stream) * silu(gate))


def scan(step: Tensor, x: Tensor, write: Tensor, read: Tensor, decay: Tensor, *, chunk: int) -> Tensor:
    """Return read_i . H_i for H_i = exp(step_i decay) * H_{i-1} + write_i (step_i x_i)' from H = 0, for all i.

    Shapes: step and x (b, t, w), write and read (b, t, n), decay (n, w) and not above 0. [GuDao2023, section 3.2]
    """
    # Every chunk runs from 0, all of them at once, a position at a time. What a chunk starts from, S, then adds
    #   read_i . (exp(decay * (step_1 + ... + step_i)) * S),
    # and S goes from chunk to chunk. Exponents are never above 0, so nothing can overflow, whatever the steps are.
    t, chunk = x.shape[1], min(chunk, x.shape[1])
    step, x, write, read = (pad(y, (0, 0, 0, -t % chunk)).unflatten(1, (-1, chunk)) for y in (step, x, write, read))
    steps, writes = step.unsqueeze(3).unbind(2), write.unsqueeze(4).unbind(2)  # (b, c, 1, w), (b, c, n, 1) each
    inputs, reads = (step * x).unsqueeze(3).unbind(2), read.unsqueeze(3).unbind(2)  # (b, c, 1, w), (b, c, 1, n)
    state, out = x.new_zeros(*x.shape[:2], *decay.shape), []
    for size, taken, at, to in zip(steps, inputs, writes, reads, strict=True):
        state = torch.addcmul(taken * at, (size * decay).exp(), state)  # (b, c, n, w)
        out.append(to @ state)
    if x.shape[1] > 1:
        so_far = step.cumsum(2).unsqueeze(3).unbind(2)
        start = _starts(state, (so_far[-1] * decay).exp())
        out = [y + to @ ((size * decay).exp() * start) for y, to, size in zip(out, reads, so_far, strict=True)]
    return torch.cat(out, 2).flatten(1, 2)[:, :t]


def _starts(ends: Tensor, kept: Tensor) -> Tensor:
    """Return what each chunk starts from: (b, c, n, w), from where it ends when it starts from 0 and what it keeps."""
    state, starts = torch.zeros_like(ends[:, 0]), []
    for end, share in zip(ends.unbind(1), kept.unbind(1), strict=True):
        starts.append(state)
        state = torch.addcmul(end, share, state)
    return torch.stack(starts, 1)
