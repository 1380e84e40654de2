"""`python -m experiments.selection` on a few trials and the longest stays."""

import json

import numpy as np
import pytest

from experiments import selection, stays
from experiments.ledger import conduct
from experiments.selection import EXPERIMENT, Config, arms, claim, draw
from experiments.selection_claims import over_seeds, over_trials, trials_of
from experiments.selection_table import table
from experiments.skew import Groups, answered, draw_trial
from svmem.baselines.selection import KEY_ONLY, QUERY_AWARE
from svmem.demo.clif import load_clif
from svmem.demo.retention import HELD_OUT, VITALS, Protocol, measure_retention
from svmem.errors import InvalidInput

pytestmark = pytest.mark.usefixtures("compiled")
TINY = Config(
    seeds=(0, 1),
    trials=3,
    shares=(20, 60),
    held_out=("none", "spo2"),
    hours_at_least=300,
    draws=2,
    resamples=50,
    control_seeds=(0,),
    steps=2,
)
FIELDS = {"arm", "part", "seconds", "status", "config", "command", "svmem", "numpy", "numba", "python"}


@pytest.fixture(scope="module")
def hours():
    return load_clif()


def test_each_selector_has_a_row_for_each_seed_and_each_question_to_the_stays(rows):
    assert {row["arm"] for row in rows} == set(arms(TINY))
    assert len(rows) == 2 * 2 * (len(KEY_ONLY) + len(QUERY_AWARE) + 2) + 2 * len(KEY_ONLY) + 3
    assert all(row.keys() >= FIELDS for row in rows)
    assert all(row["worst_gap"] < 1e-12 for row in rows if row["part"] != "pairs")
    for row in rows:
        if row["part"] == "stays":
            assert all(
                row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for name in ("kept", "answered", "minus_heavy")
            )


def test_the_groups_answered_in_each_trial_are_those_of_the_shares(rows):
    some = [row for row in rows if row["part"] in ("groups", "shuffled")]
    for row in some:
        for which, size in (("rare", 6), ("all", 12)):
            counts = row[f"{which}_by_trial"]
            assert len(counts) == TINY.trials
            assert all(isinstance(count, int) and 0 <= count <= size for count in counts)
            assert np.mean(counts) / size == pytest.approx(row[which], abs=1e-6)
    groups = [row for row in some if row["part"] == "groups"]
    both = [row for row in groups if row["selector"] == "random"]
    found = trials_of(groups[::-1], "random", "all")  # in the order of the seeds, whatever that of the rows
    np.testing.assert_array_equal(12 * found, both[0]["all_by_trial"] + both[1]["all_by_trial"])


def test_the_interval_over_trials_is_that_of_their_mean():
    trials = np.random.default_rng(0).binomial(6, 0.8, 600) / 6
    one, shifted, constant = over_trials(np.column_stack([trials, trials + 1, np.ones(600)]))
    half = 1.96 * trials.std() / np.sqrt(600)
    assert one.mean == pytest.approx(trials.mean())
    assert [one.low, one.high] == pytest.approx([one.mean - half, one.mean + half], abs=0.1 * half)
    assert [shifted.low, shifted.high] == pytest.approx([1 + one.low, 1 + one.high])  # the same trials are drawn
    assert [constant.low, constant.high] == pytest.approx([1.0, 1.0])
    assert np.isnan(over_trials(np.ones((1, 1)))[0].low)  # a single trial has no interval


def test_a_lead_at_the_matched_budget_is_told_by_the_interval_over_trials(rows):
    def one(counts):
        some = [row for row in rows if row["part"] == "groups"]
        counts = {"support": [3, 3, 3], "leverage": counts}
        some = [row | {"rare_by_trial": counts.get(row["selector"], [0, 0, 0])} for row in some]
        return next(one for one in claim(some) if one.text.startswith("no selector here answers more rare groups"))

    assert one([3, 3, 3]).holds
    assert one([4, 4, 4]).holds is False
    assert "more: leverage by 0.167 [0.167, 0.167]" in one([4, 4, 4]).text
    assert one([3, 3, 4]).holds is None


def test_finished_rows_are_not_run_again(rows, path, monkeypatch):
    monkeypatch.setattr(selection, "_groups", lambda *_: pytest.fail("ran again"))
    monkeypatch.setattr(selection, "compare", lambda *_: pytest.fail("ran again"))
    again = conduct(EXPERIMENT, TINY, path, "a command")
    assert again == json.loads(json.dumps(rows))


def test_a_query_is_answered_by_the_group_with_most_kernel_mass():
    groups = Groups(dim=2, rare=2, dense=2, copies=3, query_noise=0.0)
    trial = draw_trial(groups, np.random.default_rng(5))
    assert [len(group) for group in np.split(trial.scene.keys, [1, 2, 5])] == [1, 1, 3, 3]
    assert trial.scene.asked is not None
    np.testing.assert_array_equal(trial.scene.seen, trial.scene.asked[::2])
    kept, owner = np.array([0, 2, 3, 6]), np.array([0, 1, 2, 2, 2, 3, 3, 3])
    for place, query in enumerate(trial.scene.asked[1::2]):
        mass = np.zeros(4)
        for key in kept:
            mass[owner[key]] += np.exp(-np.sum((query - trial.scene.keys[key]) ** 2) / groups.sigma**2)
        assert answered(trial, kept)[place] == (mass.argmax() == place)
    assert not answered(trial, kept)[1]  # its only key is gone
    lone = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert answered(trial, np.arange(8), lone).tolist() == [False, True, False, False]


@pytest.mark.parametrize(("held_out", "columns"), [("none", VITALS), ("spo2", tuple({*VITALS} - {HELD_OUT}))])
def test_stays_are_measured_as_in_the_demo(hours, held_out, columns):
    protocol = Protocol(hours_at_least=200, draws=2, resamples=50)
    _, event = stays.question(hours, held_out)
    demo = measure_retention(hours, event, columns, protocol)
    found = {
        row["selector"]: row
        for row in stays.summary(stays.compare(hours, held_out, protocol, (), lambda _: None), protocol)
    }
    for name, theirs in {"support": "support", "heavy-hitter of keys": "heavy-hitter", "recency": "last k"}.items():
        assert found[name]["kept"] == pytest.approx(demo.kept[theirs].mean)
        assert found[name]["answered"] == pytest.approx(demo.answered[theirs].mean)
    assert found["support"]["minus_heavy"] == pytest.approx(demo.kept_difference.mean)
    assert found["support"]["budget"] == pytest.approx(demo.budget)


def test_other_budgets_are_measured_too(hours):
    protocol = Protocol(hours_at_least=300, draws=2, resamples=50)
    table = stays.compare(hours, "spo2", protocol, (1, 50, 100), lambda _: None)
    assert table.swept.shape == (*table.kept.shape, 3)
    np.testing.assert_array_equal(table.swept[..., 2], 1.0)  # all hours are kept
    first = {row["selector"]: row for row in stays.summary(table, protocol)}
    assert first["support"]["sweep_lead"] == [0.0, 0.0, 0.0]
    _, event = stays.question(hours, "spo2")
    recent = []
    for _, span in hours.stays(300):
        if (hit := event[span]).any():
            recent.append(hit[len(hit) - round(len(hit) / 2) :].sum() / hit.sum())
    assert first["recency"]["sweep_kept"][1] == pytest.approx(np.mean(recent))
    lead = first["recency"]["sweep_lead"][1]
    assert lead == pytest.approx(np.mean(recent) - first["support"]["sweep_kept"][1])
    assert first["recency"]["sweep_lead_low"][1] <= lead <= first["recency"]["sweep_lead_high"][1]


def test_in_any_order_a_trial_has_the_same_keys_and_queries():
    first, drawn = (draw_trial(Groups(), np.random.default_rng(3), shuffled) for shuffled in (False, True))
    np.testing.assert_array_equal(np.sort(first.scene.keys, axis=0), np.sort(drawn.scene.keys, axis=0))
    np.testing.assert_array_equal(first.scene.asked, drawn.scene.asked)
    mass = [(trial.gram @ trial.one_hot) for trial in (first, drawn)]
    np.testing.assert_allclose(mass[0], mass[1])
    assert (first.one_hot != drawn.one_hot).any()


def test_selectors_by_place_change_with_the_order_and_support_does_not(rows):
    def order(support, recency):
        moved = {("shuffled", "support"): support, ("shuffled", "recency"): recency}
        some = [
            row | {"rare_by_trial": [moved.get((row["part"], row["selector"]), 3)] * TINY.trials}
            for row in rows
            if row["part"] in ("groups", "shuffled")
        ]
        return next(one for one in claim(some) if one.text.startswith("with the keys in any order"))

    assert order(3, 5).holds
    assert order(3, 5).text.endswith("change: recency 0.500 to 0.833")
    assert order(2, 5).holds is False


def test_a_channel_that_tells_the_event_is_not_seen(hours):
    keys, event = stays.question(hours, "temp_c")
    np.testing.assert_array_equal(keys, hours.keys[:, :5])
    np.testing.assert_array_equal(event, (hours.raw[:, 5] < 35) | (hours.raw[:, 5] > 38.5))
    with pytest.raises(InvalidInput, match="must be one of heart_rate, sbp, respiratory_rate, spo2, temp_c; got dbp"):
        stays.question(hours, "dbp")


def test_a_lead_that_chance_cannot_explain_ends_a_claim_and_another_leaves_it_open(rows):
    def verdict(**leads):
        changed = [
            row | (leads if row["selector"] == "ManifoldKV" else {"minus_support": 0.0})
            for row in rows
            if row.get("held_out") == "none"
        ]
        return next(one.holds for one in claim(changed) if one.text.startswith("no selector here keeps"))

    assert verdict(minus_support=-0.1, minus_support_low=-0.2, minus_support_high=0.0)
    assert verdict(minus_support=0.1, minus_support_low=-0.2, minus_support_high=0.3) is None
    assert verdict(minus_support=0.1, minus_support_low=0.05, minus_support_high=0.3) is False


def test_a_lead_over_stays_at_another_budget_ends_the_claim_on_budgets(rows):
    def one(lead, low):
        sweeps = {"sweep_lead": [0.0, lead], "sweep_lead_low": [-0.1, low]}
        quiet = {"sweep_lead": [0.0, 0.0], "sweep_lead_low": [0.0, 0.0]}
        some = [
            row | (sweeps if row["selector"] == "leverage" else quiet) for row in rows if row.get("held_out") == "spo2"
        ]
        return next(one for one in claim(some) if "event hours than support at 20 to 60 %" in one.text)

    assert one(-0.1, -0.2).holds
    assert one(0.1, -0.1).holds is None
    assert one(0.1, 0.05).holds is False
    assert "leverage at 60 % by 0.100" in one(0.1, 0.05).text


def test_a_lead_at_another_budget_ends_the_claim_on_budgets(rows):
    def one(leads):
        made = []
        for row in rows:
            if row["part"] == "groups" and "shares" in row:
                swept = [0.5, 0.5] if row["selector"] == "support" else [0.4, 0.4]
                made.append(row | {"sweep_rare": leads[row["seed"]] if row["selector"] == "leverage" else swept})
        return next(one for one in claim(made + _unswept(rows)) if "rare groups than support at 20 to 60 %" in one.text)

    assert one([[0.4, 0.4], [0.4, 0.5]]).holds
    assert one([[0.4, 0.6], [0.4, 0.6]]).holds is False
    assert "leverage at 60 % by 0.100, beyond the spread over seeds" in one([[0.4, 0.6], [0.4, 0.6]]).text
    assert one([[0.4, 0.5], [0.4, 0.7]]).holds is None  # by 0 and by 0.2: that may be chance


def _unswept(rows):
    return [row for row in rows if row["part"] == "groups" and "shares" not in row]


def test_the_support_read_by_its_coefficients_has_to_answer_more_of_both(rows):
    def holds(rare, every):
        shares = {"support": ([3, 3, 3], [6, 6, 6]), "support, read by alpha": (rare, every)}
        groups = [row for row in rows if row["part"] == "groups"]
        names, others = ("rare_by_trial", "all_by_trial"), ([1, 1, 1], [2, 2, 2])
        some = [row | dict(zip(names, shares.get(row["selector"], others), strict=True)) for row in groups]
        return next(one.holds for one in claim(some) if one.text.startswith("read by its coefficients"))

    assert holds([4, 4, 4], [7, 7, 7])
    assert holds([4, 4, 4], [6, 6, 6]) is False
    assert holds([2, 2, 2], [7, 7, 7]) is False
    assert holds([3, 3, 4], [7, 7, 7]) is False  # that may be chance


def test_the_second_measure_is_told_apart_by_intervals(rows):
    def holds(low, mean):
        answered = {"answered": mean, "answered_low": low, "answered_high": 1.0}
        other = {"answered": 0.4, "answered_low": 0.3, "answered_high": 0.5}
        stays = [row for row in rows if row.get("held_out") == "none"]
        some = [row | (answered if row["selector"] == "support" else other) for row in stays]
        return next(one.holds for one in claim(some) if one.text.startswith("event hours whose nearest"))

    assert holds(0.6, 0.8)
    assert holds(0.45, 0.8) is None
    assert holds(0.3, 0.39) is False


def test_the_interval_over_seeds_is_students():
    mean, spread, half = over_seeds([1.0, 2.0, 3.0, 4.0])
    assert (mean, spread) == (2.5, pytest.approx(1.2909944))
    assert half == pytest.approx(2.05426, abs=1e-3)
    assert np.isnan(over_seeds([1.0])[2])


def test_claims_and_figure_can_be_had_from_any_rows(rows):
    assert len(claim(rows)) == 14 + 3 + 1 + 8 + 8 + 3
    assert claim([]) == []
    for some in (rows, rows[:20], rows[-16:], []):
        assert len(draw(some).axes) == 6
    found = table(rows)
    assert found.header == ("selector", "rare groups", "all groups", "all channels", "no spo2")
    assert {line[0] for line in found.rows} >= {one.name for one in (*KEY_ONLY, *QUERY_AWARE)}
    seen = next(row for row in rows if row["part"] == "stays" and row["selector"] == "support")
    (support,) = (line for line in found.rows if line[0] == "support")
    assert support[3] == f"{seen['kept']:.3f}"
    assert {line[3] for line in found.rows if line[0] in [one.name for one in QUERY_AWARE]} == {"–"}
    below = draw(rows).axes[4]
    assert [label.get_text().split("\n")[0] for label in below.get_yticklabels()] == ["SpO2"]


def test_the_command_writes_rows_and_figure_and_refuses_what_makes_no_sense(tmp_path, capsys):
    out, figure = tmp_path / "rows.jsonl", tmp_path / "selection.svg"
    argv = ["--seeds", "0", "--trials", "1", "--shares", "50", "--held-out", "spo2", "--hours-at-least", "400"]
    argv += ["--draws", "1", "--resamples", "20", "--control-seeds", "0", "--steps", "1", "--out", str(out)]
    assert selection.main([*argv, "--figure", str(figure)]) == 0
    assert figure.read_text().startswith("<svg")
    assert "paper 0.861" in capsys.readouterr().out
    assert selection.main([*argv, "--hours-at-least", "9999"]) == 1
    assert "no stay of at least 9999 hours" in capsys.readouterr().err
    assert selection.main([*argv, "--shares", "0"]) == 1
    assert "from 1 to 100" in capsys.readouterr().err
