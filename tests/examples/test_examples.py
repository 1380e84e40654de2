"""Each example runs as it stands and says what it promises."""

import runpy
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # on tensors this small, threads cost more than they bring
    yield
    torch.set_num_threads(before)


def test_the_layer_trains_in_a_model_of_one_s_own_and_decodes(capsys):
    runpy.run_path(str(EXAMPLES / "own_model.py"))
    said = capsys.readouterr().out
    assert "all optimal to" in said
    assert "tokens=200" in said


def test_a_fact_is_taken_out_of_learned_keys_and_the_others_keep_their_answers(capsys):
    found = runpy.run_path(str(EXAMPLES / "forget_a_fact.py"))
    said = capsys.readouterr().out
    assert "never held it: True" in said
    assert found["CITIES"][found["before"][0]] == "Paris"
    assert found["CITIES"][found["after"][0]] != "Paris"
    assert sum(found["before"][found["others"]] == found["after"][found["others"]]) >= len(found["others"]) - 1


def test_rare_groups_are_answered_as_often_as_the_paper_says(capsys):
    found = runpy.run_path(str(EXAMPLES / "rare_groups.py"))
    assert "support" in capsys.readouterr().out
    for name, said in found["PAPER"].items():
        assert abs(sum(found["found"][name]) / len(found["found"][name]) - said) < 0.1


def test_the_layer_example_fits_on_forty_lines_of_code():
    lines = (EXAMPLES / "own_model.py").read_text().splitlines()
    assert len([line for line in lines if line.strip()]) <= 40
