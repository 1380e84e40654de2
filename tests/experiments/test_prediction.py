"""`python -m experiments.prediction` on two steps, its areas against scikit-learn, and what an hour may know."""

import json

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from experiments import prediction
from experiments.ledger import conduct
from experiments.outcomes import cohort_of
from experiments.prediction import AGAINST, EXPERIMENT, MIXERS, MODELS, REFERENCES, Config, Predictor, arms, claim, draw
from experiments.ranking import auroc, average_precision, interval, resampled
from svmem.demo.clif import load_clif
from svmem.demo.hours import Hours, event_hours
from svmem.errors import InvalidInput

pytestmark = pytest.mark.usefixtures("compiled")
TINY = Config(
    seeds=(0, 1), folds=2, hours=24, hours_at_least=100, width=4, chunk=6, C=0.5, steps=2, batch=2, resamples=30
)
FIELDS = {"arm", "part", "mixer", "seconds", "status", "config", "command", "svmem", "torch", "numpy", "python"}


@pytest.fixture(scope="module")
def hours():
    return load_clif()


@pytest.fixture(scope="module")
def cohort(hours):
    return cohort_of(hours, first=56, ahead=6, at_least=12)


def drawn(seed, hours=300, patients=12, levels=40):
    rng = np.random.default_rng(seed)
    owner = np.sort(rng.integers(patients, size=hours))
    outcome = rng.random(hours) < 0.3
    scores = rng.integers(levels, size=hours) / levels + 0.2 * outcome  # with ties
    return scores, outcome, owner, rng.multinomial(patients, np.full(patients, 1 / patients), size=7).astype(float)


@pytest.mark.parametrize("levels", [1, 3, 40, 10**6])
@pytest.mark.parametrize(("ours", "theirs"), [(auroc, roc_auc_score), (average_precision, average_precision_score)])
def test_the_areas_of_resampled_patients_are_scikit_learns_of_weighted_hours(ours, theirs, levels):
    scores, outcome, owner, counts = drawn(3, levels=levels)
    found = ours(scores, outcome, owner, np.vstack([np.ones(12), counts]))
    expected = [theirs(outcome, scores)] + [theirs(outcome, scores, sample_weight=row[owner]) for row in counts]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_resample_with_one_kind_of_hour_has_no_area_and_stays_out_of_the_interval():
    scores, outcome, owner = np.array([1.0, 2.0, 3.0]), np.array([False, True, True]), np.array([0, 1, 1])
    counts = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    np.testing.assert_array_equal(auroc(scores, outcome, owner, counts), [1.0, np.nan, np.nan, 1.0])
    np.testing.assert_array_equal(average_precision(scores, outcome, owner, counts), [1.0, np.nan, 1.0, 1.0])
    assert interval(auroc(scores, outcome, owner, counts)) == (1.0, 1.0, 1.0)


def test_resamples_draw_as_many_patients_as_there_are_after_one_with_each_once():
    counts = resampled(9, 20, seed=1)
    np.testing.assert_array_equal(counts[0], np.ones(9))
    np.testing.assert_array_equal(counts.sum(axis=1), np.full(21, 9))
    np.testing.assert_array_equal(counts, resampled(9, 20, seed=1))


def one_stay(clock, rate, measured):
    """A stay of calm vital signs but for the heart rate, which alone is not always measured."""
    n = len(clock)
    raw = np.tile([80.0, 120.0, 70.0, 16.0, 97.0, 37.0], (n, 1))
    raw[:, 0] = rate
    seen = np.ones((n, 6), np.bool_)
    seen[:, 0] = measured
    names = np.array(["a"] * n)
    return Hours(raw, raw, raw, seen, names, names, np.array(clock), event_hours(raw))


def test_the_outcome_is_an_event_in_the_hours_ahead_by_the_clock():
    found = cohort_of(one_stay([0, 1, 2, 9, 10], [80, 80, 80, 150, 80], True), first=10, ahead=7, at_least=2)
    assert found.there[0].tolist() == [True] * 4 + [False] * 6
    assert found.outcome[0, :4].tolist() == [False, False, True, False]
    assert found.asked[0, :5].tolist() == [True, True, True, True, False]  # the hour at 10 lies ahead, and is no token
    assert found.now[0, :4].tolist() == [False, False, False, True]
    np.testing.assert_array_equal(found.recent[0, :4], [0, 0, 0, 1 / 1])
    assert found.owner.tolist() == [0] * 4


def test_an_hour_knows_nothing_of_readings_that_come_later():
    stay = one_stay([0, 1, 2, 3], [150, 150, 150, 80], [False, False, True, True])  # filled backward from hour 2
    found = cohort_of(stay, first=4, ahead=2, at_least=2)
    assert np.isnan(found.vitals[0, :2, 0]).all()
    assert found.vitals[0, 2:, 0].tolist() == [150, 80]
    assert found.now[0].tolist() == [False, False, True, False]
    assert found.recent[0].tolist() == [0, 0, 0.5, 0.5]


def test_the_cohort_is_that_of_the_demo_tables(cohort, hours):
    assert len(cohort) == 132
    assert cohort.patients == 98
    assert cohort.there.sum() - cohort.asked.sum() <= len(cohort)
    assert (cohort.asked <= cohort.there).all()
    assert len(cohort.owner) == cohort.asked.sum()
    assert np.isnan(cohort.vitals[~cohort.there]).all()


def test_folds_part_patients_and_inputs_are_scaled_by_those_trained_on(cohort):
    fold = cohort.folds(5, seed=3)
    for patient in range(cohort.patients):
        assert len(set(fold[cohort.patient == patient])) == 1
    assert np.bincount([fold[cohort.patient == patient][0] for patient in range(cohort.patients)]).max() == 20
    trained = fold != 0
    before = cohort.inputs(trained)
    known = trained[:, None, None] & ~np.isnan(cohort.vitals)
    np.testing.assert_allclose([before[..., k][known[..., k]].mean() for k in range(6)], np.zeros(6), atol=1e-4)
    np.testing.assert_allclose([before[..., k][known[..., k]].std() for k in range(6)], np.ones(6), rtol=1e-4)
    assert (before[~cohort.there] == 0).all()
    cohort.vitals[~trained] += 1000.0  # those that are not trained on change nothing for the others
    np.testing.assert_array_equal(cohort.inputs(trained)[trained], before[trained])
    cohort.vitals[~trained] -= 1000.0


def test_nothing_to_predict_is_refused(hours):
    with pytest.raises(InvalidInput, match="no stay has 9999 hours"):
        cohort_of(hours, first=56, ahead=6, at_least=9999)
    with pytest.raises(InvalidInput, match="of 3 hours in 1 patients all have the same outcome"):
        cohort_of(one_stay([0, 1, 2, 3], [80] * 4, True), first=4, ahead=2, at_least=2)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("mixer", MIXERS)
def test_a_prediction_depends_on_no_later_hour_and_not_on_padding(model, mixer):
    torch.manual_seed(0)
    predictor, x = Predictor(TINY, model, mixer), torch.randn(2, 20, 6)
    before = predictor(x)
    x[:, 12:] = 0.0
    torch.testing.assert_close(predictor(x)[:, :12], before[:, :12])


def test_each_mixer_and_reference_has_a_row_that_says_where_it_comes_from(rows):
    assert {row["arm"] for row in rows} == set(arms(TINY)) == {"references", *MODELS}
    assert [(row["part"], row["mixer"]) for row in rows] == [("references", name) for name in REFERENCES] + [
        (model, name) for model in MODELS for name in MIXERS
    ]
    assert all(row.keys() >= FIELDS for row in rows)
    for row in rows:
        compared = [f"auroc_minus_{name}" for name in AGAINST if f"auroc_minus_{name}" in row]
        assert len(compared) == (5 if row["mixer"] not in AGAINST else 4) or row["part"] == "references"
        assert all(row[f"{name}_low"] <= row[f"{name}_high"] for name in ("auroc", "auprc", *compared))
        assert row["auroc"] == pytest.approx(np.mean(row["auroc_seeds"]))
        assert (row.get("worst_gap") is not None) == (row["mixer"] in ("sv", "hybrid"))
    assert max(row["worst_gap"] for row in rows if row["mixer"] in ("sv", "hybrid")) < 1e-9
    base = rows[REFERENCES.index("base")]
    assert (base["auroc"], base["auprc"]) == (0.5, pytest.approx(base["base_rate"]))


def test_a_mixer_is_compared_resample_by_resample(rows):
    found = {row["mixer"]: row for row in rows if row["part"] == "bare"}
    assert found["sv"]["auroc_minus_lstm"] == pytest.approx(found["sv"]["auroc"] - found["lstm"]["auroc"])


def test_finished_rows_are_not_run_again_and_the_same_seeds_give_the_same_rows(rows, path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(prediction, "_train", lambda *_: pytest.fail("trained again"))
        assert conduct(EXPERIMENT, TINY, path, "a command") == json.loads(json.dumps(rows))
    short = path.with_name("short.jsonl")
    short.write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    again = conduct(EXPERIMENT, TINY, short, "a command")
    assert [row["auroc"] for row in again] == [row["auroc"] for row in rows]


def test_the_claims_hold_for_rows_that_bear_them_out_and_not_for_others(rows):
    said = {"lstm": 0.78, "softmax": 0.75, "sv": 0.70}

    def told(areas, half):
        area = {row["mixer"]: 0.70 for row in rows} | {"none": 0.6, "recent": 0.5} | areas
        spans = {"auroc": area}
        spans |= {f"auroc_minus_{o}": {name: value - area[o] for name, value in area.items()} for o in AGAINST}
        return [
            row
            | {
                f"{column}{end}": value[row["mixer"]] + sign * half
                for column, value in spans.items()
                for end, sign in (("", 0), ("_low", -1), ("_high", 1))
            }
            for row in rows
        ]

    assert [one.holds for one in claim(told(said | {"window": 0.72}, 0.01))] == [True] * 10 + [True] * 7
    foul = {"lstm": 0.55, "softmax": 0.55, "sv": 0.8, "none": 0.75, "recent": 0.75}
    assert [one.holds for one in claim(told(foul, 0.01))] == [False] * 10 + [False] * 7
    unsure = claim(told(said, 0.3))
    assert [one.holds for one in unsure[3:10]] == [None, None, True, True, None, None, True]
    assert [one.ours for one in unsure] == [False] * 5 + [True] * 5 + [False] * 2 + [True] * 5
    assert claim([]) == []
    assert len(claim(rows)) == 17


def test_the_figure_can_be_drawn_from_any_rows(rows):
    for some in (rows, rows[:3], rows[3:12], rows[12:], []):
        assert len(draw(some).axes) == 2


def test_the_command_writes_rows_and_figure_and_refuses_what_makes_no_sense(tmp_path, capsys):
    out, figure = tmp_path / "rows.jsonl", tmp_path / "prediction.svg"
    argv = ["--seeds", "0", "--folds", "2", "--hours", "12", "--hours-at-least", "200", "--width", "4", "--chunk", "4"]
    argv += ["--C", "0.5", "--steps", "1", "--batch", "2", "--resamples", "10", "--out", str(out)]
    assert prediction.main([*argv, "--figure", str(figure)]) == 0
    assert figure.read_text().startswith("<svg")
    assert "paper 0.783" in capsys.readouterr().out
    assert prediction.main([*argv, "--folds", "1"]) == 1
    assert "folds must be 2 or more" in capsys.readouterr().err
    assert prediction.main([*argv, "--steps", "0"]) == 1
    assert "must be at least 1" in capsys.readouterr().err


def test_more_folds_than_patients_are_refused(tmp_path, capsys):
    assert prediction.main(["--folds", "99", "--out", str(tmp_path / "rows.jsonl")]) == 1
    assert "each fold needs a patient, of which there are 98; got 99 folds" in capsys.readouterr().err
