"""What svmem uses of numba, for the type checker: a compiled function keeps its signature and knows its source."""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

class Dispatcher(Generic[P, R]):
    py_func: Callable[P, R]
    signatures: list[Any]
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

def njit(
    *,
    cache: bool = ...,
    nogil: bool = ...,
    inline: str = ...,
    boundscheck: bool = ...,
    error_model: str = ...,
    parallel: bool = ...,
) -> Callable[[Callable[P, R]], Dispatcher[P, R]]: ...

prange = range
__version__: str

def __getattr__(name: str) -> Any: ...
