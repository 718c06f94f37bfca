"""Which columns does a table of operations have? CSV, plain or gzipped, and Parquet, never more than can be borne."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from commsim.errors import InputError, LackError
from commsim.measurement.lines import LONGEST_LINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import ModuleType

    from commsim.measurement.traces.steps import Floats, Ints

MOST_ROWS = 20_000_000
MOST_BYTES = 4 * 2**30
"""Of a trace, unpacked."""
_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"
Column = NDArray[np.str_] | NDArray[np.float64]


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does."""
    return beginning(path, 4) == _PARQUET


def beginning(path: Path, size: int) -> bytes:
    """Return the first bytes of a file, unpacked if it is gzipped; InputError for one that cannot be read."""
    with unpacked(path) as stream:
        return stream.read(size)


def unpacked(path: Path) -> IO[bytes]:
    """Return a file to read from, unpacked on the way if it is gzipped; what it reads is bounded."""
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == _GZIP
        source = cast("IO[bytes]", gzip.open(path) if zipped else path.open("rb"))  # noqa: SIM115 - closed by _Bounded
        return cast("IO[bytes]", _Bounded(source, path.name))
    except OSError as error:
        raise InputError("trace", str(path), f"a file that can be read belongs here ({error.strerror})") from None


class _Bounded(io.RawIOBase):
    """A stream that refuses to be endless, and says in one line what is wrong with a damaged archive."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name, self._read = stream, name, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            found = self._stream.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(self._name, str(error), "a whole file belongs here (this one ends early?)") from None
        self._read += len(found)
        if self._read > MOST_BYTES:
            raise InputError(self._name, f"more than {MOST_BYTES} B", "a shorter trace belongs here")
        return found

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override] # any buffer that can be written
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._stream.close()
        super().close()


def table(path: Path) -> tuple[dict[str, Column], int]:
    """Return the columns of a CSV or Parquet file, numbers as floats, and how many damaged rows were left out."""
    return (_parquet(path), 0) if is_parquet(path) else _csv(path)


def header(path: Path) -> list[str]:
    """Return the names of the columns of a CSV file, or none."""
    first = beginning(path, 2**16).decode("utf-8", errors="replace").lstrip("\ufeff").splitlines()
    return [name.strip() for name in next(csv.reader(first[:1]), [])]


def _csv(path: Path) -> tuple[dict[str, Column], int]:
    """The columns by way of the standard library; rows with too few or too many fields are left out and counted."""
    csv.field_size_limit(2**20)
    with io.TextIOWrapper(unpacked(path), "utf-8", errors="replace") as text:
        rows = csv.reader(text)
        names = [name.strip().lstrip("\ufeff") for name in next(rows, [])]
        blocks, damaged = _blocks(_rows(rows, path.name), len(names))
    found = {name: _joined([block[place] for block in blocks]) for place, name in enumerate(names)} if blocks else {}
    return found, damaged


def json_lines(path: Path, names: tuple[str, ...]) -> tuple[dict[str, Column], int]:
    """Return the same of a file with an object a line, for the keys that its first object has of those named."""
    with io.TextIOWrapper(unpacked(path), "utf-8", errors="replace") as text:
        first = _object(text.readline(LONGEST_LINE))
        known = [name for name in names if name in first]
        lines = chain([first], map(_object, iter(lambda: text.readline(LONGEST_LINE), "")))
        blocks, damaged = _blocks(([str(one[name]) for name in known if name in one] for one in lines), len(known))
    found = {name: _joined([block[place] for block in blocks]) for place, name in enumerate(known)} if blocks else {}
    return found, damaged


def _object(line: str) -> dict[str, Any]:
    """The object of a line, empty for a line that is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


_BLOCK = 2**16
"""Rows that are held as text at a time."""


def _blocks(rows: Iterator[list[str]], fields: int) -> tuple[list[list[Column]], int]:
    """The columns of some rows after the others, and how many rows do not have so many fields."""
    blocks, damaged = [], 0
    while block := list(islice(rows, _BLOCK)):
        fit = [row for row in block if len(row) == fields]
        damaged += len(block) - len(fit)
        if fit:
            blocks.append([_column(values) for values in zip(*fit)])
    return blocks, damaged


def _joined(parts: list[Column]) -> Column:
    """One column: numbers if every part is."""
    is_text = any(part.dtype.kind != "f" for part in parts)
    return np.concatenate([part.astype(np.str_) for part in parts] if is_text else parts)


def _rows(rows: Iterator[list[str]], name: str) -> Iterator[list[str]]:
    try:
        for number, row in enumerate(rows):
            if number >= MOST_ROWS:
                raise InputError(name, f"more than {MOST_ROWS} rows", "a shorter trace belongs here")
            if row:
                yield row
    except csv.Error as error:
        raise InputError(name, str(error), "a table of comma-separated values belongs here") from None


def _column(values: tuple[str, ...]) -> Column:
    """Numbers if all are, else text."""
    try:
        return np.array([float(value) if value.strip() else np.nan for value in values])
    except ValueError:
        return np.array([value.strip() for value in values])


def _parquet(path: Path) -> dict[str, Column]:
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError:
        raise LackError(f"{path.name}: reading Parquet needs pyarrow (pip install 'commsim[parquet]')") from None
    try:
        file = pq.ParquetFile(path)
        if file.metadata.num_rows > MOST_ROWS:
            raise InputError(path.name, f"{file.metadata.num_rows} rows", f"at most {MOST_ROWS} are read")
        read = file.read()
    except (OSError, ValueError, pa.ArrowException) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(path.name, str(error), "a whole Parquet file belongs here") from None
    return {name: _arrow(read.column(name), pa) for name in read.column_names}


def _arrow(column: Any, pa: ModuleType) -> Column:  # noqa: ANN401 - pyarrow has no types
    """A column of Parquet: numbers, or the text of anything else."""
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    coded = column.cast(pa.string()).fill_null("").combine_chunks().dictionary_encode()
    found: Column = np.array([*coded.dictionary.to_pylist(), ""], dtype=np.str_)[coded.indices.to_numpy()]
    return found


def numbers(columns: Mapping[str, Column], name: str, source: str, *, least: float = -np.inf) -> Floats:
    """Return a column of finite numbers; InputError with the first that is none."""
    given = _of(columns, name, source)
    if given.dtype.kind != "f":
        bad = next(value for value in given.tolist() if not _is_number(value))
        raise InputError(f"{source}: {name}", bad, "a number belongs here")
    found = cast("Floats", given)
    wrong = np.flatnonzero(~np.isfinite(found) | (found < least))
    if wrong.size:
        belongs = "a finite number" if least == -np.inf else f"a finite number of at least {least:g}"
        raise InputError(f"{source}: {name}, row {wrong[0] + 1}", float(found[wrong[0]]), f"{belongs} belongs here")
    return found


def whole(columns: Mapping[str, Column], name: str, source: str) -> Ints:
    """Return a column of whole numbers from 0 on; InputError with the first that is none."""
    found = numbers(columns, name, source, least=0)
    wrong = np.flatnonzero((found % 1 != 0) | (found > _LARGEST))
    if wrong.size:
        raise InputError(f"{source}: {name}, row {wrong[0] + 1}", float(found[wrong[0]]), "a whole number belongs here")
    return found.astype(np.int64)


_LARGEST = 2**31


def texts(columns: Mapping[str, Column], name: str, source: str) -> NDArray[np.str_]:
    """Return a column as text."""
    return _of(columns, name, source).astype(np.str_)


def _of(columns: Mapping[str, Column], name: str, source: str) -> Column:
    if name not in columns:
        raise InputError(f"{source}: columns", sorted(columns), f"a column {name!r} belongs here")
    return columns[name]


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
