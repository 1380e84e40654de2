"""Certificates of a retained state."""

from svmem.core.certificate import OptimalityCertificate, certify
from svmem.core.document import Commitment, Removal, Scope, build
from svmem.core.receipt import Receipt
from svmem.core.retained import Retained
from svmem.core.selection import SelectionCertificate, certify_selection
from svmem.errors import InvalidInput
from svmem.types import Json

__all__ = ["document", "optimality", "scope", "selection"]

_ERASED = "overwritten among the records; working buffers, and copies, files or exports made earlier, are not covered"


def scope(retained: Retained) -> Scope:
    """Return against which records "as if never seen" is exact."""
    return Scope.RETAINED if retained.evicted else Scope.EVERYTHING


def optimality(retained: Retained) -> OptimalityCertificate:
    """Return the optimality certificate, from keys, coefficients and offset alone."""
    offset = retained.working().offset
    return certify(retained.contents().keys, retained.alpha(), retained.problem, offset=offset)


def selection(retained: Retained, horizon: int | tuple[int, int]) -> SelectionCertificate:
    """Return the selection certificate for a horizon of (admissions, deletions), or of one number for both."""
    pair = tuple(horizon) if isinstance(horizon, tuple | list) else (horizon, horizon)
    if len(pair) != 2:
        raise InvalidInput(f"a horizon is one number or (admissions, deletions), got {len(pair)} numbers")
    admissions, deletions = pair
    return certify_selection(
        retained.contents().keys, retained.alpha(), retained.problem, admissions=admissions, deletions=deletions
    )


def _is_of(receipt: Receipt, retained: Retained) -> bool:
    """Return whether the present state is the one that the receipt speaks of."""
    gone = all(i < retained.next_id and i not in retained.records.slot_of for i in receipt.ids)
    return gone and receipt.change == retained.changes and receipt.n_after == len(retained.records)


def document(retained: Retained, removed: Receipt | None, chosen: SelectionCertificate | None) -> Json:
    """Return the certificate of the state for the checker. Raises InvalidInput for a receipt of another state."""
    held = retained.contents()
    if removed is not None and not _is_of(removed, retained):
        raise InvalidInput("the receipt is not of the last change of this memory; certify right after forgetting")
    digest, root = retained.digest()
    return build(
        held.keys,
        retained.alpha(),
        optimality(retained),
        Commitment(held.values.shape[1], root.hex(), digest),
        selection=chosen,
        removal=None if removed is None else Removal(removed.count, removed.exact_relative_to, _ERASED),
    )
