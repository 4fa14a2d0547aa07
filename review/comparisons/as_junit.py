"""A comparison as JUnit XML: a suite for each run, with the rules of its gate."""

from __future__ import annotations

from collections.abc import Mapping

from review.comparisons.choosing import Side
from review.comparisons.verdict_sentences import sentences
from review.comparisons.whole import Comparison
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
