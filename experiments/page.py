"""The page of results: what the paper says, what our rows say, a picture, and how to get both again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.ledger import Claim
from svmem.report.page import Picture, Section, Table, Text, page

__all__ = ["Chapter", "Entry", "Headline", "html", "markdown"]

TITLE = "The paper, reproduced"
LEAD = (
    "Each claim of Forgetful Attention (arXiv 2607.12204) beside what this repository finds, with data for everybody. "
    "Sentences are printed by the experiments themselves, from the rows that are committed with them."
)
MACHINE = (
    "Two shared cores of an AMD EPYC in a virtual machine with 24 GB of memory, no GPU; float64 in the solver, float32 "
    "in the layers."
)
VERDICTS = (
    "Reproduced: our rows bear out the paper's sentence, by the rule that the sentence here names. Holds: so do they a "
    "sentence that is ours alone. Cannot be told: the rows are compatible with either."
)
HEADER = ("claim", "paper", "here", "verdict")
SCORES = ("", "experiment", "the paper's sentences reproduced", "sentences of ours that hold")


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
class Headline:
    """One line of the table at the top, which rests on sentences of one experiment, named by how they begin.

    beside: sentences that are shown and do not count; cause: why the line is not reproduced.
    """

    letter: str
    claim: str
    paper: str
    sentences: tuple[str, ...]
    beside: tuple[str, ...] = ()
    cause: str = ""

    def cells(self, claims: Sequence[Claim]) -> tuple[str, str, str, str]:
        """Return claim, paper, here and verdict; each beginning takes the first sentence that has it."""
        found, others = ([_first(claims, start) for start in starts] for starts in (self.sentences, self.beside))
        if None in found:
            return self.claim, self.paper, "not run yet", "–"
        held = [one.holds for one in found if one is not None]
        verdict = "not reproduced" if False in held else "cannot be told" if None in held else "reproduced"
        verdict += f": {self.cause}" if False in held and self.cause else ""
        return self.claim, self.paper, "; ".join(one.text for one in [*found, *others] if one is not None), verdict


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
    table: Table | None = None


def markdown(chapters: Sequence[Chapter], headlines: Sequence[Headline] = ()) -> str:
    """Return docs/results.md."""
    out = [f"# {TITLE}", "", LEAD, "", f"{MACHINE} {_total(chapters)}", "", VERDICTS, ""]
    out += [*_lines(_headlines(chapters, headlines)), ""] if headlines else []
    scores = [(one.entry.letter, f"[{one.entry.title}]({_anchor(one.entry)})", *_score(one)) for one in chapters]
    out += _lines(Table(SCORES, tuple(scores)))
    for one in chapters:
        entry = one.entry
        out += ["", f"## {entry.letter} {entry.title}", "", f"**Paper.** {entry.paper}", ""]
        out += [line for says in (entry.note, one.spent) if says for line in (says, "")]
        out += [f"- {claim.verdict}: {claim.text}" for claim in one.claims] or ["Not run yet."]
        out += ["", f"{one.table.caption}:", "", *_lines(one.table)] if one.table else []
        out += ["", f"![{entry.title}](figures/{one.figure})"] if one.figure else []
        out += ["", f"Data: {entry.data}."]
        rows = f" · [rows](../experiments/results/{one.rows}) · {_time(one.seconds)}" if one.rows else ""
        out += ["", f"`{one.command}`{rows}"]
    return "\n".join(out) + "\n"


def html(chapters: Sequence[Chapter], figures: Path, headlines: Sequence[Headline] = ()) -> str:
    """Return the same as one file that needs nothing else."""
    sections = [Section("In short", (_headlines(chapters, headlines),))] if headlines else []
    for one in chapters:
        entry = one.entry
        rows = tuple((claim.text, claim.verdict) for claim in one.claims)
        blocks = [
            Text((f"Paper: {entry.paper}", *filter(None, [entry.note, one.spent]))),
            Table(("what our rows say", "verdict"), rows, words=(1,)),
            *([one.table] if one.table else []),
        ]
        if one.figure:
            below = f"Data: {entry.data} · {one.command} · {_time(one.seconds)}"
            picture = (figures / one.figure).read_text()
            blocks.insert(1, Picture(f"figure-{entry.letter}", picture, entry.title, below))
        sections.append(Section(f"{entry.letter}. {entry.title}", tuple(blocks)))
    return page(TITLE, f"{LEAD} {VERDICTS}", tuple(sections), (MACHINE, _total(chapters)))


def _first(claims: Sequence[Claim], start: str) -> Claim | None:
    return next((one for one in claims if one.text.startswith(start)), None)


def _headlines(chapters: Sequence[Chapter], headlines: Sequence[Headline]) -> Table:
    claims = {one.entry.letter: one.claims for one in chapters}
    return Table(HEADER, tuple(one.cells(claims.get(one.letter, ())) for one in headlines), words=(1, 2, 3))


def _lines(table: Table) -> list[str]:
    """Return a table as lines of Markdown; what is no word is set to the right."""
    rules = ["---" if not at or at in table.words else "--:" for at in range(len(table.header))]
    return [f"| {' | '.join(cells)} |" for cells in (table.header, rules, *table.rows)]


def _anchor(entry: Entry) -> str:
    return f"#{entry.letter.lower()}-{entry.title.lower().replace(' ', '-').replace(',', '')}"


def _score(one: Chapter) -> tuple[str, str]:
    if not one.claims:
        return "not run yet", ""
    counts = [_count([claim for claim in one.claims if claim.ours == ours]) for ours in (False, True)]
    return counts[0], counts[1]


def _count(claims: Sequence[Claim]) -> str:
    told = [claim.holds for claim in claims if claim.holds is not None]
    open_ = len(claims) - len(told)
    return (f"{sum(told)} of {len(told)}" if told else "–") + (f", {open_} cannot be told" if open_ else "")


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 120 else f"{seconds:.0f} s"


def _total(chapters: Sequence[Chapter]) -> str:
    return f"All rows together took {_time(sum(one.seconds for one in chapters))} of computing."
