"""The documents say nothing that does not run, and point at nothing that is not there."""

import re
from pathlib import Path

import pytest

from svmem.cli.app import COMMANDS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
KEY = re.compile(r"\[([A-Z][A-Za-z]+\d{4})[\],]")


def pages(pattern):
    return [(page, found) for page in PAGES for found in re.findall(pattern, page.read_text(), re.DOTALL)]


@pytest.mark.parametrize("block", [block for _, block in pages(r"```python\n(.*?)```")])
def test_each_python_block_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "document", "exec"), {})


def test_each_relative_link_leads_to_a_file():
    links = [(page, link) for page, link in pages(r"\]\(([^)#\s]+)[^)]*\)") if "://" not in link]
    assert links
    assert [link for page, link in links if not (page.parent / link).exists()] == []


def test_each_command_shown_exists():
    shown = {found for _, found in pages(r"^(?:    |`)svmem ([a-z]+) ")} | {
        found for _, found in pages(r"\n    svmem ([a-z]+) ")
    }
    assert shown
    assert shown <= {command.function.__name__ for command in COMMANDS}


def test_each_make_target_shown_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = {found for _, found in pages(r"`make ([a-z]+)")} | {found for _, found in pages(r"\n    make ([a-z]+)")}
    assert shown
    assert shown <= targets


def test_each_cited_source_stands_in_the_bibliography():
    known = set(re.findall(r"@\w+\{(\w+),", (ROOT / "docs" / "references.bib").read_text()))
    cited = {key for path in [*PAGES, *SOURCES] for key in KEY.findall(path.read_text())}
    assert cited
    assert cited - known == set()
