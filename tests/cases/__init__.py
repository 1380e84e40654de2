"""Named small problems that run through every property."""

from tests.cases.case import Case, Step, problem_of, rows
from tests.cases.degenerate import DEGENERATE
from tests.cases.known import KNOWN
from tests.cases.spread import SPREAD
from tests.cases.streams import STREAMS
from tests.cases.truth import truth

__all__ = ["ALL", "BY_NAME", "KNOWN", "Case", "Step", "problem_of", "rows", "truth"]

ALL = (*KNOWN, *DEGENERATE, *SPREAD, *STREAMS)
BY_NAME = {case.name: case for case in ALL}
if len(BY_NAME) != len(ALL):
    raise ValueError("two cases share a name")
