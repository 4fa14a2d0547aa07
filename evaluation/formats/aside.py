"""What was read of a file, in a temporary file until everything is checked: memory does not grow with it."""

from __future__ import annotations

import pickle  # for values that this process keeps aside, and no other reads
from array import array
from collections.abc import Iterator, Mapping, Sequence
from tempfile import TemporaryFile
from typing import TypeVar, overload

T = TypeVar("T")


class KeptAside(Sequence[T]):
    """Values in a temporary file, in the order they were added; each is read when it is asked for."""

    def __init__(self) -> None:
        self._file, self._places = TemporaryFile(), array("q")  # noqa: SIM115 -- closed with the last reference

    def append(self, value: T) -> None:
        """Add a value."""
        self._places.append(self._file.tell())
        pickle.dump(value, self._file, pickle.HIGHEST_PROTOCOL)

    def close(self) -> None:
        """Drop the file, which the last reference does as well."""
        self._file.close()

    __del__ = close

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        """The value there, or a list of those there."""
        if isinstance(place, slice):
            return [self[one] for one in range(len(self))[place]]
        self._file.seek(self._places[place])
        return pickle.load(self._file)  # type: ignore[no-any-return]  # noqa: S301 -- written above, by this process


class AsideById(Mapping[str, T]):
    """Values by ids, those that say nothing left out."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._values = KeptAside[T]()

    def add(self, id_: str, value: T) -> None:
        """Keep the value of an id that has none yet."""
        if value:
            self._places[id_] = len(self._values)
            self._values.append(value)

    def __getitem__(self, id_: str) -> T:
        """The value."""
        return self._values[self._places[id_]]

    def __iter__(self) -> Iterator[str]:
        """The ids."""
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
