"""`python -m experiments.stability` on two steps, and what it measures."""

from pathlib import Path

import pytest
import torch

from experiments import stability
from experiments.ledger import conduct
from experiments.probe import probed
from experiments.stability import EXPERIMENT, Config, arms, claim, count_spikes, draw
from svmem.baselines import FistaAttention
from svmem.nn import HybridSVAttention

README = str(Path(__file__).parents[2] / "README.md")
TINY = Config(ridges=(1e-6, 1e-2), width=8, head_dim=4, layers=1, block=24, chunk=8, batch=1, steps=2, wide_steps=1,
              text=README)  # fmt: skip


def test_each_arm_has_a_row_and_finished_rows_are_not_run_again(rows, path, monkeypatch):
    assert [row["arm"] for row in rows] == arms(TINY)
    assert len(rows) == 2 * 2 * 2 + 2 + 5
    assert all(row["status"] == "ok" and row["loss"] < 7 and row["seconds"] > 0 for row in rows)
    monkeypatch.setattr(stability, "_train", lambda *_: pytest.fail("trained again"))
    assert conduct(EXPERIMENT, TINY, path, "a command") == rows


def test_exact_gates_are_at_the_optimum_and_the_approximate_ones_are_measured_alike(rows):
    for row in rows:
        if row["gate"] == "exact":
            assert row["worst_gap"] < 1e-9
        if row["gate"] == "approximate":
            assert abs(row["worst_gap"]) < 0.1


def test_the_claims_and_the_figure_come_from_any_rows(rows):
    assert len(claim(rows)) == 13
    assert all(one.ours for one in claim(rows))
    assert len(draw(rows).axes) == 3
    assert {one.holds for one in claim([])} == {None}
    assert len(draw([]).axes) == 3


def changed(rows, spikes, steep, loss, gap):
    """Return rows with these numbers; the approximate gates have the small models' larger ridge."""
    made = []
    for row in rows:
        ridge = 1e-2 if row["gate"] == "approximate" and not row["wide"] else row["ridge"]
        numbers = {"spikes": spikes[row["gate"]], "loss": loss(row), "ridge": ridge, "gate_grad_max": steep(ridge or 1)}
        made.append(row | numbers | {"worst_gap": gap if row["gate"] == "approximate" else 1e-15})
    return made


def test_the_claims_hold_for_rows_that_bear_them_out_and_not_for_others(rows):
    good = {"exact": 2, "approximate": 1, "none": 2}
    fair = changed(rows, good, lambda ridge: 1 / ridge, lambda row: 2.0 - 0.1 * (row["gate"] == "approximate"), 0.1)
    assert [one.holds for one in claim(fair)] == [True] * 13
    bad = {"exact": 3, "approximate": 3, "none": 2}
    foul = changed(rows, bad, lambda ridge: ridge, lambda row: 2.0 + (row["unit_keys"] or row["learn_sigma"]), 1e-15)
    assert [one.holds for one in claim(foul)] == [False] * 13


def test_one_run_with_more_spikes_ends_the_sentence_on_each_run_but_not_on_the_average(rows):
    few = changed(rows, {"exact": 1, "approximate": 1, "none": 2}, lambda _: 1.0, lambda _: 2.0, 0.1)
    few[0]["spikes"] = 3
    mean, worst = claim(few)[:2]
    assert (mean.holds, worst.holds) == (True, False)
    assert f"at most 3 ({few[0]['arm']}) against 2" in worst.text


def test_a_gradient_larger_than_at_the_smallest_ridge_or_no_number_ends_the_sentence(rows):
    def holds(ridge, steep):
        some = changed(rows, {"exact": 1, "approximate": 1, "none": 2}, lambda ridge: 1 / ridge, lambda _: 2.0, 0.1)
        some = [
            row | {"gate_grad_max": steep} if row["ridge"] == ridge and row["gate"] == "exact" else row for row in some
        ]
        return next(one.holds for one in claim(some) if "smallest ridge, raw keys" in one.text)

    assert holds(1e-2, 1.0)
    assert not holds(1e-2, 2e6)
    assert not holds(1e-2, None)


def test_the_approximate_gate_has_to_be_better_in_spikes_and_loss_at_once(rows):
    def holds(spikes, loss):
        numbers = {"exact": 2, "approximate": spikes, "none": 2}
        some = changed(rows, numbers, lambda _: 1.0, lambda row: loss if row["gate"] == "approximate" else 2.0, 0.1)
        return [one.holds for one in claim(some) if "approximate gate has fewer" in one.text]

    assert holds(1, 1.9) == [True, True]
    assert holds(2, 1.9) == holds(1, 2.0) == [False, False]


def test_a_spike_is_half_a_nat_above_the_median_before():
    assert count_spikes([3.0, 2.9, 2.8, 3.5, 2.7, 2.6]) == 1
    assert count_spikes([3.0, 2.0, 1.0]) == 0
    assert count_spikes([3.0, float("nan"), 3.0]) == 1


def test_the_approximate_gate_reads_nearly_what_the_exact_one_does():
    torch.manual_seed(0)
    exact = HybridSVAttention(16, 2, chunk=8, sigma=2.0)
    rough = FistaAttention(16, 2, chunk=8, sigma=2.0)
    rough.load_state_dict(exact.state_dict())
    x = torch.randn(2, 24, 16)
    torch.testing.assert_close(rough(x), exact(x), atol=0.02, rtol=0.0)


def test_the_probe_sees_the_gradient_that_a_gate_cut_off_from_its_keys_lacks():
    torch.manual_seed(0)
    layer = HybridSVAttention(8, 1, chunk=8)
    x = torch.randn(1, 24, 8)
    whole = torch.autograd.grad(layer(x).square().sum(), layer.qkv_proj.weight)[0]
    packed = layer.project(x)
    with probed(layer) as flow:
        probed_too = torch.autograd.grad(layer(x).square().sum(), layer.qkv_proj.weight)[0]
        assert flow.take() > 0
        assert flow.take() == 0
    torch.testing.assert_close(probed_too, whole)
    inner = layer.gate_of
    layer.gate_of = lambda packed, valid: inner(packed._replace(tokens=packed.tokens.detach()), valid)
    cut = torch.autograd.grad(layer(x).square().sum(), layer.qkv_proj.weight)[0]
    assert packed.tokens.requires_grad
    assert (cut - whole).norm() > 1e-4 * whole.norm()
