"""What a gate refuses, what one bad item cannot do to the others, and that nothing outside the keys moves a bit."""

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import pytest
import torch
from torch import Tensor

import svmem
from svmem.errors import InvalidInput
from svmem.nn import GateStatus, gate

NAN, INF = float("nan"), float("inf")
BOUNDARIES = [0, 3, 8, 12]


def random_keys(*shape: int, seed: int = 0) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape))


def solved(keys: Tensor, **options: Any):
    given: dict[str, Any] = {"C": 0.3, "sigma": 1.5} | options
    return gate(keys, BOUNDARIES, **given)


def bits(found: Any, items: Any = slice(None), t: int = 12) -> list[bytes]:
    """Return every number of a gate for some items, whatever the width it is packed to."""
    fields = (found.dense(t), found.counts, found.offset, found.gap, found.status)
    return [field[items].detach().contiguous().numpy().tobytes() for field in fields]


def gradients(keys: Tensor, **options: Any) -> Tensor:
    leaf = keys.detach().clone().requires_grad_()
    found = solved(leaf, **options)
    weight = torch.arange(12, dtype=found.alpha.dtype)
    (found.dense(12) @ weight + torch.where(found.counts > 0, found.offset, 0)).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_a_key_that_is_not_a_number_spoils_its_own_item_and_head_only(bad: float) -> None:
    keys = random_keys(5, 3, 12, 2)
    spoiled = keys.clone()
    spoiled[2, 1, 5, 0] = bad
    clean, found = solved(keys), solved(spoiled)
    assert found.status[2, 1].tolist() == [1, 1, GateStatus.INVALID, GateStatus.INVALID]
    assert found.counts[2, 1, 2:].tolist() == [1, 1]
    assert found.alpha[2, 1, 2:, 0].isnan().all()
    others = torch.ones(5, 3, dtype=torch.bool)
    others[2, 1] = False
    assert bits(found, others) == bits(clean, others)
    early = (2, 1, slice(0, 2))
    assert torch.equal(found.dense(12)[early], clean.dense(12)[early])
    assert torch.equal(found.offset[2, 1, 1], clean.offset[2, 1, 1])


@pytest.mark.parametrize("bad", [NAN, INF])
def test_the_gradients_of_the_other_items_are_the_same_bits_beside_a_bad_one(bad: float) -> None:
    keys = random_keys(3, 2, 12, 2)
    spoiled = keys.clone()
    spoiled[1, 0, 4, 1] = bad
    clean, found = gradients(keys), gradients(spoiled)
    for place in ((0, 0), (0, 1), (1, 1), (2, 0), (2, 1)):
        assert torch.equal(found[place], clean[place])


def test_a_loss_that_leaves_the_bad_item_out_has_finite_gradients() -> None:
    keys = random_keys(3, 2, 12, 2)
    keys[1, 0, 4, 1] = NAN
    keys.requires_grad_()
    sigma = torch.tensor([1.5, 2.0], dtype=torch.float64, requires_grad=True)
    C = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    found = solved(keys, sigma=sigma, C=C)
    good = (found.status != GateStatus.INVALID) & (found.counts > 0)
    loss = torch.where(good[..., None], found.dense(12), 0).square().sum() + torch.where(good, found.offset, 0).sum()
    for gradient in torch.autograd.grad(loss, (keys, sigma, C)):
        assert gradient.isfinite().all()


def test_a_batch_of_300_holds_the_bits_of_300_single_calls() -> None:
    keys = random_keys(300, 1, 12, 2)
    keys[1::3, :, 4:] = keys[1::3, :, 3:4]  # a third of them degenerate
    found, slopes = solved(keys), gradients(keys)
    for i in range(300):
        assert bits(solved(keys[i : i + 1])) == bits(found, slice(i, i + 1))
    for i in range(0, 300, 7):
        assert torch.equal(gradients(keys[i : i + 1]), slopes[i : i + 1])


def test_the_layout_of_the_keys_changes_no_bit() -> None:
    keys = random_keys(2, 3, 12, 2)
    expected = bits(solved(keys))
    wide = torch.full((2, 12, 3, 5), NAN, dtype=torch.float64)
    wide[..., 1:4:2] = keys.transpose(1, 2)
    strided = wide[..., 1:4:2].transpose(1, 2)
    assert not strided.is_contiguous()
    assert bits(solved(strided)) == expected
    assert torch.equal(gradients(strided), gradients(keys))
    one = keys[:1, :1].expand(2, 3, 12, 2)
    assert bits(solved(one)) == bits(solved(one.clone()))


def test_asking_for_gradients_changes_no_bit() -> None:
    keys = random_keys(2, 3, 12, 2)
    expected = bits(solved(keys))
    assert bits(solved(keys.clone().requires_grad_())) == expected
    with torch.no_grad():
        assert bits(solved(keys.clone().requires_grad_())) == expected
    with torch.inference_mode():
        assert bits(solved(keys.clone())) == expected
    sigma = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    assert bits(solved(keys, sigma=sigma, C=torch.tensor(0.3, dtype=torch.float64, requires_grad=True))) == expected


def test_the_caller_s_tensors_are_left_alone() -> None:
    keys, sigma = random_keys(2, 3, 12, 2), torch.tensor([1.0, 1.5, 2.0], dtype=torch.float64)
    before = (keys.clone(), sigma.clone())
    found = solved(keys, sigma=sigma)
    expected = bits(found)
    keys += 1
    assert bits(found) == expected
    assert torch.equal(keys - 1, before[0]) or torch.allclose(keys - 1, before[0], atol=1e-15)
    assert torch.equal(sigma, before[1])


def test_boundaries_widths_and_caps_may_come_in_any_form() -> None:
    keys = random_keys(2, 3, 12, 2)
    expected = bits(solved(keys))
    for form in (tuple(BOUNDARIES), torch.tensor(BOUNDARIES), torch.tensor(BOUNDARIES, dtype=torch.int32)):
        assert bits(gate(keys, form, C=0.3, sigma=1.5)) == expected
    assert bits(gate(keys, range(0, 13, 4), C=0.3, sigma=1.5)) == bits(gate(keys, [0, 4, 8, 12], C=0.3, sigma=1.5))
    for sigma in (torch.tensor(1.5, dtype=torch.float64), torch.tensor([1.5] * 3), torch.tensor(1.5)):
        assert bits(solved(keys, sigma=sigma)) == expected
    assert bits(solved(keys, C=torch.tensor(0.3, dtype=torch.float64))) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_narrow_keys_get_the_float64_answer_of_their_values(dtype: torch.dtype) -> None:
    keys = random_keys(2, 3, 12, 2).to(dtype)
    found, wide = solved(keys), solved(keys.double())
    assert torch.equal(found.alpha, wide.alpha.float())
    assert torch.equal(found.offset[..., 1:], wide.offset[..., 1:].float())
    for name in ("indices", "counts", "gap", "status"):
        assert torch.equal(getattr(found, name), getattr(wide, name))
    slopes = gradients(keys)
    assert slopes.dtype == dtype
    expected = gradients(keys.double())
    torch.testing.assert_close(slopes.double(), expected, rtol=2 * torch.finfo(dtype).eps, atol=1e-4)


def test_the_number_of_threads_changes_no_bit() -> None:
    keys = random_keys(40, 3, 12, 2)
    seen = set()
    compiled, own = numba.get_num_threads(), torch.get_num_threads()
    try:
        for threads in (1, 2, 1):
            numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
            torch.set_num_threads(threads)
            seen.add((*bits(solved(keys)), gradients(keys).numpy().tobytes()))
    finally:
        numba.set_num_threads(compiled)
        torch.set_num_threads(own)
    assert len(seen) == 1


def test_several_threads_at_once_get_the_bits_of_one() -> None:
    batches = [random_keys(6, 3, 12, 2, seed=seed) for seed in range(24)]
    alone = [(bits(solved(keys)), gradients(keys).numpy().tobytes()) for keys in batches]
    with ThreadPoolExecutor(6) as pool:
        together = pool.map(lambda keys: (bits(solved(keys)), gradients(keys).numpy().tobytes()), batches)
        assert list(together) == alone


FORKING = """
import os, sys, torch
from svmem.nn import gate
keys = torch.arange(2 * 8 * 30 * 3, dtype=torch.float64).sin().view(2, 8, 30, 3).requires_grad_()
def once():
    found = gate(keys, [10, 20, 30], C=0.2, sigma=1.0)
    slope = torch.autograd.grad(found.alpha.square().sum(), keys)[0]
    return found.alpha.detach().numpy().tobytes() + slope.numpy().tobytes()
before = once()
child = os.fork()
if child == 0:
    os._exit(0 if once() == before else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) or int(once() != before))
"""


def test_a_forked_process_goes_on_with_the_same_bits() -> None:
    ran = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=240)
    assert (ran.returncode, ran.stderr) == (0, "")


KEYS = random_keys(2, 3, 12, 2)
GOOD: dict[str, Any] = {"keys": KEYS, "boundaries": [4, 8], "C": 0.3, "sigma": 1.5}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"keys": KEYS[0]}, "keys"),
        ({"keys": KEYS[None]}, "keys"),
        ({"keys": KEYS.numpy()}, "keys"),
        ({"keys": KEYS.long()}, "keys"),
        ({"keys": KEYS.bool()}, "keys"),
        ({"keys": KEYS.to(torch.complex64)}, "keys"),
        ({"keys": KEYS[..., :0]}, "keys"),
        ({"boundaries": [8, 4]}, "boundaries"),
        ({"boundaries": [-1, 4]}, "boundaries"),
        ({"boundaries": [4, 13]}, "boundaries"),
        ({"boundaries": [4.5]}, "boundaries"),
        ({"boundaries": torch.tensor([4.0])}, "boundaries"),
        ({"boundaries": torch.tensor([[4]])}, "boundaries"),
        ({"boundaries": 4}, "boundaries"),
        ({"boundaries": "48"}, "boundaries"),
        ({"boundaries": [None]}, "boundaries"),
        *(({"C": C}, "C") for C in (0.0, -0.1, 1.5, NAN, INF, "0.3", None, torch.tensor([0.3]), torch.tensor(NAN))),
        *(({"sigma": s}, "sigma") for s in (0.0, -1.0, NAN, INF, 1e-200, "1", None)),
        *(({"sigma": torch.tensor(s)}, "sigma") for s in ([1.0, 1.0], [[1.0] * 3], [1.0, 0.0, 1.0], NAN)),
        *(({"ridge": ridge}, "ridge") for ridge in (0.0, -1e-6, NAN, INF, None, "1e-6")),
        *(({"lengths": n}, "lengths") for n in ([4], [4, 13], [-1, 4], [1.5, 2.0], 4, torch.tensor([[4, 4]]))),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, dict) else str(x),
)
def test_a_bad_argument_is_refused_in_one_sentence_that_names_it(change: dict[str, Any], word: str) -> None:
    arguments = GOOD | change
    keys, boundaries = arguments.pop("keys"), arguments.pop("boundaries")
    with pytest.raises(InvalidInput, match=rf"\b{word}\b") as caught:
        gate(keys, boundaries, **arguments)
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in message
    assert len(message.split()) >= 5


@pytest.mark.parametrize("shape", [(2, 3, 5, 3), (1, 3, 5, 2), (2, 3, 5), (5, 2)])
def test_points_of_another_shape_than_the_keys_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="points"):
        solved(KEYS).score(torch.zeros(shape, dtype=torch.float64))


@pytest.mark.parametrize("t", [5, -1, 2.5])
def test_a_dense_form_too_short_for_the_support_is_refused(t: Any) -> None:
    with pytest.raises(InvalidInput):
        solved(KEYS).dense(t)


@pytest.mark.parametrize("C", [1 / 49, math.nextafter(1 / 49, 0), math.nextafter(1 / 49, 1)])
def test_a_cap_that_is_the_float_next_to_1_over_k_means_1_over_k(C: float) -> None:
    keys = random_keys(1, 1, 49, 2)
    found = gate(keys, [48, 49], C=C, sigma=1.5)
    assert found.status[0, 0].tolist() == [GateStatus.COLLECTING, GateStatus.OPTIMAL]
    assert (found.alpha[0, 0, 1] == C).all()
    expected = svmem.solve(keys[0, 0].numpy(), svmem.Problem(svmem.RBF(1.5), C=C, ridge=1e-6))
    assert found.offset[0, 0, 1].item() == pytest.approx(expected.offset, abs=1e-14)
