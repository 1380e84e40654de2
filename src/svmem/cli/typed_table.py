"""Tables that know the types of their columns: .parquet files, and .npz archives with an array a column."""

import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from svmem.cli.output import needs
from svmem.cli.table import Columns, as_numbers, as_owners, check_names, cut
from svmem.errors import InvalidInput

__all__ = ["npz_names", "parquet_names", "read_npz", "read_parquet"]


def npz_names(path: Path) -> list[str]:
    """Return the names of the arrays."""
    with _archive(path) as file:
        return list(file.files)


def read_npz(path: Path, numeric: Sequence[str], owner: str | None, advance: Callable[[int], None]) -> Columns:
    """Return the numeric arrays, (n,) or (n, w), and the owners (n,)."""
    with _archive(path) as file:
        wanted = [*numeric, *([] if owner is None else [owner])]
        check_names(path, file.files, wanted)
        arrays = {name: file[name] for name in wanted}
    _check_rows(path, {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()})
    advance(len(arrays[wanted[0]]))
    numbers = {name: as_numbers(path, name, arrays[name]) for name in numeric}
    return Columns(numbers, None if owner is None else as_owners(path, owner, _owner_cells(arrays[owner])))


def parquet_names(path: Path) -> list[str]:
    """Return the names of the columns."""
    with _parquet(path) as file:
        return list(file.schema_arrow.names)


def read_parquet(path: Path, numeric: Sequence[str], owner: str | None, advance: Callable[[int], None]) -> Columns:
    """Return the numeric columns, of numbers or of lists of one length, and the owners."""
    with _parquet(path) as file:
        wanted = [*numeric, *([] if owner is None else [owner])]
        check_names(path, file.schema_arrow.names, wanted)
        table = file.read(columns=list(dict.fromkeys(wanted)))
    _check_rows(path, {name: table.num_rows for name in wanted})
    advance(table.num_rows)
    numbers = {name: as_numbers(path, name, _parquet_column(path, name, table[name])) for name in numeric}
    return Columns(numbers, None if owner is None else as_owners(path, owner, table[owner].to_pylist()))


@contextmanager
def _archive(path: Path) -> Iterator[Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            if not hasattr(file, "files"):
                raise ValueError("it holds one bare array; save it with np.savez")
            yield file
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path} is no .npz archive of plain arrays: {error}") from None


@contextmanager
def _parquet(path: Path) -> Iterator[Any]:
    with needs("tables", path):
        import pyarrow as pa
        import pyarrow.parquet as pq
    with open(path, "rb") as source:
        try:
            yield pq.ParquetFile(source)
        except pa.ArrowException as error:
            raise InvalidInput(f"{path} is no parquet table: {str(error).splitlines()[0]}") from None


def _check_rows(path: Path, rows: dict[str, int]) -> None:
    if len(set(rows.values())) > 1:
        counts = ", ".join(f"{name!r} has {n}" for name, n in rows.items())
        raise InvalidInput(f"{path}: all arrays need one row a record, but {counts}")
    if not all(rows.values()):
        raise InvalidInput(f"{path} has no rows")


def _owner_cells(array: NDArray[Any]) -> list[Any]:
    cells = array.tolist()
    return [cell.decode("utf-8", "replace") for cell in cells] if array.dtype.kind == "S" else cells


def _parquet_column(path: Path, name: str, column: Any) -> NDArray[Any]:
    """Return a column as an array, NaN where it is null."""
    import pyarrow as pa

    types, kind = pa.types, column.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _stacked(path, name, column.to_pylist())
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
        raise InvalidInput(
            f"{path}: column {name!r} must hold numbers, it holds {kind}, such as {cut(column[0].as_py())} in row 1"
        )
    return column.cast(pa.float64(), safe=False).to_numpy()


def _stacked(path: Path, name: str, cells: list[list[Any] | None]) -> NDArray[Any]:
    width = len(cells[0] or ())
    for row, cell in enumerate(cells, 1):
        if cell is None or len(cell) != width or not width:
            wanted, came = f"a list of {width or 'some'} numbers", f"one of {len(cell)}" if cell else "none"
            raise InvalidInput(f"{path}: column {name!r} must hold {wanted} in every row, row {row} has {came}")
    return np.array([[np.nan if x is None else x for x in cell or ()] for cell in cells])
