"""The report of the demo as a page: what was done, what came out, and what it does not show."""

import statistics
from datetime import UTC, datetime

from svmem.demo.result import PAPER_KEPT, PAPER_KEPT_HELD_OUT, DemoResult, versions
from svmem.demo.retention import Estimate
from svmem.report.page import Picture, Section, Table, Text, at_most, page, percent, short

__all__ = ["demo_page"]


def demo_page(result: DemoResult, pictures: dict[str, Picture]) -> str:
    """Return the page; `pictures` holds stream, retention, deviation and counts."""
    sections = (
        Section("In short", (_summary(result),)),
        Section("One stay, hour by hour", (pictures["stream"],)),
        Section("Which hours are kept", (_retention_words(result), pictures["retention"], *_retention_tables(result))),
        Section("One patient withdrawn", (_withdrawal_words(result), _withdrawal_table(result))),
        Section("Many small deletions", (pictures["deviation"], _deletion_table(result))),
        Section("Size of the memory as hours arrive", (pictures["counts"],)),
        Section("The certificate", (_proof_words(result), _proof_table(result))),
        Section("What this does not show", (_LIMITS,)),
    )
    return page(
        "A memory of intensive care, with a patient withdrawn",
        "A support-vector memory is fed with real intensive-care hours. A convex problem decides which hours carry its "
        "answers, one patient is taken out as if never seen, and a certificate lets anybody check the result.",
        sections,
        _footer(result),
    )


def _summary(r: DemoResult) -> Table:
    counts, kept, w = r.counts, r.retention.kept, r.withdrawal
    equal = "yes, bit for bit" if w.digest == w.digest_refit else "NO"
    rows = (
        ("Patients, stays, hours", f"{counts.patients:,}, {counts.stays:,}, {counts.hours:,}"),
        ("Hours that carry the answers, memory over all", f"{counts.margin + counts.bound:,} of {counts.in_memory:,}"),
        (
            f"Deterioration hours kept with {percent(r.retention.budget)} of a stay's hours",
            f"{percent(kept['support'].mean)} (heavy-hitter {percent(kept['heavy-hitter'].mean)})",
        ),
        ("Patient withdrawn", f"{w.hours:,} hours in {w.forget_s:.2f} s"),
        ("State equal to a memory that never held the patient", equal),
        ("Proven bound on the gate score, for every query", at_most(r.proof.score_bound)),
        ("Certificate, by the independent checker", r.proof.verdict.split(":")[0]),
        ("Tampered copies of the certificate", f"{len(r.proof.forgeries)} tried, {len(r.proof.forgeries)} refused"),
    )
    return Table(("What", "Result"), rows, words=(1,))


def _retention_words(r: DemoResult) -> Text:
    return Text(
        (
            f"Each of the {r.retention.stays} stays of 48 hours or more with a deterioration hour is solved once. An "
            "hour is one of deterioration when heart rate (40 to 130), systolic pressure (90 to 200), respiratory rate "
            "(6 to 30), oxygen saturation (from 90 %) or temperature (35 to 38.5 °C) leaves these limits. None of the "
            "four rules knows them.",
            "Support keeps the hours that carry the answers, heavy-hitter the hours most similar to all others, last k "
            "the most recent ones, random any.",
        )
    )


def _retention_tables(r: DemoResult) -> list[Table]:
    main, stays = r.retention, f"{r.retention.stays} stays"
    rows = [(name, _range(e), f"{PAPER_KEPT[name]:.2f}", _range(main.answered[name])) for name, e in main.kept.items()]
    rows += [("support minus heavy-hitter", _range(main.kept_difference), "0.75", "")]
    header = ("Six vitals", f"kept, ours ({stays})", "kept, paper (1,329 stays)", "nearest kept is one, ours")
    caption = (
        "Ours beside the paper (arXiv 2607.12204, MIMIC-IV): same protocol, other and fewer stays. Mean over stays of "
        "the share of deterioration hours, 95 % interval in brackets."
    )
    tables = [Table(header, tuple(rows), caption)]
    if r.held_out is not None:
        hidden = [(name, _range(e), f"{PAPER_KEPT_HELD_OUT[name]:.2f}") for name, e in r.held_out.kept.items()]
        hidden += [("support minus heavy-hitter", _range(r.held_out.kept_difference), "0.24 (0.19–0.28)")]
        header = ("SpO2 hidden", f"kept, ours ({r.held_out.stays} stays)", "kept, paper (718 stays)")
        caption = (
            "The same with oxygen saturation hidden from every rule and an hour below 90 % as the deterioration: what "
            "is kept is not merely what crosses a limit in the data that the rule sees."
        )
        tables.append(Table(header, tuple(hidden), caption))
    return tables


def _range(e: Estimate) -> str:
    return f"{e.mean:.2f} ({e.low:.2f}–{e.high:.2f})"


def _withdrawal_words(r: DemoResult) -> Text:
    return Text(
        (
            "The patient with the most hours, the hardest case, is taken out of the memory over all patients. It is "
            "then compared with a memory that was filled from nothing with the other patients only, on "
            f"{r.withdrawal.queries:,} of their hours. The other patients' answers do change a little when a patient "
            "leaves, as they should: what must not differ is the memory from one that never held the patient.",
        )
    )


def _withdrawal_table(r: DemoResult) -> Table:
    w = r.withdrawal
    rows = (
        ("Hours withdrawn, hours left", f"{w.hours:,}, {w.hours_left:,}"),
        ("Time to forget, to fill a memory without the patient", f"{w.forget_s:.2f} s, {w.refit_s:.2f} s"),
        ("Digest after forgetting", f"{w.digest[:12]}…"),
        ("Digest of the memory that never held the patient", f"{w.digest_refit[:12]}…"),
        ("Largest difference of a gate score between the two", _exact(w.score_difference)),
        ("Largest difference of an answer between the two", _exact(w.readout_difference)),
        ("Proven bound on the gate score's distance from the optimum, any query", at_most(r.proof.score_bound)),
        ("For scale: largest change of a gate score by taking the patient out", short(w.score_moved)),
        ("For scale: largest change of an answer, in standard deviations", short(w.readout_moved)),
    )
    return Table(("What", "Result"), rows)


def _exact(difference: float) -> str:
    return "0, identical bits" if difference == 0 else short(difference)


def _deletion_table(r: DemoResult) -> Table:
    n = len(r.trials)
    rows = (
        ("completed", f"{n} of {n}", "299 of 300"),
        ("same three sets as the refit", percent(sum(t.same_partition for t in r.trials) / n), "98 %"),
        ("same digest as the refit", percent(sum(t.same_digest for t in r.trials) / n), "–"),
        ("worst deviation of the gate score", _exact(max(t.ours for t in r.trials)), "1.1e-2"),
        ("decay baseline, median deviation", short(statistics.median(t.decay for t in r.trials)), "1.5e-1"),
    )
    return Table(("Deletions", "ours", "paper"), rows)


def _proof_words(r: DemoResult) -> Text:
    return Text(
        (
            "The certificate states that the coefficients are the optimum for the remaining hours, up to bounds that "
            "hold for every possible query, rounding included. The checker shares no code with the solver: it reads "
            f"the file and recomputes every number from the records, here in {r.proof.check_s:.1f} s.",
        )
    )


def _proof_table(r: DemoResult) -> Table:
    p = r.proof
    epsilon = p.readout_epsilon
    answers = "not shown" if epsilon is None else at_most(2 * epsilon / (1 - epsilon))
    rows = (
        ("Records", f"{p.records:,}"),
        ("Size of the file", f"{p.size_bytes / 1e6:.1f} MB"),
        ("Duality gap, proven", at_most(p.gap)),
        ("Bound on the gate score, any query", at_most(p.score_bound)),
        ("Bound on the coefficients together", at_most(p.alpha_bound)),
        ("Bound on an answer, any query, as a share of the largest value", answers),
        ("Checker", p.verdict),
        *((f"Tampered: {what}", said) for what, said in p.forgeries),
    )
    return Table(("What", "Result"), rows, words=(1,))


_LIMITS = Text(
    (
        "Nothing here is a clinical finding: few patients of one hospital show how the memory behaves, not how "
        "patients do. The intervals say how much the shares would vary with other stays of the same kind.",
        "Means, deviations and medians of the cohort were computed with the withdrawn patient's hours and stay as they "
        "are: exact withdrawal is a statement about the memory, not about what was done to the data before. Files "
        "exported earlier and backups are outside it too, and so is this page.",
    )
)


def _footer(r: DemoResult) -> tuple[str, ...]:
    steps = "; ".join(f"{name} {seconds:.1f} s" for name, seconds in r.seconds.items())
    return (
        f"Data: {r.source.citation}",
        "Method: V. Ramesh, Forgetful Attention, arXiv 2607.12204.",
        f"Seed {r.seed}. {sum(r.seconds.values()):.0f} s before this page was drawn: {steps}.",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in versions().items()) + ".",
        f"Written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.",
    )
