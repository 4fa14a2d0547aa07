"""A comparison in a file format; the ending of the file chooses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from evaluation.files.formats import Exports
from evaluation.files.whole import write_whole
from review.comparisons.as_junit import comparison_junit
from review.comparisons.as_markdown import comparison_markdown
from review.comparisons.whole import Comparison, comparison_json
from review.reports.gate import Gate

Gates = Mapping[int, Gate]


def _json(found: Comparison, gates: Gates) -> Iterator[bytes]:
    yield json.dumps(comparison_json(found, gates), ensure_ascii=False, allow_nan=False, indent=2).encode()


def _markdown(found: Comparison, gates: Gates) -> Iterator[bytes]:
    yield comparison_markdown(found, gates).encode()


def _junit(found: Comparison, gates: Gates) -> Iterator[bytes]:
    yield comparison_junit(found, gates)


COMPARISON_EXPORTS = Exports("a comparison", {"json": _json, "md": _markdown, "junit": _junit})


def export_comparison(found: Comparison, gates: Gates, path: Path) -> None:
    """Write the comparison with the gates of its runs; the file appears whole or not at all.

    :raises UnknownName: for an unknown ending.
    :raises OSError: where the file cannot be written.
    """
    write_whole(path, COMPARISON_EXPORTS.write(COMPARISON_EXPORTS.format_of(path), "comparison", found, gates).chunks)
