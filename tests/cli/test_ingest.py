from pathlib import Path

import numpy as np
import pytest

import svmem
from tests.cli.conftest import CANARY, N, Run, records, write_csv, write_npz

COLUMNS = ("--keys", "hr,sbp", "--values", "next", "--owner", "patient")


def test_a_csv_becomes_a_memory_of_its_rows(run: Run, table: Path, tmp_path: Path):
    out = tmp_path / "M.svmem"
    done = run("ingest", table, *COLUMNS, "--sigma", 1.5, "--nu", 0.4, "--out", out, "--json")
    assert done.code == 0, done.err
    memory = svmem.Memory.load(out)
    keys, values, owners = records()
    assert np.array_equal(memory.keys, keys)
    assert np.array_equal(memory.values, values)
    assert memory.owners == owners
    assert memory.problem == svmem.Problem.from_nu(0.4, N, svmem.RBF(1.5))
    assert done.data["n"] == done.data["added"] == N
    assert done.data["digest"] == memory.digest()
    assert done.data["margin"] + done.data["bound"] + done.data["reserve"] == N


def test_the_width_and_the_cap_that_were_chosen_are_said(run: Run, table: Path, tmp_path: Path):
    out = tmp_path / "M.svmem"
    done = run("ingest", table, *COLUMNS, "--out", out)
    memory = svmem.Memory.load(out)
    sigma = svmem.median_sigma(memory.keys)
    assert memory.problem.kernel == svmem.RBF(sigma)
    assert f"sigma = {sigma:.6g}, the median distance" in done.err
    assert "from nu = 0.3 and 24 rows" in done.err
    assert "24 records, ids 0 to 23" in done.out


def test_kernel_cap_and_ridge_are_as_given(run: Run, table: Path, tmp_path: Path):
    out = tmp_path / "M.svmem"
    options = ("--kernel", "laplacian", "--sigma", 2, "--C", 0.25, "--ridge", 1e-6)
    assert run("ingest", table, *COLUMNS, *options, "--out", out).code == 0
    assert svmem.Memory.load(out).problem == svmem.Problem(svmem.Laplacian(2.0), C=0.25, ridge=1e-6)


def test_csv_parquet_and_npz_give_the_same_digest(run: Run, table: Path, tmp_path: Path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    keys, values, owners = records()
    columns = {"hr": keys[:, 0], "sbp": keys[:, 1], "next": values[:, 0], "patient": owners}
    pq.write_table(pa.table(columns), tmp_path / "hours.parquet")
    write_npz(tmp_path / "hours.npz", columns)
    digests = set()
    for source in (table, tmp_path / "hours.parquet", tmp_path / "hours.npz"):
        done = run("ingest", source, *COLUMNS, "--sigma", 1, "--out", tmp_path / "M.svmem", "--force", "--json")
        assert done.code == 0, done.err
        digests.add((done.data["digest"], done.data["owners"]))
    assert len(digests) == 1


def test_columns_of_lists_count_as_that_many_columns(run: Run, tmp_path: Path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    keys, values, _ = records()
    pq.write_table(pa.table({"k": keys.tolist(), "v": values[:, 0]}), tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", k=keys, v=values)
    for name in ("t.parquet", "t.npz"):
        out = tmp_path / f"{name}.svmem"
        assert run("ingest", tmp_path / name, "--keys", "k", "--values", "v", "--sigma", 1, "--out", out).code == 0
        assert np.array_equal(svmem.Memory.load(out).keys, keys)


def test_appended_rows_give_the_memory_of_all_rows(run: Run, table: Path, tmp_path: Path):
    lines = table.read_text().splitlines(keepends=True)
    for name, part in (("first", lines[1:16]), ("second", lines[16:])):
        (tmp_path / f"{name}.csv").write_text(lines[0] + "".join(part))
    whole, grown = tmp_path / "whole.svmem", tmp_path / "grown.svmem"
    problem = ("--sigma", 1, "--C", 0.125)
    assert run("ingest", table, *COLUMNS, *problem, "--out", whole).code == 0
    assert run("ingest", tmp_path / "first.csv", *COLUMNS, *problem, "--out", grown).code == 0
    done = run("ingest", tmp_path / "second.csv", *COLUMNS, "--append", "--out", grown, "--json")
    assert (done.data["added"], done.data["first_id"]) == (9, 15)
    assert done.data["digest"] == svmem.Memory.load(whole).digest()


def test_a_memory_of_other_widths_takes_no_rows(run: Run, table: Path, memory: Path):
    before = memory.read_bytes()
    done = run("ingest", table, "--keys", "hr", "--values", "next", "--append", "--out", memory)
    assert done.code == 1
    assert "keys of 2 numbers and values of 1, the columns give 1 and 1" in done.err
    assert memory.read_bytes() == before


def test_rows_without_an_owner_are_counted(run: Run, tmp_path: Path):
    source = write_csv(tmp_path / "t.csv", ["k", "v", "who"], [[1.0, 2.0, "a"], [2.0, 2.0, ""], [3.0, 1.0, "a"]])
    columns = ("--keys", "k", "--values", "v", "--owner", "who")
    done = run("ingest", source, *columns, "--C", 0.5, "--out", tmp_path / "M.svmem", "--json")
    assert (done.data["owners"], done.data["without_owner"]) == (1, 1)
    assert "1 rows have an empty 'who'" in done.err


def test_columns_of_very_different_spread_are_remarked_on(run: Run, tmp_path: Path):
    source = write_csv(tmp_path / "t.csv", ["a", "b", "v"], [[i % 3, 1000.0 * i, i] for i in range(8)])
    done = run("ingest", source, "--keys", "a,b", "--values", "v", "--out", tmp_path / "M.svmem")
    assert done.code == 0
    assert "differ in spread by a factor of" in done.err


def test_a_file_that_is_there_is_not_replaced(run: Run, table: Path, memory: Path):
    before = memory.read_bytes()
    done = run("ingest", table, *COLUMNS, "--out", memory)
    assert (done.code, done.out) == (1, "")
    assert "is there already; --force replaces it" in done.err
    assert memory.read_bytes() == before
    assert run("ingest", table, *COLUMNS, "--out", memory, "--force").code == 0
    assert memory.read_bytes() != before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--append", "--sigma", "1"), "--append takes no --sigma"),
        (("--append", "--force"), "give one of them"),
        (("--nu", "0.3", "--C", "0.1"), "give one of them"),
        (("--sigma", "wide"), "a number or median, got 'wide'"),
        (("--kernel", "laplacian"), "give a number for this kernel"),
        (("--keys", "hr,patient"), "'patient' cannot be a key or a value too"),
    ],
)
def test_options_that_contradict_each_other_are_misuse(
    run: Run, table: Path, tmp_path: Path, options: tuple[str, ...], said: str
):
    done = run("ingest", table, *COLUMNS, "--out", tmp_path / "M.svmem", *options)
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "M.svmem").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--sigma", "0"), "sigma must be positive"),
        (("--nu", "0.01"), "nu * n_ref must be at least 1"),
        (("--C", "2"), "C must lie in"),
        (("--ridge", "0"), "ridge must lie in"),
    ],
)
def test_a_problem_that_is_none_is_refused_in_one_line(
    run: Run, table: Path, tmp_path: Path, options: tuple[str, ...], said: str
):
    done = run("ingest", table, *COLUMNS, "--out", tmp_path / "M.svmem", *options)
    assert done.code == 1
    assert said in done.err.splitlines()[-1]
    assert not (tmp_path / "M.svmem").exists()
    assert CANARY not in done.err


def test_a_place_that_cannot_be_written_to_is_refused_before_the_table_is_read(run: Run, tmp_path: Path):
    done = run("ingest", tmp_path / "none.csv", *COLUMNS, "--out", tmp_path / "no" / "M.svmem")
    assert done.code == 1
    assert "there is no folder" in done.err
    done = run("ingest", tmp_path / "none.csv", *COLUMNS, "--out", tmp_path)
    assert "is a folder; name a file" in done.err
