"""The readouts through a gate, against plain loops over tokens: outputs and every gradient."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from svmem.errors import InvalidInput
from svmem.nn import gate
from svmem.nn.attention import hybrid_readout, rbf_readout
from tests.oracles.gates import reference_gate
from tests.oracles.naive_attention import naive_gate, naive_hybrid_readout, naive_rbf_readout


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """A batch of sequences whose gates are far from any change of sets."""

    name: str
    seed: int
    shape: tuple[int, int, int, int]
    chunk: int
    C: float
    sigma: tuple[float, ...]
    dv: int
    lengths: tuple[int, ...] | None = None
    ridge: float = 1e-3

    @property
    def boundaries(self) -> range:
        return range(self.chunk, self.shape[2], self.chunk)

    def leaves(self) -> dict[str, Tensor]:
        b, h, t, d = self.shape
        key = torch.tensor(np.random.default_rng(self.seed).standard_normal(self.shape))
        rng = np.random.default_rng([self.seed, 1])
        query, value = (
            torch.tensor(rng.standard_normal((b, h, t, d))),
            torch.tensor(rng.standard_normal((b, h, t, self.dv))),
        )
        numbers = [torch.tensor(x, dtype=torch.float64) for x in (self.sigma, self.C)]
        names = ("query", "key", "value", "sigma", "C")
        return {name: x.requires_grad_() for name, x in zip(names, (query, key, value, *numbers), strict=True)}

    def gate(self, x: dict[str, Tensor]):
        return gate(x["key"], self.boundaries, C=x["C"], sigma=x["sigma"], ridge=self.ridge, lengths=self.lengths)

    def naive_gate(self, x: dict[str, Tensor]) -> Tensor:
        return naive_gate(
            x["key"], self.boundaries, C=x["C"], sigma=x["sigma"], ridge=self.ridge, lengths=self.lengths
        )[0]


SEQUENCES = (
    Sequences("odd length", 5, (2, 2, 23, 3), 8, 0.3, (1.5, 2.0), 3),
    Sequences("values wider than keys", 43, (1, 2, 11, 3), 4, 0.3, (1.5, 2.0), 5),
    Sequences("all at the cap", 57, (2, 2, 23, 3), 8, 0.125, (1.5, 2.0), 2),
    Sequences("one head", 96, (2, 1, 17, 3), 5, 0.25, (1.5,), 1),
    Sequences("one chunk", 1, (2, 2, 8, 3), 8, 0.3, (1.5, 2.0), 3),
    Sequences("shorter than a chunk", 1, (1, 2, 5, 3), 8, 0.3, (1.5, 2.0), 4),
    Sequences("one token", 1, (1, 2, 1, 3), 8, 0.3, (1.5, 2.0), 4),
    Sequences("one token over", 102, (1, 1, 5, 2), 4, 0.4, (1.0,), 3),
    Sequences("chunks of one", 15, (1, 1, 6, 2), 1, 0.6, (1.5,), 3),
    Sequences("collecting throughout", 3, (1, 2, 11, 3), 4, 0.05, (1.5, 2.0), 3),
    Sequences("padded", 102, (2, 2, 13, 3), 4, 0.35, (1.0, 1.6), 3, (6, 13)),
)
sequences = pytest.mark.parametrize("case", SEQUENCES, ids=lambda case: case.name)


def there(case: Sequences) -> Tensor:
    """Return which tokens exist, (b, t)."""
    b, _, t, _ = case.shape
    lengths = torch.tensor(case.lengths or (t,) * b)
    return torch.arange(t) < lengths[:, None]


def assert_same(
    case: Sequences, ours: Tensor, theirs: Tensor, one: dict[str, Tensor], other: dict[str, Tensor]
) -> None:
    """Compare outputs and all gradients at the tokens that exist."""
    mask = there(case)[:, None, :, None]
    torch.testing.assert_close(torch.where(mask, ours, 0), torch.where(mask, theirs, 0), rtol=0, atol=1e-12)
    weight = torch.arange(ours.numel()).view(ours.shape).sin()
    for out, leaves in ((ours, one), (theirs, other)):
        (torch.where(mask, out, 0) * weight).sum().backward()
        for leaf in leaves.values():
            leaf.grad = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
    for name in one:
        torch.testing.assert_close(
            one[name].grad, other[name].grad, rtol=1e-9, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}"
        )


@sequences
def test_the_sequences_are_far_from_any_change_of_sets(case: Sequences) -> None:
    keys, (b, h, _, _) = case.leaves()["key"].detach().numpy(), case.shape
    for i in range(b):
        for j in range(h):
            for s in case.boundaries:
                n = min(s, case.lengths[i]) if case.lengths else s
                found = reference_gate(keys[i, j], n, case.C, case.sigma[j], case.ridge)
                assert found.collecting or found.slack > 5e-4


@sequences
def test_the_hybrid_readout_and_its_gradients_are_those_of_loops_over_tokens(case: Sequences) -> None:
    one, other = case.leaves(), case.leaves()
    ours = hybrid_readout(one["query"], one["key"], one["value"], case.gate(one), chunk=case.chunk)
    theirs = naive_hybrid_readout(
        other["query"], other["key"], other["value"], case.naive_gate(other), chunk=case.chunk, padding=~there(case)
    )
    assert_same(case, ours, theirs, one, other)


@sequences
def test_the_rbf_readout_and_its_gradients_are_those_of_loops_over_tokens(case: Sequences) -> None:
    one, other = case.leaves(), case.leaves()
    same: dict[str, Any] = {"chunk": case.chunk, "C": case.C}
    ours = rbf_readout(one["query"], one["key"], one["value"], case.gate(one), sigma=one["sigma"], **same)
    q, k, v = other["query"], other["key"], other["value"]
    theirs = naive_rbf_readout(q, k, v, case.naive_gate(other), sigma=other["sigma"], padding=~there(case), **same)
    assert_same(case, ours, theirs, one, other)


@sequences
def test_without_a_gate_every_earlier_token_weighs_the_same(case: Sequences) -> None:
    one, other = case.leaves(), case.leaves()
    same: dict[str, Any] = {"chunk": case.chunk, "C": case.C}
    ours = [
        hybrid_readout(one["query"], one["key"], one["value"], None, chunk=case.chunk),
        rbf_readout(one["query"], one["key"], one["value"], None, sigma=one["sigma"], **same),
    ]
    q, k, v = other["query"], other["key"], other["value"]
    theirs = [
        naive_hybrid_readout(q, k, v, None, chunk=case.chunk),
        naive_rbf_readout(q, k, v, None, sigma=other["sigma"], **same),
    ]
    whole = Sequences("whole", case.seed, case.shape, case.chunk, case.C, case.sigma, case.dv)
    assert_same(whole, torch.cat(ours, -1), torch.cat(theirs, -1), one, other)


def test_the_hybrid_readout_without_a_gate_is_plain_causal_attention() -> None:
    x = SEQUENCES[0].leaves()
    plain = torch.nn.functional.scaled_dot_product_attention(x["query"], x["key"], x["value"], is_causal=True)
    out = hybrid_readout(x["query"], x["key"], x["value"], None, chunk=8)
    torch.testing.assert_close(out, plain, rtol=0, atol=1e-13)


def test_no_token_sees_a_later_one() -> None:
    case, rng = SEQUENCES[0], torch.Generator().manual_seed(0)
    x = {name: leaf.detach() for name, leaf in case.leaves().items()}
    for cut in (1, 7, 8, 9, 15, 16, 22):
        moved = dict(x)
        for name in ("query", "key", "value"):
            noise = torch.randn(x[name][:, :, cut:].shape, generator=rng, dtype=torch.float64)
            moved[name] = torch.cat([x[name][:, :, :cut], noise], 2)
        for readout, options in ((hybrid_readout, {}), (rbf_readout, {"sigma": x["sigma"], "C": case.C})):
            outs = [readout(y["query"], y["key"], y["value"], case.gate(y), chunk=8, **options) for y in (x, moved)]
            torch.testing.assert_close(outs[0][:, :, :cut], outs[1][:, :, :cut], rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["query", "key", "value", "sigma", "C"])
def test_gradcheck_passes_for_both_readouts(name: str) -> None:
    case = Sequences("small", 102, (1, 1, 5, 2), 4, 0.4, (1.0,), 2)
    x = {key: leaf.detach() for key, leaf in case.leaves().items()}

    def both(leaf: Tensor) -> tuple[Tensor, Tensor]:
        y = x | {name: leaf}
        found = case.gate(y)
        hybrid = hybrid_readout(y["query"], y["key"], y["value"], found, chunk=4)
        return hybrid, rbf_readout(y["query"], y["key"], y["value"], found, chunk=4, sigma=y["sigma"], C=case.C)

    assert torch.autograd.gradcheck(both, (x[name].clone().requires_grad_(),), atol=1e-7, rtol=1e-6)


def test_a_cap_that_the_rbf_readout_gets_as_a_tensor_has_its_gradient_from_there_as_well() -> None:
    case = Sequences("small", 102, (1, 1, 5, 2), 4, 0.4, (1.0,), 2)
    one, other = case.leaves(), case.leaves()
    ours = rbf_readout(one["query"], one["key"], one["value"], case.gate(one), chunk=4, sigma=one["sigma"], C=one["C"])
    q, k, v = other["query"], other["key"], other["value"]
    theirs = naive_rbf_readout(q, k, v, case.naive_gate(other), chunk=4, sigma=other["sigma"], C=other["C"])
    assert_same(case, ours, theirs, one, other)


def test_a_far_query_reads_a_finite_mean_of_the_values() -> None:
    case = SEQUENCES[0]
    x = {name: leaf.detach() for name, leaf in case.leaves().items()}
    out = rbf_readout(1e8 * x["query"], x["key"], x["value"], case.gate(x), chunk=8, sigma=x["sigma"], C=case.C)
    assert out.isfinite().all()
    assert out.abs().max() <= x["value"].abs().max()


def test_an_invalid_item_leaves_the_others_alone() -> None:
    case = SEQUENCES[0]
    x = {name: leaf.detach() for name, leaf in case.leaves().items()}
    spoiled = x | {"key": x["key"].clone()}
    spoiled["key"][1, 0, 3, 1] = torch.nan
    for readout, options in ((hybrid_readout, {}), (rbf_readout, {"sigma": x["sigma"], "C": case.C})):
        one, other = (readout(y["query"], y["key"], y["value"], case.gate(y), chunk=8, **options) for y in (x, spoiled))
        # The width to which supports are packed may change, and with it the order of sums.
        torch.testing.assert_close(one[0], other[0], rtol=0, atol=1e-14)
        torch.testing.assert_close(one[1, 1], other[1, 1], rtol=0, atol=1e-14)
        assert other[1, 0, 8:].isnan().all()


Q = torch.zeros(2, 3, 12, 4, dtype=torch.float64)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"query": Q[:, :, :5]}, "query"),
        ({"query": Q[..., :3]}, "query"),
        ({"query": Q[0]}, "query"),
        ({"key": Q[:, :2]}, "key"),
        ({"value": Q[:, :, :11]}, "value"),
        ({"value": Q[:1]}, "value"),
        *(({"chunk": chunk}, "chunk") for chunk in (0, -4, 2.5, None)),
        ({"chunk": 3}, "chunk"),  # the gate's boundaries are multiples of 4
    ],
    ids=str,
)
@pytest.mark.parametrize("rbf", [False, True])
def test_arguments_that_do_not_fit_together_are_refused(change: dict[str, Any], word: str, rbf: bool) -> None:
    given: dict[str, Any] = {"query": Q, "key": Q, "value": Q, "chunk": 4} | change
    options: dict[str, Any] = {"sigma": 1.0, "C": 0.3} if rbf else {}
    readout: Any = rbf_readout if rbf else hybrid_readout
    found = gate(Q, [4, 8], C=0.3, sigma=1.0)
    with pytest.raises(InvalidInput, match=word) as caught:
        readout(given["query"], given["key"], given["value"], found, chunk=given["chunk"], **options)
    assert "\n" not in str(caught.value)
