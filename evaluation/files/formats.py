"""The formats that files are written in, each listed once, and how a thing says which of them it can be written in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, ParamSpec

from evaluation.core.errors import UnknownName

Of = ParamSpec("Of")


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """A format: its name in addresses and REST, the ending of its files, its media type."""

    name: str
    ending: str
    media_type: str


FORMATS = {
    one.name: one
    for one in (
        ExportFormat("json", "json", "application/json"),
        ExportFormat("jsonl", "jsonl", "application/x-ndjson"),
        ExportFormat("csv", "csv", "text/csv; charset=utf-8"),
        ExportFormat("xlsx", "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ExportFormat("html", "html", "text/html; charset=utf-8"),
        ExportFormat("junit", "xml", "application/xml"),
        ExportFormat("md", "md", "text/markdown; charset=utf-8"),
        ExportFormat("label_studio", "json", "application/json"),
        ExportFormat("label_studio_config", "xml", "application/xml"),
    )
}


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file as bytes, a part at a time, under a suggested name."""

    file_name: str
    media_type: str
    chunks: Iterator[bytes]


class Exports(Generic[Of]):
    """What a thing can be written as: for each of its formats, by name, the function that writes it. ``about`` tells
    in refusals what it is, with its article."""

    def __init__(self, about: str, writers: Mapping[str, Callable[Of, Iterator[bytes]]]) -> None:
        self.about = about
        self._writers = dict(writers)

    @property
    def names(self) -> list[str]:
        """The names of its formats, in order."""
        return list(self._writers)

    @property
    def endings(self) -> dict[str, str]:
        """The ending of files -> the name of the format."""
        return {FORMATS[name].ending: name for name in self._writers}

    def checked(self, name: str) -> str:
        """The name of one of its formats.

        :raises UnknownName: for any other.
        """
        if name not in self._writers:
            raise UnknownName(f"{self.about.partition(' ')[2]} format", name, self.names)
        return name

    def format_of(self, path: Path) -> str:
        """The format that a file's ending names.

        :raises UnknownName: for an ending that no format has.
        """
        ending = path.suffix.removeprefix(".").lower()
        if ending not in self.endings:
            raise UnknownName(f"ending of {self.about}", ending, list(self.endings))
        return self.endings[ending]

    def write(self, name: str, stem: str, *args: Of.args, **kwargs: Of.kwargs) -> ExportFile:
        """The file of a format; ``stem`` is its name without the ending.

        :raises UnknownName: for a format that it does not have.
        """
        known = FORMATS[self.checked(name)]
        return ExportFile(f"{stem}.{known.ending}", known.media_type, self._writers[name](*args, **kwargs))


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file that appears whole or not at all.

    :raises OSError: where it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with unfinished.open("wb") as file:
            file.writelines(chunks)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
