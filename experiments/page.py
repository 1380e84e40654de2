"""The page of results: what the paper says, what our rows say, a picture, and how to get both again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.ledger import Claim
from svmem.report.page import Picture, Section, Table, Text, page

__all__ = ["Chapter", "html", "markdown"]

TITLE = "The paper, reproduced"
LEAD = (
    "Each claim of Forgetful Attention (arXiv 2607.12204) beside what this repository finds, with data for everybody. "
    "Sentences are printed by the experiments themselves, from the rows that are committed with them."
)
MACHINE = "Two shared CPU cores, no GPU; float64 in the solver, float32 in the layers."


@dataclass(frozen=True, slots=True)
class Chapter:
    """One experiment. figure and rows name files; None where nothing was run yet."""

    letter: str
    title: str
    paper: str
    note: str
    claims: tuple[Claim, ...]
    command: str
    figure: str | None
    rows: str | None
    seconds: float


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
        anchor = f"#{one.letter.lower()}-{one.title.lower().replace(' ', '-').replace(',', '')}"
        out.append(f"| {one.letter} | [{one.title}]({anchor}) | {_score(one)} |")
    for one in chapters:
        out += ["", f"## {one.letter} {one.title}", "", f"**Paper.** {one.paper}", ""]
        out += [one.note, ""] if one.note else []
        out += [f"- {claim.verdict}: {claim.text}" for claim in one.claims] or ["Not run yet."]
        out += ["", f"![{one.title}](figures/{one.figure})"] if one.figure else []
        rows = f" · [rows](../experiments/results/{one.rows}) · {_time(one.seconds)}" if one.rows else ""
        out += ["", f"`{one.command}`{rows}"]
    return "\n".join(out) + "\n"


def html(chapters: Sequence[Chapter], figures: Path) -> str:
    """Return the same as one file that needs nothing else."""
    sections = []
    for one in chapters:
        rows = tuple((claim.text, claim.verdict) for claim in one.claims)
        blocks = [
            Text((f"Paper: {one.paper}", *filter(None, [one.note]))),
            Table(("what our rows say", "verdict"), rows, words=(1,)),
        ]
        if one.figure:
            picture = (figures / one.figure).read_text()
            blocks.insert(
                1, Picture(f"figure-{one.letter}", picture, one.title, f"{one.command} · {_time(one.seconds)}")
            )
        sections.append(Section(f"{one.letter}. {one.title}", tuple(blocks)))
    return page(TITLE, LEAD, tuple(sections), (MACHINE, _total(chapters)))


def _score(one: Chapter) -> str:
    if not one.claims:
        return "not run yet | "
    theirs, ours = (
        [claim for claim in one.claims if claim.holds is not None and claim.ours == which] for which in (0, 1)
    )
    return " | ".join(
        f"{sum(bool(claim.holds) for claim in some)} of {len(some)}" if some else "–" for some in (theirs, ours)
    )


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def _total(chapters: Sequence[Chapter]) -> str:
    return f"All rows together took {_time(sum(one.seconds for one in chapters))} of computing."
