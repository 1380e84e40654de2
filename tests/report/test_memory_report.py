"""The report of a memory of one's own: every part is there, whatever the memory holds."""

import re
from pathlib import Path

import numpy as np
import pytest

import svmem
from svmem.report import memory as report_memory
from svmem.report.contents import owner_rows
from svmem.report.memory import contents_of, write_report

pytestmark = pytest.mark.usefixtures("compiled_memory")
PICTURES = ["sizes", "alpha", "gate", "plane"]


def filled(n: int = 60, *, owners: list[str | None] | None = None, C: float = 0.05) -> svmem.Memory:
    rng = np.random.default_rng(8)
    memory = svmem.Memory(svmem.Problem(kernel=svmem.RBF(sigma=2.0), C=C), key_dim=3, value_dim=2)
    if n:
        memory.add(rng.standard_normal((n, 3)), rng.standard_normal((n, 2)), owners=owners)
    return memory


def written(memory: svmem.Memory, tmp_path: Path) -> str:
    write_report(memory, tmp_path / "report.html", title="Mine & yours")
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_report_holds_every_figure_the_owners_and_the_bounds(tmp_path: Path) -> None:
    owners: list[str | None] = [f"owner <{i % 25}>" for i in range(60)]
    memory = filled(owners=owners)
    html = written(memory, tmp_path)
    assert re.findall(r'<figure id="(\w+)">', html) == PICTURES
    assert not re.search(r"https?://|<script|<link|@import", html)
    for words in ("Mine &amp; yours", "owner &lt;3&gt;", "5 more", "Duality gap", "selecting", memory.digest()):
        assert words in html


def test_counts_in_the_report_are_those_of_the_solution(tmp_path: Path) -> None:
    memory = filled()
    state, contents = memory.solution, contents_of(memory)
    assert {name: int(rows.sum()) for name, rows in contents.sets.items()} == {
        "margin": len(state.margin),
        "bound": len(state.bound),
        "reserve": len(state.reserve),
    }
    assert f"{len(state.margin) + len(state.bound)} (" in written(memory, tmp_path)


def test_owners_come_by_their_share_and_the_shares_sum_to_one() -> None:
    owners: list[str | None] = ["a"] * 30 + ["b"] * 20 + [None] * 10
    rows = owner_rows(contents_of(filled(owners=owners)))
    assert {row.owner: row.records for row in rows} == {"a": 30, "b": 20, "": 10}
    assert [row.mass for row in rows] == sorted((row.mass for row in rows), reverse=True)
    assert sum(row.mass for row in rows) == pytest.approx(1)


@pytest.mark.parametrize(
    ("n", "C", "words"), [(0, 0.05, '<td class="words">0</td>'), (1, 0.05, "collecting"), (5, 1.0, "selecting")]
)
def test_small_memories_have_a_report_too(n: int, C: float, words: str, tmp_path: Path) -> None:
    html = written(filled(n, C=C), tmp_path)
    assert words in html
    assert re.findall(r'<figure id="(\w+)">', html) == (PICTURES if n else [])
    assert "No record names an owner." in html


def test_of_many_records_a_fixed_sample_is_drawn_and_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_memory, "DRAWN", 40)
    memory = filled()
    assert "Drawn are 40 of 60 records." in written(memory, tmp_path)
    np.testing.assert_array_equal(contents_of(memory).drawn, contents_of(memory).drawn)


def test_equal_keys_can_be_drawn(tmp_path: Path) -> None:
    memory = svmem.Memory(svmem.Problem(kernel=svmem.RBF(sigma=1.0), C=0.5), key_dim=1, value_dim=1)
    memory.add(np.ones((4, 1)), np.zeros((4, 1)))
    assert re.findall(r'<figure id="(\w+)">', written(memory, tmp_path)) == PICTURES


def test_a_kernel_without_bound_says_that_answers_are_not_covered(tmp_path: Path) -> None:
    memory = svmem.Memory(svmem.Problem(kernel=svmem.Linear(), C=0.2), key_dim=2, value_dim=1)
    memory.add(np.random.default_rng(2).standard_normal((12, 2)), np.zeros((12, 1)))
    html = written(memory, tmp_path)
    assert "linear" in html
    assert "not shown at this accuracy" in html
