"""A comparison in a file format; the ending of the file chooses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from evaluation.core.errors import UnknownName
from evaluation.files.whole import write_whole
from review.comparisons.as_junit import comparison_junit
from review.comparisons.as_markdown import comparison_markdown
from review.comparisons.whole import Comparison, comparison_json
from review.reports.gate import Gate

Gates = Mapping[int, Gate]


def _json(found: Comparison, gates: Gates) -> bytes:
    return json.dumps(comparison_json(found, gates), ensure_ascii=False, allow_nan=False, indent=2).encode()


def _markdown(found: Comparison, gates: Gates) -> bytes:
    return comparison_markdown(found, gates).encode()


COMPARISON_FORMATS: dict[str, Callable[[Comparison, Gates], bytes]] = {
    "json": _json,
    "md": _markdown,
    "xml": comparison_junit,
}


def comparison_format(path: Path) -> Callable[[Comparison, Gates], bytes]:
    """How a file of this ending is written.

    :raises UnknownName: for an ending that no format has.
    """
    ending = path.suffix.removeprefix(".").lower()
    if ending not in COMPARISON_FORMATS:
        raise UnknownName("ending of a comparison", ending, list(COMPARISON_FORMATS))
    return COMPARISON_FORMATS[ending]


def export_comparison(found: Comparison, gates: Gates, path: Path) -> None:
    """Write the comparison with the gates of its runs; the file appears whole or not at all.

    :raises UnknownName: for an unknown ending.
    :raises OSError: where the file cannot be written.
    """
    write_whole(path, [comparison_format(path)(found, gates)])
