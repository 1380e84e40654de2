"""What is wrong with a table, in one sentence each."""

from pathlib import Path

import numpy as np
import pytest

from svmem.cli.reader import names_in, read_columns, read_queries
from svmem.errors import InvalidInput
from tests.cli.conftest import CANARY, Run, write_npz

GOOD = "k,v,who\n1,2,a\n3,4,b\n"


def said_of(tmp_path: Path, run: Run, text: str | bytes, name: str = "t.csv", keys: str = "k") -> str:
    """Return the only line that ingest prints of a bad table."""
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    columns = ("--keys", keys, "--values", "v", "--owner", "who")
    done = run("ingest", tmp_path / name, *columns, "--out", tmp_path / "M.svmem")
    assert done.code == 1
    assert done.out == ""
    assert not (tmp_path / "M.svmem").exists()
    assert "Traceback" not in done.err
    assert CANARY not in done.err
    lines = [line for line in done.err.splitlines() if line.startswith("svmem: ")]
    assert len(lines) == 1
    assert lines[0].startswith(f"svmem: {tmp_path / name}")
    return lines[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty; a table begins with the names of its columns"),
        ("k,v,who\n", "has no rows below its header"),
        ("k;v;who\n1;2;a\n", "must part its columns by commas, its header has ';'"),
        ("1,2,3\n4,5,6\n", "the first line of a table must name its columns"),
        (f"key,v,who\n1,2,{CANARY}\n", "has no column 'k'; it has 'key', 'v', 'who'"),
        ("k,k,v,who\n1,1,2,a\n", "has more than one column 'k'"),
        (f"k,v,who\n1,2,a\n1,2,{CANARY},5\n", "row 2 has 4 cells, the header has 3"),
        ("k,v,who\n1,2,a\n1,2\n", "row 2 has 2 cells, the header has 3"),
        (f"k,v,who\n1,2,a\n\n,2,{CANARY}\n", "row 2 of column 'k' holds no value"),
        ("k,v,who\n1,2,a\nNaN,2,a\n", "row 2 of column 'k' holds no value"),
        ("k,v,who\n1,n/a,a\n", "row 1 of column 'v' holds no value"),
        ("k,v,who\n1,2,a\n-inf,2,a\n", "row 2 of column 'k' holds -inf"),
        (f"k,v,who\n1,2,a\ntall,2,{CANARY}\n", "row 2 of column 'k' holds 'tall', which is no number"),
        ("k,v,who\n1_000,2,a\n", "row 1 of column 'k' holds '1_000', which is no number"),
        (f"k,v,who\n1,2,a\n1,2,{CANARY} \n", "the owner in row 2 of column 'who' begins or ends with a space"),
        ('k,v,who\n1,2,"a\n', "is no CSV table"),
        (b"k,v,who\n1,2,\xe9\n", "is no text in UTF-8"),
    ],
)
def test_a_bad_csv_is_refused_in_one_sentence(tmp_path: Path, run: Run, text: str | bytes, said: str):
    assert said in said_of(tmp_path, run, text)


def test_a_long_cell_is_cut(tmp_path: Path, run: Run):
    line = said_of(tmp_path, run, f"k,v,who\n{'x' * 500},2,a\n")
    assert "..., which is no number" in line
    assert len(line) < 300


def test_the_nearest_column_is_suggested(tmp_path: Path, run: Run):
    assert "did you mean 'heart_rate'?" in said_of(tmp_path, run, "heart_rate,v,who\n1,2,a\n", keys="heart_rat")


def test_a_table_of_another_kind_is_refused(tmp_path: Path, run: Run):
    assert "must end in one of .csv, .parquet, .npz" in said_of(tmp_path, run, GOOD, name="t.xlsx")
    assert "is no .npz archive" in said_of(tmp_path, run, GOOD, name="t.npz")
    pytest.importorskip("pyarrow")
    assert "is no parquet table" in said_of(tmp_path, run, GOOD, name="t.parquet")


def test_a_file_that_is_not_there_is_named(tmp_path: Path, run: Run):
    for name in ("t.csv", "t.npz", "t.parquet"):
        done = run("ingest", tmp_path / name, "--keys", "k", "--values", "v", "--out", tmp_path / "M.svmem")
        assert done.code == 1
        assert f"svmem: {tmp_path / name}: No such file or directory" in done.err


def test_a_byte_order_mark_and_blank_lines_are_no_matter(tmp_path: Path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf k , v\r\n1,2\r\n\r\n 3 ,4\r\n")
    found = read_columns(tmp_path / "t.csv", ["k", "v"], None)
    assert found.matrix(["v", "k"]).tolist() == [[2.0, 1.0], [4.0, 3.0]]


def test_every_decimal_number_is_read_to_the_nearest_float(tmp_path: Path):
    numbers = np.random.default_rng(0).standard_normal(5000) * 10.0 ** np.random.default_rng(1).integers(-20, 20, 5000)
    (tmp_path / "t.csv").write_text("k\n" + "\n".join(map(repr, numbers.tolist())))
    assert np.array_equal(read_columns(tmp_path / "t.csv", ["k"], None).matrix(["k"])[:, 0], numbers)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"k": [1.0, 2.0], "v": [1.0, 2.0, 3.0]}, "'k' has 2, 'v' has 3"),
        ({"k": [[[1.0]]], "v": [1.0]}, "a number or a list of numbers a row"),
        ({"k": 3.0, "v": 1.0}, "has no rows"),
        ({"k": ["a"], "v": [1.0]}, "column 'k' must hold numbers, it holds text, such as 'a' in row 1"),
        ({"k": [1j], "v": [1.0]}, "it holds complex numbers"),
        ({"k": [1.0, np.nan], "v": [1.0, 2.0]}, "row 2 of column 'k' holds no value"),
        ({"k": [[1.0, 1.0], [1.0, np.inf]], "v": [1.0, 2.0]}, "row 2 of column 'k' holds inf"),
    ],
)
def test_a_bad_npz_is_refused_in_one_sentence(tmp_path: Path, arrays: dict[str, list[float]], said: str):
    write_npz(tmp_path / "t.npz", arrays)
    with pytest.raises(InvalidInput, match=said.replace("(", r"\(")):
        read_columns(tmp_path / "t.npz", ["k", "v"], None)


def test_a_pickle_in_an_npz_is_not_opened(tmp_path: Path):
    np.savez(tmp_path / "t.npz", k=np.array([object()], dtype=object))
    with pytest.raises(InvalidInput, match=r"no \.npz archive of plain arrays"):
        read_columns(tmp_path / "t.npz", ["k"], None)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (["a", "b"], "it holds string, such as 'a' in row 1"),
        ([1.0, None], "row 2 of column 'k' holds no value"),
        ([[1.0, 2.0], [1.0]], "a list of 2 numbers in every row, row 2 has one of 1"),
        ([[1.0], None], "row 2 has none"),
        ([["a"], ["b"]], "it holds text"),
    ],
)
def test_a_bad_parquet_is_refused_in_one_sentence(tmp_path: Path, column: list[object], said: str):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"k": column}), tmp_path / "t.parquet")
    with pytest.raises(InvalidInput, match=said):
        read_columns(tmp_path / "t.parquet", ["k"], None)


def test_whole_numbers_truth_values_and_decimals_are_numbers(tmp_path: Path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"a": pa.array([1, 2]), "b": pa.array([True, False]), "c": pa.array([1.5, 2.5], pa.float32())}
    columns["d"] = pa.array([1, 2]).cast(pa.decimal128(20, 1))
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    found = read_columns(tmp_path / "t.parquet", ["a", "b", "c", "d"], None).matrix(["a", "b", "c", "d"])
    assert found.tolist() == [[1, 1, 1.5, 1], [2, 0, 2.5, 2]]


def test_owners_are_text_or_whole_numbers(tmp_path: Path):
    write_npz(tmp_path / "t.npz", {"k": [1.0, 2.0], "text": ["a", ""], "number": [7, 8], "part": [7.0, 8.0]})
    assert read_columns(tmp_path / "t.npz", ["k"], "text").owners == ["a", None]
    assert read_columns(tmp_path / "t.npz", ["k"], "number").owners == ["7", "8"]
    with pytest.raises(InvalidInput, match="column 'part' holds a float in row 1"):
        read_columns(tmp_path / "t.npz", ["k"], "part")


def test_names_are_parted_by_commas_and_may_be_quoted():
    assert names_in('a, "b,c" ,d', "--keys") == ["a", "b,c", "d"]
    for bad in ("", "a,,b", "a,b,a"):
        with pytest.raises(InvalidInput, match="--keys takes names of columns"):
            names_in(bad, "--keys")


def test_queries_take_all_columns_only_where_these_can_be_meant(tmp_path: Path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,3\n")
    assert read_queries(tmp_path / "t.csv", None, 3).tolist() == [[1, 2, 3]]
    assert read_queries(tmp_path / "t.csv", "c,a", 2).tolist() == [[3, 1]]
    with pytest.raises(InvalidInput, match="has 3 columns, the keys of this memory have 2; choose with --columns"):
        read_queries(tmp_path / "t.csv", None, 2)
    with pytest.raises(InvalidInput, match="'a' give 1 numbers a query, this memory takes 2"):
        read_queries(tmp_path / "t.csv", "a", 2)
