"""What the demo found, as tables for a terminal."""

from rich.console import Group
from rich.table import Table

from svmem.demo.result import PAPER_KEPT, PAPER_KEPT_HELD_OUT, DemoResult
from svmem.demo.retention import Estimate, Retention
from svmem.report.page import at_most, percent, short

__all__ = ["summary"]


def summary(result: DemoResult) -> Group:
    """Return the tables: deterioration hours kept beside the paper's, and what the withdrawal left."""
    parts = [_kept("Deterioration hours kept, six vitals", result.retention, PAPER_KEPT)]
    if result.held_out is not None:
        parts.append(_kept("Hours with SpO2 below 90 % kept, SpO2 hidden", result.held_out, PAPER_KEPT_HELD_OUT))
    return Group(*parts, _facts(result))


def _kept(title: str, retention: Retention, paper: dict[str, float]) -> Table:
    table = Table(
        title=f"{title} ({retention.stays} stays, {percent(retention.budget)} of the hours)", title_justify="left"
    )
    table.add_column("rule")
    for heading in ("kept", "95 % interval", "paper", "nearest kept is one"):
        table.add_column(heading, justify="right")
    for name, kept in retention.kept.items():
        table.add_row(
            name, f"{kept.mean:.2f}", _interval(kept), f"{paper[name]:.2f}", f"{retention.answered[name].mean:.2f}"
        )
    return table


def _interval(estimate: Estimate) -> str:
    return f"{estimate.low:.2f}–{estimate.high:.2f}"


def _facts(r: DemoResult) -> Table:
    table = Table(title="One patient withdrawn from the memory over all", title_justify="left", show_header=False)
    w, n = r.withdrawal, len(r.trials)
    equal = "equal" if w.digest == w.digest_refit else "DIFFERENT"
    exact = sum(t.ours == 0 and t.same_digest for t in r.trials)
    table.add_row(
        "hours in the memory, of these active", f"{r.counts.in_memory:,}, {r.counts.margin + r.counts.bound:,}"
    )
    table.add_row("hours withdrawn, time", f"{w.hours:,}, {w.forget_s:.2f} s (filling anew {w.refit_s:.2f} s)")
    table.add_row("digest against a memory that never held them", equal)
    table.add_row("largest difference of score, answer", f"{short(w.score_difference)}, {short(w.readout_difference)}")
    table.add_row("proven bound on the score, any query", at_most(r.proof.score_bound))
    table.add_row("independent checker", r.proof.verdict)
    for what, said in r.proof.forgeries:
        table.add_row(f"forgery: {what}", said)
    table.add_row("small deletions identical to the refit", f"{exact} of {n}")
    return table
