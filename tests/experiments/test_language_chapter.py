"""The chapter of the language model, from runs whose numbers are made up or tiny."""

import json
from dataclasses import asdict

import pytest

import experiments.lm
from experiments import files
from experiments.language import chapter
from experiments.language.claims import PAPER_GAINS, claim
from experiments.language.figure import Curve
from experiments.language.picture import language_figure
from experiments.language.plan import FAMILIES, Family, Run, finished
from experiments.language.settings import Settings
from experiments.lm import parser
from svmem.report.style import svg

SMALL = next(family for family in FAMILIES if family.name == "small")


def curve(mixer, bits, seed=0, gap=1e-15, diverged=False, support=64.0):
    row = {
        "step": 1,
        "bits_per_byte": bits,
        "grad_norm": 1.0,
        "grad_norm_max": 1.0,
        "seconds": 2.0,
        "worst_gap": gap,
        "failed": 0.0,
    }
    row |= {"mean_support": support} if mixer == "sv" else {}
    return Curve(Settings(mixer=mixer, seed=seed, steps=1), [row], diverged)


def fair():
    small = {
        f"{mixer}-{seed}": curve(mixer, bits, seed) for mixer, bits in (("sv", 2.0), ("window", 2.2)) for seed in (0, 1)
    }
    small["window-1"] = curve("window", 2.3, 1)
    switches = {"exact-gate": curve("sv", 2.5), "unit-keys": curve("sv", 2.4)}
    large = {"sv-0": curve("sv", 2.0), "window-0": curve("window", 2.2)}
    switches |= {"window": curve("window", 2.6), "window-slow-warm-up": curve("window", 2.5)}
    small |= {"softmax-0": curve("softmax", 2.1), "local-0": curve("window", 2.05), "fista-0": curve("fista", 2.2)}
    return {"small": small, "switches": switches, "large": large}


def foul():
    small = {
        "sv-0": curve("sv", 2.0, diverged=True, support=65.0),
        "window-0": curve("window", 2.2),
        "softmax-0": curve("softmax", 1.8),
    }
    small |= {"local-0": curve("window", 1.9), "fista-0": curve("fista", 1.9)}
    large = {"sv-0": curve("sv", 2.0), "window-0": curve("window", 1.9)}
    switches = {
        "exact-gate": curve("sv", 2.5, gap=1e-3),
        "unit-keys": curve("sv", 2.6),
        "window": curve("window", 2.4),
        "window-slow-warm-up": curve("window", 2.45),
    }
    return {"small": small, "switches": switches, "large": large}


def test_the_claims_hold_for_runs_that_bear_them_out_and_not_for_others():
    assert [one.holds for one in claim(fair())] == [True] * 11
    assert [one.holds for one in claim(foul())] == [False] * 11
    assert [one.ours for one in claim(fair())] == [False] + [True] * 10
    assert claim({}) == []


def test_the_papers_gains_are_those_that_it_sums_up():
    shares = PAPER_GAINS["enwik8, 3.22M"]
    assert len(shares) == 7
    assert sum(shares) / 7 == pytest.approx(0.086, abs=1e-3)
    assert min(shares) > 0 > min(PAPER_GAINS["10M"]) > max(PAPER_GAINS["32M"])


@pytest.mark.parametrize(("runs", "panels"), [(fair(), 5), (foul(), 5), ({}, 1)], ids=["fair", "foul", "none"])
def test_the_figure_has_a_panel_for_each_thing_that_there_are_runs_of(runs, panels):
    figure = language_figure(runs)
    assert sum(ax.get_visible() for ax in figure.axes) == panels
    assert svg(figure).startswith("<svg")


def test_each_run_of_the_plan_is_a_command_that_the_command_line_takes(tmp_path):
    for family in FAMILIES:
        assert len({run.name for run in family.runs}) == len(family.runs)
        for place, run in enumerate(family.runs):
            device = "cuda" if family.gpu else "cpu"
            options = parser().parse_args(family.command(run, tmp_path, tmp_path / "text", device))
            assert options.device == device
            assert (options.mixer, options.seed) == (run.mixer, run.seed)
            assert (options.data is None) == (family.name == "wiki")
            assert run.like is None or run.like in [one.name for one in family.runs[:place]]


def test_a_run_is_finished_with_its_last_step_and_not_before(finished_run, tmp_path):
    assert finished(finished_run)
    rows = files.read_rows(finished_run / files.ROWS)
    files.write_json(tmp_path / files.RUN, json.loads((finished_run / files.RUN).read_text()))
    assert not finished(tmp_path)
    files.write_rows(tmp_path / files.ROWS, rows[:-1])
    assert not finished(tmp_path)


@pytest.fixture
def finished_run(finished):
    return finished


def test_missing_runs_are_trained_once_and_described(tiny, tmp_path, monkeypatch, capsys):
    runs = (Run("sv-0", "sv", options=("--chunk", "4")), Run("window-0", "window", like="sv-0"))
    options = tuple(word for word in tiny if word not in ("--mixer", "softmax"))[2:]
    monkeypatch.setattr(chapter, "FAMILIES", (Family("small", "tiny", options, runs), Family("wiki", "x", (), ())))
    assert chapter.run_missing(experiments.lm.main, tmp_path, None) == 0
    assert "left out: tiny needs --data" in capsys.readouterr().err
    assert chapter.read_runs(tmp_path) == {}
    assert chapter.described(tmp_path, tmp_path / "lm.svg") == ([], 0.0, "")
    text = tiny[1]
    assert chapter.run_missing(experiments.lm.main, tmp_path, text) == 0
    assert "tiny: window-0, 2 of 2" in capsys.readouterr().err
    assert chapter.run_missing(lambda _: pytest.fail("trained again"), tmp_path, text) == 0
    found = chapter.read_runs(tmp_path)["small"]
    assert {name: one.settings.mixer for name, one in found.items()} == {"sv-0": "sv", "window-0": "window"}
    claims, seconds, spent = chapter.described(tmp_path, tmp_path / "lm.svg")
    assert len(claims) == 4
    assert seconds > 0
    assert spent == "Hours of one core each: tiny 0.0 in 2 runs. In all 0.0."
    assert (tmp_path / "lm.svg").read_text().startswith("<svg")
    assert asdict(found["window-0"].settings)["window"] > 4
