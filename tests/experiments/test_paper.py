"""The results page, from rows in a folder of their own."""

import json
import shutil
from types import SimpleNamespace

import pytest

from experiments import paper
from experiments.ledger import Claim
from experiments.page import Chapter, Entry, Headline, html, markdown
from svmem.errors import InvalidInput
from svmem.report.page import Table

SVG = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'


@pytest.fixture
def folder(tmp_path):
    shutil.copy(paper.RESULTS / "teacher.jsonl", tmp_path / "teacher.jsonl")
    return tmp_path


def entry(letter):
    (found,) = paper.entries([letter])
    return found


def test_each_experiment_of_the_table_is_a_module_with_a_sentence_of_the_paper():
    found = paper.entries()
    letters = [one.letter for one in found]
    assert [letter for letter in letters if len(letter) == 1] == list("ABCDEFG")
    assert letters == sorted(set(letters))
    assert len({one.module for one in found}) == len(found)
    assert all(one.paper.endswith(".") for one in found)


def test_a_letter_that_is_none_is_refused(capsys):
    with pytest.raises(InvalidInput, match="experiments have the letters A, A2, B"):
        paper.entries(["Z"])
    assert paper.main(["run", "--only", "Z"]) == 1
    assert "got Z" in capsys.readouterr().err


def test_experiments_are_run_in_turn_until_one_fails(monkeypatch):
    ran = []

    def module(entry):
        return SimpleNamespace(main=lambda _: ran.append(entry.letter) or int(entry.letter == "C"))

    monkeypatch.setattr(paper, "_module", module)
    assert paper.main(["run", "--only", "A", "B", "C", "D"]) == 1
    assert ran == ["A", "B", "C"]


def test_the_page_is_written_as_text_and_as_one_file(tmp_path, monkeypatch, capsys):
    found = [entry("A"), entry("B")]
    monkeypatch.setattr(paper, "entries", lambda: found)
    monkeypatch.setattr(paper, "headlines", list)
    monkeypatch.setattr(paper, "chapter", lambda entry: Chapter(entry, "python -m x", (Claim("a thing", True),)))
    monkeypatch.setattr(paper, "ROOT", tmp_path)
    (tmp_path / "docs").mkdir()
    assert paper.main(["page", "--html", str(tmp_path / "report.html")]) == 0
    for path in (tmp_path / "docs" / "results.md", tmp_path / "report.html"):
        assert path.read_text().count("a thing") == 2
    assert capsys.readouterr().out.split() == ["docs/results.md", str(tmp_path / "report.html")]


def test_a_chapter_says_what_the_rows_say_and_draws_them(folder):
    found = paper.chapter(entry("L1"), results=folder, figures=folder)
    rows = [json.loads(line) for line in (folder / "teacher.jsonl").read_text().splitlines()]
    assert [claim.holds for claim in found.claims] == [True] * 6
    assert found.seconds == pytest.approx(
        sum(max(row["seconds"] for row in rows if row["arm"] == arm) for arm in {row["arm"] for row in rows})
    )
    assert (folder / "teacher.svg").read_text().startswith("<svg")


def test_an_experiment_without_rows_is_said_to_be_missing(tmp_path):
    found = [paper.chapter(entry(letter), results=tmp_path, figures=tmp_path) for letter in ("L2", "F")]
    assert [(one.claims, one.figure) for one in found] == [((), None)] * 2
    assert markdown(found).count("Not run yet.") == 2


def test_the_page_has_each_sentence_with_its_verdict_and_needs_nothing_else(tmp_path):
    (tmp_path / "x.svg").write_text(SVG)
    claims = (
        Claim("one thing <holds>", True),
        Claim("another does not", False),
        Claim("a third", None),
        Claim("a fourth", True, ours=True),
    )
    entry = Entry("X", "x", "A title", "It says so.", "some drawn keys", "A note.")
    one = Chapter(entry, "python -m x", claims, "x.svg", "x.jsonl", 150.0)
    text = markdown([one])
    for part in ("- reproduced: one thing", "- not reproduced: another", "- cannot be told: a third"):
        assert part in text
    assert "- holds: a fourth" in text
    assert "\n\nA note.\n\n" in text
    assert "\n\nData: some drawn keys.\n\n" in text
    assert "| 1 of 2, 1 cannot be told | 1 of 1 |" in text
    assert "(#x-a-title)" in text
    assert "2 min" in text
    page = html([one], tmp_path)
    assert "one thing &lt;holds&gt;" in page
    assert "<p>A note.</p>" in page
    assert "Data: some drawn keys" in page
    assert 'src="data:image/svg+xml;base64,' in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.fixture(scope="module")
def chapters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    return [paper.chapter(one, figures=folder) for one in paper.entries()]


def test_the_committed_page_is_what_the_committed_rows_say(chapters):
    page = (paper.ROOT / "docs" / "results.md").read_text()
    assert page == markdown(chapters, paper.headlines())


def test_each_line_at_the_top_rests_on_sentences_that_are_there(chapters):
    claims = {one.entry.letter: [claim.text for claim in one.claims] for one in chapters}
    for line in paper.headlines():
        for start in (*line.sentences, *line.beside):
            assert any(text.startswith(start) for text in claims[line.letter]), start


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        ([True, True], "reproduced"),
        ([True, None], "cannot be told"),
        ([None, False], "not reproduced: too few"),
    ],
)
def test_a_line_at_the_top_is_as_good_as_its_worst_sentence(holds, verdict):
    claims = [Claim("one thing", holds[0]), Claim("two things", holds[1]), Claim("three", False, ours=True)]
    line = Headline("A", "a claim", "0.5", ("one", "two"), beside=("three",), cause="too few")
    assert line.cells(claims) == ("a claim", "0.5", "one thing; two things; three", verdict)
    assert line.cells(claims[:1]) == ("a claim", "0.5", "not run yet", "–")


def test_a_table_stands_in_both_pages_with_its_numbers_to_the_right(tmp_path):
    table = Table(("method", "ms", "why"), (("ours", "0.3", "quick"),), "Times", words=(2,))
    found = [Chapter(entry("A2"), "python -m x", (Claim("a thing", True),), table=table)]
    assert "Times:\n\n| method | ms | why |\n| --- | --: | --- |\n| ours | 0.3 | quick |\n" in markdown(found)
    assert "<td>0.3</td>" in html(found, tmp_path)
