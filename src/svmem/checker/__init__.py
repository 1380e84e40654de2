"""Checks a certificate against the records. Shares no code with the memory that wrote it: copy this folder, add numpy.

    python -m svmem.checker RECORDS CERTIFICATE        0: borne out, 1: refused, 2: could not be read

Every number is recomputed, the residuals in doubled float64 arithmetic. Formats: docs/digest.md; the bounds:
docs/derivations/optimality.md and horizon.md.
"""

from .files import Unreadable, read_certificate, read_records
from .statement import Finding, check

__all__ = ["Finding", "Unreadable", "check", "read_certificate", "read_records"]
