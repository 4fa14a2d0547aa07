"""A comparison in a file format; the ending of the file chooses. JUnit XML has a suite for each run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from evaluation.files.export import Exports, write_whole
from review.comparisons.as_markdown import comparison_markdown
from review.comparisons.choosing import Side
from review.comparisons.verdict_sentences import sentences
from review.comparisons.whole import Comparison, comparison_json
from review.reports.as_junit import Case, Suite, gate_cases, gate_text, junit_document
from review.reports.gate import Gate


def comparison_junit(found: Comparison, gates: Mapping[int, Gate]) -> bytes:
    """A suite for each run in order, the baseline first; what sets a run apart from the baseline is what its suite
    prints. Something fails in the file exactly where the gate of a run is not passed, as the exit code says."""
    said = {one.run_id: sentences(one) for one in found.differences}
    return junit_document([_suite(side, gates.get(side.run_id), said.get(side.run_id, [])) for side in found.sides])


def _suite(side: Side, gate: Gate | None, said: list[str]) -> Suite:
    cases = gate_cases(side.report, gate)
    if gate is None:
        cases = [Case(one.name, one.kind and "skipped", "", one.message) for one in cases]
    lines = [*([gate_text(gate, side.run_id)] if gate else []), *said]
    return Suite(side.report, f"{'gate' if gate else 'run'}-{side.run_id}", cases, "\n".join(lines))


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
