"""What [Ramesh2026] says of surgery on facts, with our numbers, and what ours adds, for and against exact removal."""

from collections.abc import Sequence

from experiments.audit import wilson
from experiments.ledger import Claim
from experiments.redundant import keep_claims
from experiments.removal import EVERY
from svmem.types import Json

__all__ = ["claim"]

SIMPLE = EVERY[2:]  # the methods that solve nothing again
GAP = 1e-10  # what the objective may miss its optimum by


def claim(rows: Sequence[Json]) -> list[Claim]:
    """Return what [Ramesh2026] says, with our numbers; of the capitals, which it does not have, what a secret needs."""
    sequences = [row for row in rows if row["arm"].startswith("recall")]
    if not sequences:
        return [Claim("what is left of a secret", None)]
    capital = [row for row in rows if row["arm"] == "capitals"]
    kept = keep_claims(_part(sequences, "keep"))
    made = [*_of_secrets(sequences), *_of_edits(sequences), _of_attacks(sequences, "sequences"), kept[0]]
    made += [*_of_ours(sequences, "sequences"), _of_layer(sequences), *kept[1:], _of_gaps(rows)]
    if not any(row["part"] == "forget" for row in capital):
        return [*made, Claim(next((row["status"] for row in capital), "no capitals were asked"), None)]
    left, (other, known) = _share(capital, "exact", "secret_hits"), _of_others(capital)
    text = f"no capital is answered after its removal, and 99 % of the others are: {left:.2f} and {other:.2%}"
    text += f", {known:.2%} before; {_said_same(capital)}"
    holds = left == 0 and other >= 0.99 and _same(capital)
    made += [Claim(text, holds, ours=True), _of_attacks(capital, "capitals")]
    return [*made, *_of_ours(capital, "capitals")]


def _of_ours(rows: Sequence[Json], where: str) -> list[Claim]:
    """Return where simple methods do as well, and where they do not."""
    return [*_of_simple(rows, where), _of_distances(rows, where), _of_edit_answers(rows, where), _of_leaks(rows, where)]


def _of_secrets(rows: Sequence[Json]) -> list[Claim]:
    recall = [row for row in rows if row["part"] == "recall"]
    found, chance = _ratio(recall, "hits", "asked"), _mean(recall, "chance")
    before, after, tenth, hundredth = (
        _share(rows, method, "secret_hits") for method in ("none", "exact", "decay 0.1", "decay 0.01")
    )
    others, known = _of_others(rows)
    said = f"the secret's recall falls from 1.00 to 0.04, below chance, by exact removal: {before:.2f} to {after:.2f}"
    by_decay = f"decay by 10 leaves a recall of 1.00, by 100 of 0.95: {tenth:.2f} and {hundredth:.2f}"
    answered = f"all other facts are still answered: {others:.2%}, and {known:.2%} before; {_said_same(rows)}"
    return [
        Claim(f"the model recalls 1.000 of held-out facts: {found:.3f}", found >= 0.995),
        Claim(said, before >= 0.99 and after <= chance),
        Claim(by_decay, abs(tenth - 1.0) <= 0.05 and abs(hundredth - 0.95) <= 0.05),
        Claim(answered, others >= known and _same(rows)),
    ]


def _of_others(rows: Sequence[Json]) -> tuple[float, float]:
    """Return which share of the other facts is answered after exact removal, and before."""
    after, before = (_forget(rows, method) for method in ("exact", "none"))
    return _ratio(after, "other_hits", "others"), _ratio(before, "other_hits", "others")


def _same(rows: Sequence[Json]) -> bool:
    """Return whether each exact removal left bit for bit, and in each score, the memory that never held the secret."""
    return all(row["same"] == 1 and row["worst_deviation"] == 0 for row in _forget(rows, "exact"))


def _said_same(rows: Sequence[Json]) -> str:
    after = _forget(rows, "exact")
    worst, same = max(row["worst_deviation"] for row in after), _mean(after, "same")
    return f"scores are off by {_small(worst)} from a memory that never held the fact, {same:.0%} with its digest"


def _of_edits(rows: Sequence[Json]) -> list[Claim]:
    edits = {m: _part(rows, "edit", m) for m in ("exact", "decay 0.01")}
    exact, decay = (max(row["worst_deviation"] for row in some) for some in edits.values())
    new, again = _ratio(edits["exact"], "new_hits", "secrets"), _part(rows, "again", "exact")
    apart, back = max(row["worst_deviation"] for row in again), _ratio(again, "secret_hits", "secrets")
    restored = (
        f"forgotten and added again, the answer is back to 8e-8, and right in 93 %: {_small(apart)} and {back:.1%}"
    )
    return [
        Claim(f"an edit leaves scores 1e-13 from a refit: {_small(exact)}; {new:.2f} answer anew", exact <= 1e-12),
        Claim(f"an edit by decay leaves scores 1.15 from a refit: {decay:.1e} at worst", decay >= 1.0),
        Claim(restored, apart <= 8e-8 and back >= 0.93),
    ]


def _of_edit_answers(rows: Sequence[Json], where: str) -> Claim:
    """Return whether scores tell an edit by decay from an exact one, which answers do not."""
    exact, decay = (_part(rows, "edit", m) for m in ("exact", "decay 0.01"))
    new, by_decay, edits = _sum(exact, "new_hits"), _sum(decay, "new_hits"), _sum(exact, "secrets")
    low, _ = wilson(new, edits)
    worst, off = (max(row["worst_deviation"] for row in some) for some in (exact, decay))
    text = f"{where}: by its answers an edit by decay is as good as an exact one, {by_decay} and {new} of {edits} anew;"
    text += f" scores tell, off from a refit by up to {_small(off)} and {_small(worst)}"
    bits = worst == 0 and all(row["same"] == 1 for row in exact)
    return Claim(text, by_decay / edits >= low and bits and off > 0, ours=True)


def _of_attacks(rows: Sequence[Json], where: str) -> Claim:
    """Return whether chance lies in the intervals of both attacks after exact removal, and outside after decay."""
    said, holds = [], True
    for method in ("exact", "decay 0.01"):
        for name in ("wins_by_answer", "wins_by_score"):
            low, high = _interval(_forget(rows, method), name, "games")
            said.append(f"{low:.2f} to {high:.2f}")
            holds &= (low <= 0.5 <= high) == (method == "exact")
    text = f"{where}: who tells a memory that forgot from one that never held wins by chance after exact removal"
    return Claim(
        f"{text} ({said[0]} by answers, {said[1]} by scores), not after decay ({said[2]}, {said[3]})", holds, True
    )


def _of_simple(rows: Sequence[Json], where: str) -> list[Claim]:
    """Return whether simple methods do as well by recall of the secret, and whether scores tell these all the same.

    As well: their recall lies in the interval of that after exact removal.
    """
    exact, simple = _forget(rows, "exact"), {m: some for m in SIMPLE if (some := _forget(rows, m))}
    high = _interval(exact, "secret_hits", "secrets")[1]
    hits = {m: _sum(some, "secret_hits") for m, some in simple.items()}
    well = [m for m, some in simple.items() if _ratio(some, "secret_hits", "secrets") <= high]
    text = f"{where}: by recall of the secret alone simple methods do as well as exact removal, which leaves"
    text += f" {_sum(exact, 'secret_hits')} of {_sum(exact, 'secrets')}: {_listed(hits, well)}"
    text += f"; not so {_listed(hits, [m for m in simple if m not in well])}"
    told, told_by = bool(well) and _sum(exact, "wins_by_score") == _sum(exact, "games") / 2 and _same(rows), []
    for method in well:
        some = simple[method]
        low, _ = _interval(some, "wins_by_score", "games")
        off, answers = _mean(some, "deviation"), _ratio(some, "wins_by_answer", "games")
        told &= low > 0.5 and off > 0
        wins = f"{_ratio(some, 'wins_by_score', 'games'):.2f} of games by scores, {answers:.2f} by answers"
        told_by.append(f"{method} {wins}, scores off by {off:.1e}")
    scores = f"{where}: what tells those from exact removal (0.50 of games, off by 0) is membership and the scores:"
    return [
        Claim(text, bool(well), ours=True),
        Claim(f"{scores} {'; '.join(told_by) or 'there are none'}", told if well else None, ours=True),
    ]


def _of_distances(rows: Sequence[Json], where: str) -> Claim:
    """Return whether by its answer only exact removal leaves a memory that never held the secret."""
    away = {method: _mean(_forget(rows, method), "distance") for method in EVERY}
    said = {"none": "left in", "exact": "exact removal"}
    numbers = [f"{said.get(method, method)} {number:.2g}" for method, number in away.items()]
    text = f"{where}: membership distance, the median one from the answer of a memory that never held the secret, is 0"
    text += f" after exact removal alone: {', '.join(numbers)}"
    return Claim(text, away["exact"] == 0 < min(away[method] for method in EVERY if method != "exact"), ours=True)


def _of_gaps(rows: Sequence[Json]) -> Claim:
    """Return whether all that was solved is solved; the gap bounds what is left of the objective."""
    gaps = [row["worst_gap"] for row in rows if row["worst_gap"] is not None]
    text = f"what is solved is at its optimum: the worst duality gap is {max(gaps):.1e}, below {GAP:g}"
    return Claim(f"{text}, of the memories and gates behind {len(gaps)} rows", max(gaps) < GAP, ours=True)


def _of_leaks(rows: Sequence[Json], where: str) -> Claim:
    """Return whether a secret is answered no more than by chance after exact removal, in whatever words it is asked."""
    hits = {m: _sum(_part(rows, "leak", m), "secret_hits") for m in EVERY}
    ways = len({row["words"] for row in rows if row["part"] == "leak"})
    asked, chance = _sum(_part(rows, "leak", "exact"), "secrets"), _mean(_part(rows, "recall"), "chance")
    text = f"{where}: asked in {ways} ways, a secret is answered no more than by chance after exact removal:"
    text += f" {hits['exact']} of {asked} times (chance {chance * asked:.0f}); left in, {hits['none']}"
    text += f"; after {_listed(hits, SIMPLE)}"
    return Claim(text, hits["exact"] <= chance * asked < hits["none"], ours=True)


def _of_layer(rows: Sequence[Json]) -> Claim:
    """Return whether chance lies in the interval of the secret's recall where a question reads itself as well."""
    exact, chance = _forget(rows, "exact", "layer"), _mean(_part(rows, "recall"), "chance")
    low, high = _interval(exact, "secret_hits", "secrets")
    seeds = [row["secret_hits"] / row["secrets"] for row in exact]
    mean = _ratio(exact, "secret_hits", "secrets")
    shares = {m: f"{_ratio(_forget(rows, m, 'layer'), 'secret_hits', 'secrets'):.3f}" for m in SIMPLE}
    wins = _ratio(_forget(rows, "scaling", "layer"), "wins_by_answer", "games")
    text = "sequences: where a question reads itself too, as in the layer, exact removal leaves recall at chance,"
    text += f" {chance:g}: {mean:.3f} ({low:.3f} to {high:.3f}; {min(seeds):.3f} to {max(seeds):.3f} by seed);"
    text += f" {_listed(shares, SIMPLE)}; by answers scaling is told from never held in {wins:.2f} of games"
    return Claim(text, low <= chance <= high, ours=True)


def _part(rows: Sequence[Json], part: str, method: str | None = None) -> list[Json]:
    return [row for row in rows if row["part"] == part and (method is None or row["method"] == method)]


def _forget(rows: Sequence[Json], method: str, readout: str = "memory") -> list[Json]:
    """Return the rows that say what a method leaves in the memory, or in what the layer reads."""
    return [row for row in _part(rows, "forget", method) if row["readout"] == readout]


def _share(rows: Sequence[Json], method: str, hits: str) -> float:
    return _ratio(_forget(rows, method), hits, "secrets")


def _ratio(rows: Sequence[Json], hits: str, of: str) -> float:
    return _sum(rows, hits) / _sum(rows, of)


def _interval(rows: Sequence[Json], hits: str, of: str) -> tuple[float, float]:
    return wilson(_sum(rows, hits), _sum(rows, of))


def _sum(rows: Sequence[Json], name: str) -> int:
    return sum(row[name] for row in rows)


def _mean(rows: Sequence[Json], name: str) -> float:
    return _sum(rows, name) / len(rows)


def _listed(numbers: dict[str, int] | dict[str, str], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {numbers[name]}" for name in names) or "none"


def _small(number: float) -> str:
    return f"{number:.1e}" if number else "0"
