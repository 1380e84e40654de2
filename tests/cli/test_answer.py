from pathlib import Path

import numpy as np
import pytest

import svmem
from tests.cli.conftest import Run

ASKED = ("--query", "0.1,-0.2", "--query", "-1,2")
QUERIES = [[0.1, -0.2], [-1.0, 2.0]]


def test_read_prints_the_answers_of_the_memory_with_all_digits(run: Run, memory: Path):
    answers = svmem.Memory.load(memory).read(QUERIES)
    done = run("read", memory, *ASKED)
    assert [[float(cell) for cell in line.split(",")] for line in done.out.splitlines()] == answers.tolist()
    assert run("read", memory, *ASKED, "--json").data == {"answers": answers.tolist()}


def test_read_takes_the_heaviest_records_and_prints_their_weights(run: Run, memory: Path):
    answers, ids, weights = svmem.Memory.load(memory).read(QUERIES, top_k=3, return_weights=True)
    done = run("read", memory, *ASKED, "--top-k", 3, "--weights", "--json")
    assert done.data == {"answers": answers.tolist(), "ids": ids.tolist(), "weights": weights.tolist()}
    text = run("read", memory, *ASKED, "--top-k", 3, "--weights").out.splitlines()
    assert len(text) == 2 * (1 + 3)
    assert text[1].split() == [str(ids[0, 0]), f"{weights[0, 0]:.6f}"]


def test_queries_come_from_a_table_too(run: Run, memory: Path, table: Path, tmp_path: Path):
    source = svmem.Memory.load(memory)
    done = run("read", memory, "--queries", table, "--columns", "hr,sbp", "--json")
    assert done.data["answers"] == source.read(source.keys).tolist()
    np.savez(tmp_path / "q.npz", queries=source.keys)
    assert run("read", memory, "--queries", tmp_path / "q.npz", "--json").data == done.data


def test_score_prints_one_number_a_query(run: Run, memory: Path):
    scores = svmem.Memory.load(memory).score(QUERIES).tolist()
    assert list(map(float, run("score", memory, *ASKED).out.split())) == scores
    assert run("score", memory, *ASKED, "--json").data == {"scores": scores}


def test_explain_lists_the_records_behind_an_answer(run: Run, memory: Path):
    found = svmem.Memory.load(memory).explain(QUERIES[0], top_k=4)
    assert run("explain", memory, "--query", "0.1,-0.2", "--top-k", 4, "--json").data == found.to_json()
    assert run("explain", memory, "--query", "0.1,-0.2", "--top-k", 4).out.rstrip("\n") == str(found)


@pytest.mark.parametrize("command", ["read", "score"])
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ((), 2, "give queries either here or in a table"),
        (("--query", "1,2", "--queries", "q.csv"), 2, "give queries either here or in a table"),
        (("--query", "1,two"), 2, "takes numbers with commas between them, got '1,two'"),
        (("--query", "1,2", "--columns", "a,b"), 2, "chooses columns of the table in --queries"),
        (("--query", "1,2,3"), 1, "a query of this memory has 2 numbers, got 3"),
        (("--query", "1,nan"), 1, "must be finite"),
    ],
)
def test_a_bad_query_is_refused(run: Run, memory: Path, command: str, options: tuple[str, ...], code: int, said: str):
    done = run(command, memory, *options)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_an_empty_memory_says_so(run: Run, tmp_path: Path):
    path = tmp_path / "empty.svmem"
    svmem.Memory(svmem.Problem(svmem.RBF(1.0), C=0.5), key_dim=2, value_dim=1).save(path)
    done = run("read", path, "--query", "1,2")
    assert (done.code, done.err) == (1, "svmem: the memory holds no record yet; add some first\n")
    assert run("info", path, "--json").data["n"] == 0


def test_what_would_steer_a_terminal_is_not_printed(run: Run, tmp_path: Path):
    path = tmp_path / "odd.svmem"
    source = svmem.Memory(svmem.Problem(svmem.RBF(1.0), C=1.0), key_dim=1, value_dim=1)
    source.add([[1.0]], [[1.0]], owners="\x1b[2Jgone")
    source.save(path)
    assert "\x1b" not in run("explain", path, "--query", "1").out
    assert run("explain", path, "--query", "1", "--json").data["shares"][0]["owner"] == "\x1b[2Jgone"
