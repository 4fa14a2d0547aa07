"""Sequences and mappings in a temporary file, so that memory does not grow with the size of an import."""

from __future__ import annotations

# Only this process reads the values that it pickles.
import pickle
from array import array
from collections.abc import Iterator, Mapping, Sequence
from tempfile import TemporaryFile
from typing import TypeVar, overload

T = TypeVar("T")


class SpooledSequence(Sequence[T]):
    """Append-only sequence in a temporary file; values are unpickled on access."""

    def __init__(self) -> None:
        self._file, self._offsets = TemporaryFile(), array("q")  # noqa: SIM115 -- closed with the last reference

    def append(self, value: T) -> None:
        self._offsets.append(self._file.tell())
        pickle.dump(value, self._file, pickle.HIGHEST_PROTOCOL)

    def close(self) -> None:
        """Delete the temporary file. Also done when the object is collected."""
        self._file.close()

    __del__ = close

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        """Return a value, or a list of values for a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        self._file.seek(self._offsets[index])
        return pickle.load(self._file)  # type: ignore[no-any-return]  # noqa: S301 -- written above, by this process


class SpooledIndex(Mapping[str, T]):
    """Non-empty values by id, in a temporary file."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}
        self._values = SpooledSequence[T]()

    def add(self, id_: str, value: T) -> None:
        """Store the value of a new id; empty values are skipped."""
        if value:
            self._positions[id_] = len(self._values)
            self._values.append(value)

    def __getitem__(self, id_: str) -> T:
        return self._values[self._positions[id_]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)
