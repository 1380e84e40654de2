"""Decoding token by token with a memory that holds the support and the present chunk, or also the reserve."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from svmem.core.problem import Problem
from svmem.errors import InvalidInput
from svmem.kernels import RBF
from svmem.nn.attention import attend, log_alpha, silent
from svmem.nn.compiled import features
from svmem.nn.gate import WARM_UP
from svmem.nn.head_memory import HeadMemory

if TYPE_CHECKING:
    from svmem.nn.layer import SVAttention

__all__ = ["CacheReport", "SVCache"]


@dataclass(frozen=True, slots=True)
class CacheReport:
    """How a cache stands, over all its batch items and heads."""

    tokens: int  # taken up so far
    kept: int  # most keys that a head holds beside the present chunk
    proved: bool  # whether the memory is provably the one that had dropped nothing
    proved_until: int  # up to which token it was, at least
    # Further tokens through which the keys dropped so far provably stay silent, whatever comes; None: none was dropped.
    # What the next chunks drop is another matter: `proved` says how that went.
    horizon: int | None
    worst_gap: float  # largest duality gap of a head's gate as it stands; NaN where a key was not finite


class SVCache:
    """What a layer has to remember of the tokens so far, to go on one by one: `layer(x, cache=cache)`.

    A new token reads the memory, the support of the gate over all chunks before its own, and its own chunk. The gate is
    solved again when a chunk is full; with chunk=1 that is after every token. Equal to the layer's forward pass.

    exact=True keeps the keys and values of the reserve in a cold part, since later keys can wake them: reading costs
    support + chunk a token whatever the length, storage grows. exact=False drops them at each chunk's end: storage too
    stays at support + chunk, and `report()` says how long the memory is provably the same and how far it has come.
    The gates are those of the layer's present weights, and no gradient flows.
    """

    def __init__(self, layer: "SVAttention", batch_size: int = 1, *, exact: bool = True) -> None:
        if not isinstance(batch_size, int) or batch_size < 1:
            raise InvalidInput(f"batch_size must be a whole number of at least 1, got {batch_size!r}")
        if not layer.gated:
            raise InvalidInput("a cache serves layers with a gate; this one was made with gate=False")
        self.exact, self.length = exact, 0
        self._proved_until = 0
        heads, d = layer.num_kv_heads, layer.head_dim
        self._sizes = (batch_size, heads, layer.chunk, d)
        like = layer.out_proj.weight
        width = d + 1
        self._tokens = like.new_zeros(batch_size, heads, 0, 2 * width)  # by place in `origin`; exact: and room to grow
        self._own, self._scale = 0.0, 1.0  # bias of a token in its own chunk; of the logits
        self._memory = self._tokens  # (b, g, w, 2 width): the support, log alpha in its bias
        self._local = like.new_zeros(batch_size, heads, layer.chunk, 2 * width)
        self._points = np.zeros((batch_size, heads, layer.chunk, d))  # the local keys as the kernel sees them
        self._valid = np.zeros((batch_size, layer.chunk), bool)
        sigma = layer.sigma.detach().double().tolist()
        self._heads = [
            [HeadMemory(d, Problem(RBF(sigma[g]), layer.C, layer.ridge), WARM_UP) for g in range(heads)]
            for _ in range(batch_size)
        ]

    @property
    def batch_size(self) -> int:
        """Sequences side by side."""
        return self._sizes[0]

    def report(self) -> CacheReport:
        """Return how the cache stands."""
        heads = [head for row in self._heads for head in row]
        horizons = [found for found in (head.horizon() for head in heads) if found is not None]
        return CacheReport(
            tokens=self.length,
            kept=max(len(head.origin) for head in heads),
            proved=all(head.proved for head in heads),
            proved_until=self._proved_until,
            horizon=max(min(horizons) - self.length % self._sizes[2], 0) if horizons else None,
            worst_gap=float(np.max([head.support()[3] for head in heads])),
        )

    def support(self, item: int, head: int) -> tuple[Tensor, Tensor]:
        """Return the positions in the sequence that carry a head's memory, rising, and their coefficients."""
        memory = self._heads[item][head]
        index, alpha, _, _ = memory.support()
        return torch.from_numpy(memory.origin[index]), torch.from_numpy(alpha)

    def extend(self, layer: "SVAttention", x: Tensor, valid: Tensor | None) -> Tensor:
        """Take up tokens x (b, n, embed_dim) and return their readout (b, n, h, width)."""
        b, _, chunk, _ = self._sizes
        if x.shape[0] != b or (layer.num_kv_heads, layer.chunk, layer.head_dim) != self._sizes[1:]:
            raise InvalidInput(f"this cache was made for {b} sequences of another layer, got {x.shape[0]} of this one")
        packed = layer.project(x)
        there = np.ones(x.shape[:2], bool) if valid is None else valid.cpu().numpy()
        tokens = packed.tokens.transpose(1, 2)  # (b, g, n, 2 width)
        points = features(tokens[..., : packed.d].double().cpu().numpy(), layer.normalize_keys)
        self._own, self._scale = float(packed.own), packed.scale
        out, start = [], 0
        while start < x.shape[1]:
            at = self.length % chunk
            stop = min(start + chunk - at, x.shape[1])
            here = slice(at, at + stop - start)
            self._local[:, :, here] = tokens[:, :, start:stop]
            self._points[:, :, here] = points[:, :, start:stop]
            self._valid[:, here] = there[:, start:stop]
            self.length += stop - start
            out.append(self._read(packed.query[:, start:stop], here.stop))
            if here.stop == chunk:
                self._close_chunk()
            start = stop
        return torch.cat(out, dim=1)

    def forget(self, positions: Iterable[int]) -> None:
        """Take tokens out, in all sequences: gate and readout are then those of a memory that never held them.

        The other tokens keep their positions. A bounded cache that has dropped keys proves nothing from here on: one of
        them might have come up again now. What later layers computed from a token stays theirs.
        Raises InvalidInput for positions that have not come yet.
        """
        wanted = [whole(position, "positions") for position in positions]
        gone = np.array(sorted(set(wanted)), np.int64)
        if gone.size and not (gone[0] >= 0 and gone[-1] < self.length):
            raise InvalidInput(f"positions must lie in [0, {self.length}), got {gone.tolist()}")
        start = self.length - self.length % self._sizes[2]
        local = gone[gone >= start] - start
        self._valid[:, local] = False
        self._local[:, :, local] = 0.0
        self._points[:, :, local] = 0.0
        for item, row in enumerate(self._heads):
            for number, head in enumerate(row):
                held = np.isin(head.origin, gone)
                if head.forget(gone):
                    self._tokens[item, number, : len(held)][torch.from_numpy(held)] = 0.0
        self._gather()

    def reorder(self, items: Sequence[int] | Tensor) -> None:
        """Make sequence k go on as sequence items[k] would; one may be taken several times, as in a beam search."""
        chosen = [whole(item, "items") for item in items]
        if not chosen or not all(0 <= item < self.batch_size for item in chosen):
            raise InvalidInput(f"items must be numbers of the {self.batch_size} sequences, got {chosen}")
        self._tokens, self._memory, self._local = (
            tensor[chosen].clone() for tensor in (self._tokens, self._memory, self._local)
        )
        self._points, self._valid = self._points[chosen].copy(), self._valid[chosen].copy()
        self._heads = [[head.copy() for head in self._heads[item]] for item in chosen]
        self._sizes = (len(chosen), *self._sizes[1:])

    def crop(self, length: int) -> None:
        """Go back to the first `length` tokens.

        Raises InvalidInput for more tokens than there are, and for a bounded cache that would have to go back behind
        the start of the present chunk: what it dropped there is gone.
        """
        chunk, length = self._sizes[2], whole(length, "length")
        start = self.length - self.length % chunk
        if not 0 <= length <= self.length:
            raise InvalidInput(f"length must lie in [0, {self.length}], got {length}")
        if length < start and not self.exact:
            raise InvalidInput(
                f"a bounded cache goes back to token {start} at most, where it dropped keys; got {length}"
            )
        if length < start:
            self._reopen(length - length % chunk)
        self._valid[:, length % chunk :] = False
        self.length = length

    def _reopen(self, start: int) -> None:
        """Make the chunk from `start` on the present one again."""
        chunk = slice(start, start + self._sizes[2])
        self._local = self._tokens[:, :, chunk].clone()
        for item, row in enumerate(self._heads):
            for number, head in enumerate(row):
                self._points[item, number], self._valid[item] = head.held(chunk)
                head.crop(start)
        self._gather()

    def _read(self, query: Tensor, filled: int) -> Tensor:
        """Return the readout of the last tokens of the present chunk, which is filled so far."""
        local = self._local[:, :, :filled].clone()
        bias = local.new_full((self.batch_size, filled), self._own)
        bias[torch.from_numpy(~self._valid[:, :filled])] = silent(local)
        local[..., self._sizes[3]] += bias.unsqueeze(1) / self._scale
        key, value = torch.cat([self._memory, local], dim=2).chunk(2, dim=3)
        return attend(query, key, value, self._scale)

    def _close_chunk(self) -> None:
        """Hand the present chunk, which is full, to the gates, and gather the support."""
        chunk = self._sizes[2]
        origin = np.arange(self.length - chunk, self.length)
        for item, row in enumerate(self._heads):
            for number, head in enumerate(row):
                head.admit(self._points[item, number], self._valid[item], origin)
        if self.exact:
            self._store(origin)
        else:
            self._drop()
        if all(head.proved for row in self._heads for head in row):
            self._proved_until = self.length
        self._gather()

    def _store(self, origin: np.ndarray) -> None:
        """Keep the chunk's tokens in the cold part, whose room doubles when it is used up."""
        room = self._tokens.shape[2]
        if self.length > room:
            self._tokens = torch.nn.functional.pad(self._tokens, (0, 0, 0, max(room, self.length - room)))
        self._tokens[:, :, origin] = self._local

    def _drop(self) -> None:
        """Keep the tokens of the support alone."""
        chunk, before = self._sizes[2], self._tokens.shape[2]
        kept = []
        for row in self._heads:
            for head in row:
                held = len(head.origin) - chunk
                places = np.arange(held + chunk)
                places[held:] += before - held  # those of the chunk lie behind the widest head's
                kept.append(places[head.prune()])
        self._tokens = _gathered(torch.cat([self._tokens, self._local], dim=2), kept)

    def _gather(self) -> None:
        """Lay out the support with log alpha in its bias."""
        found = [head.support() for row in self._heads for head in row]
        self._memory = _gathered(self._tokens, [index for index, *_ in found])
        alpha = np.zeros(self._memory.shape[:3])
        counts = np.array([len(index) for index, *_ in found]).reshape(alpha.shape[:2])
        for number, (_, values, _, _) in enumerate(found):
            alpha[number // alpha.shape[1], number % alpha.shape[1], : len(values)] = values
        like = self._tokens
        weights, sizes = torch.from_numpy(alpha).to(like.device), torch.from_numpy(counts).to(like.device)
        bias = log_alpha(weights.to(torch.float32 if like.dtype != torch.float64 else torch.float64), sizes, like)
        self._memory[..., self._sizes[3]] += bias / self._scale


def whole(number: object, name: str) -> int:
    """Return a whole number as an int. Raises InvalidInput for anything else."""
    if isinstance(number, Tensor) and number.dim() == 0:
        number = number.item()
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise InvalidInput(f"{name} must be whole numbers, got {number!r}")
    return int(number)


def _gathered(tokens: Tensor, places: list[np.ndarray]) -> Tensor:
    """Return tokens (b, g, m, c) at the places of each head, padded to the widest, (b, g, w, c)."""
    width = max(len(place) for place in places)
    index = np.zeros((len(places), width), np.int64)
    for row, place in zip(index, places, strict=True):
        row[: len(place)] = place
    b, g, _, c = tokens.shape
    chosen = torch.from_numpy(index).to(tokens.device).reshape(b, g, width, 1).expand(-1, -1, -1, c)
    return tokens.gather(2, chosen) if width else tokens[:, :, :0].clone()
