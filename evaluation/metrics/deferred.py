"""Parts of a result that are made when somebody reads them: places and tiers cost more than the figure they explain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

T = TypeVar("T")


class DeferredSequence(Sequence[T]):
    """A sequence that is made on first reading, and equal to any sequence with the same items."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], tuple[T, ...]]) -> None:
        self._make = make
        self._made: tuple[T, ...] | None = None

    @property
    def _items(self) -> tuple[T, ...]:
        if self._made is None:
            self._made = self._make()
        return self._made

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == tuple(other)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


class DeferredMapping(Mapping[str, Any]):
    """A mapping that is made on first reading."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make
        self._made: Mapping[str, Any] | None = None

    @property
    def _content(self) -> Mapping[str, Any]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __repr__(self) -> str:
        return repr(self._content)
