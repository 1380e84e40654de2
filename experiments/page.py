"""The page of results: what the paper says, what our rows say, a picture, and how to get both again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.ledger import Claim
from svmem.report.page import Picture, Section, Table, Text, page

__all__ = ["Chapter", "Entry", "html", "markdown"]

TITLE = "The paper, reproduced"
LEAD = (
    "Each claim of Forgetful Attention (arXiv 2607.12204) beside what this repository finds, with data for everybody. "
    "Sentences are printed by the experiments themselves, from the rows that are committed with them."
)
MACHINE = "Two shared CPU cores, no GPU; float64 in the solver, float32 in the layers."


@dataclass(frozen=True, slots=True)
class Entry:
    """What paper.toml says of one experiment."""

    letter: str
    module: str
    title: str
    paper: str
    data: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chapter:
    """One experiment. figure and rows name files; None where nothing was run yet."""

    entry: Entry
    command: str
    claims: tuple[Claim, ...] = ()
    figure: str | None = None
    rows: str | None = None
    seconds: float = 0.0
    spent: str = ""  # on what, where that is worth a sentence


def markdown(chapters: Sequence[Chapter]) -> str:
    """Return docs/results.md."""
    out = [
        f"# {TITLE}",
        "",
        LEAD,
        "",
        f"{MACHINE} {_total(chapters)}",
        "",
        "| | experiment | the paper's sentences reproduced | sentences of ours that hold |",
        "|---|---|---|---|",
    ]
    for one in chapters:
        letter, title = one.entry.letter, one.entry.title
        anchor = f"#{letter.lower()}-{title.lower().replace(' ', '-').replace(',', '')}"
        out.append(f"| {letter} | [{title}]({anchor}) | {_score(one)} |")
    for one in chapters:
        entry = one.entry
        out += ["", f"## {entry.letter} {entry.title}", "", f"**Paper.** {entry.paper}", ""]
        out += [line for says in (entry.note, one.spent) if says for line in (says, "")]
        out += [f"- {claim.verdict}: {claim.text}" for claim in one.claims] or ["Not run yet."]
        out += ["", f"![{entry.title}](figures/{one.figure})"] if one.figure else []
        out += ["", f"Data: {entry.data}."]
        rows = f" · [rows](../experiments/results/{one.rows}) · {_time(one.seconds)}" if one.rows else ""
        out += ["", f"`{one.command}`{rows}"]
    return "\n".join(out) + "\n"


def html(chapters: Sequence[Chapter], figures: Path) -> str:
    """Return the same as one file that needs nothing else."""
    sections = []
    for one in chapters:
        entry = one.entry
        rows = tuple((claim.text, claim.verdict) for claim in one.claims)
        blocks = [
            Text((f"Paper: {entry.paper}", *filter(None, [entry.note, one.spent]))),
            Table(("what our rows say", "verdict"), rows, words=(1,)),
        ]
        if one.figure:
            below = f"Data: {entry.data} · {one.command} · {_time(one.seconds)}"
            picture = (figures / one.figure).read_text()
            blocks.insert(1, Picture(f"figure-{entry.letter}", picture, entry.title, below))
        sections.append(Section(f"{entry.letter}. {entry.title}", tuple(blocks)))
    return page(TITLE, LEAD, tuple(sections), (MACHINE, _total(chapters)))


def _score(one: Chapter) -> str:
    if not one.claims:
        return "not run yet | "
    return " | ".join(_count([claim for claim in one.claims if claim.ours == ours]) for ours in (False, True))


def _count(claims: Sequence[Claim]) -> str:
    told = [claim.holds for claim in claims if claim.holds is not None]
    open_ = len(claims) - len(told)
    return (f"{sum(told)} of {len(told)}" if told else "–") + (f", {open_} cannot be told" if open_ else "")


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def _total(chapters: Sequence[Chapter]) -> str:
    return f"All rows together took {_time(sum(one.seconds for one in chapters))} of computing."
