"""The report of one memory as a page: what it holds, which records carry its answers, how well that is known."""

from collections.abc import Callable
from datetime import UTC, datetime

from matplotlib.figure import Figure

from svmem.kernels import RBF, Laplacian
from svmem.report.contents import Contents, owner_rows
from svmem.report.page import Block, Picture, Section, Table, Text, at_most, page, percent
from svmem.report.pictures import alpha_figure, gate_figure, main_plane, plane_figure, sizes_figure
from svmem.report.style import svg

__all__ = ["overview_page"]

OWNERS = 20  # rows of the table


def overview_page(contents: Contents, title: str) -> str:
    """Return the page. Counts, tables and axes are of all records, the scores and points of those in `drawn`."""
    sections = [Section("In short", (_summary(contents),))]
    if len(contents.keys):
        sections += [
            Section("Which records carry the answers", (*_sets(contents),)),
            Section("Where the records lie", (*_places(contents),)),
        ]
    sections += [Section("Owners", _owners(contents)), Section("What is proven", _bounds(contents))]
    lead = (
        "A support-vector memory: a convex problem over the keys decides which records carry its answers. The others "
        "are silent: leaving them out changes no answer."
    )
    footer = (f"Written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.", f"Digest of the state: {contents.digest}")
    return page(title, lead, tuple(sections), footer)


def _summary(c: Contents) -> Table:
    n, active = len(c.keys), int((c.alpha > 0).sum())
    kernel = c.problem.kernel
    width = f", sigma {kernel.sigma:g}" if isinstance(kernel, RBF | Laplacian) else ""
    state = "collecting: every record counts the same" if c.collecting else "selecting"
    rows = (
        ("Records", f"{n:,}"),
        ("Records that carry answers", f"{active:,} ({percent(active / n)})" if n else "0"),
        ("State", f"{state}; selection starts at {c.problem.n_min:,} records"),
        ("Width of keys, of values", f"{c.keys.shape[1]}, {c.value_dim}"),
        ("Kernel", f"{kernel.name}{width}"),
        ("Cap C, ridge", f"{c.problem.C:.6g}, {c.problem.ridge:g}"),
        ("Owners", f"{len(set(c.owner[c.owner != '']))}"),
        ("Proven bound on the gate score, any query", at_most(c.optimality["score_bound"])),
    )
    return Table(("What", "Result"), rows, words=(1,))


def _sets(c: Contents) -> list[Block]:
    cap = int((c.alpha >= c.problem.C).sum())
    return [
        _picture(
            "sizes",
            lambda: sizes_figure(c.sets),
            "Bars: number of margin, bound and reserve records",
            "Margin and bound records carry the answers; reserve records are silent until the memory changes.",
        ),
        _picture(
            "alpha",
            lambda: alpha_figure(c.alpha, c.problem.C),
            "Histogram of the coefficients between zero and the cap",
            f"Coefficients of the records strictly between 0 and the cap. {cap:,} more are at the cap, and "
            f"{int((c.alpha == 0).sum()):,} are exactly 0.",
        ),
    ]


def _places(c: Contents) -> list[Block]:
    n, shown = len(c.keys), len(c.drawn)
    points, shares = main_plane(c.keys)
    drawn = {name: members[c.drawn] for name, members in c.sets.items()}
    some = "" if shown == n else f" Drawn are {shown:,} of {n:,} records."
    return [
        _picture(
            "gate",
            lambda: gate_figure(c.score, drawn),
            "Histogram of the gate scores of the stored records by set",
            "The gate score is positive inside the region that the memory knows and negative outside." + some,
        ),
        _picture(
            "plane",
            lambda: plane_figure(points[c.drawn], shares, drawn),
            "Scatter plot of the keys on their first two principal axes, marked by set",
            "The keys seen from the side on which they differ most. In more than two dimensions a record can look "
            f"inside and yet be outside.{some}",
        ),
    ]


def _picture(name: str, draw: Callable[[], Figure], alt: str, caption: str) -> Picture:
    return Picture(name, svg(draw()), alt, caption)


def _owners(c: Contents) -> tuple[Block, ...]:
    rows = owner_rows(c)
    if all(row.owner == "" for row in rows):
        return (Text(("No record names an owner.",)),)
    shown = [(r.owner or "(none)", f"{r.records:,}", f"{r.active:,}", f"{100 * r.mass:.1f} %") for r in rows[:OWNERS]]
    rest = rows[OWNERS:]
    if rest:
        shown.append(
            (
                f"{len(rest):,} more",
                f"{sum(r.records for r in rest):,}",
                f"{sum(r.active for r in rest):,}",
                f"{100 * sum(r.mass for r in rest):.1f} %",
            )
        )
    header = ("Owner", "records", "of these active", "share of the coefficients")
    return (Table(header, tuple(shown), "Owners with the largest share of the memory first."),)


def _bounds(c: Contents) -> tuple[Block, ...]:
    o = c.optimality
    epsilon = o["readout_epsilon"]
    readout = (
        "not shown at this accuracy" if epsilon is None else f"{at_most(2 * epsilon / (1 - epsilon))} × largest value"
    )
    rows = (
        ("Duality gap", at_most(o["gap"])),
        ("Gate score, any query", at_most(o["score_bound"])),
        ("Offset", at_most(o["offset_bound"])),
        ("Coefficients together", at_most(o["alpha_bound"])),
        ("Answers, any query", readout),
        ("Worst violation of a condition of optimality", at_most(o["max_kkt"])),
    )
    words = (
        "While collecting no optimum is claimed: every record carries 1/n by definition."
        if c.collecting
        else "Distance to the one optimum for exactly these records, rounding included, for every possible query."
    )
    return (Text((words,)), Table(("Bound", "proven"), rows))
