"""A report as JUnit XML, for programs that show test results: the gate's rules and the run's metrics.

Valid against the schema of the Ant task and the one Jenkins uses: the first asks for more, the second for nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from django.utils.translation import gettext as _

from evaluation.messages.sentences import explain_reason
from review.reports.entries import Output
from review.reports.figure import Figure
from review.reports.gate import Check, Gate, check_reason, check_title, gate_line, gate_reasons
from review.reports.lines import MetricLine
from review.reports.report import Report
from review.reports.sections import METRICS, REPORT, RUN
from review.statistics.paired_tests.gate import GateVerdict

#: Characters that XML 1.0 cannot hold, whatever is done with them.
_FORBIDDEN = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HOST = "localhost"  # the schema wants a name; where a report was written is nobody's business


@dataclass(frozen=True, slots=True)
class Case:
    """A test case; ``kind`` is failure, error, skipped or empty where it passed."""

    name: str
    kind: str = ""
    type: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """Test cases about one run. ``said`` is what the suite prints; ``headed`` ones tell the run's time and figures."""

    report: Report
    name: str
    cases: Sequence[Case]
    said: str = ""
    headed: bool = True


def junit_xml(report: Report, gate: Gate | None) -> bytes:
    """The report as one document with two suites: ``gate`` (``run`` where no gate was asked for) and ``metrics``."""
    said = gate_text(gate) if gate else ""
    metrics = [_metric(one) for one in report.metrics]
    return junit_document(
        [
            Suite(report, "gate" if gate else "run", gate_cases(report, gate), said),
            Suite(report, "metrics", metrics, headed=False),
        ]
    )


def junit_document(suites: Sequence[Suite]) -> bytes:
    """The suites in their order as one XML file."""
    root = Element("testsuites")
    for number, suite in enumerate(suites):
        _suite(root, number, suite)
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def gate_text(gate: Gate, run: int | None = None) -> str:
    """What the gate says, a line for each reason; ``run`` names it among several."""
    return "\n".join([gate_line(gate, run), *gate_reasons(gate)])


def gate_cases(report: Report, gate: Gate | None) -> list[Case]:
    """Whether the run is complete, and each rule of the gate."""
    header = report.header
    complete = Case("run complete")
    if not header.complete:
        reason = header.reason or "not_finished"
        complete = Case("run complete", "error", reason.partition(":")[0], explain_reason(reason))
    if gate is None:
        return [complete]
    unlicensed = [
        Case(_("licence of %(metric)s") % {"metric": name}, "failure", "unlicensed", _("No licence that holds."))
        for name in gate.unlicensed
    ]
    return [complete, *(_check(check, allow_undecided=gate.allow_undecided) for check in gate.checks), *unlicensed]


def _check(check: Check, *, allow_undecided: bool) -> Case:
    """A check fails its test case where it fails the gate; one that may stay undecided is skipped."""
    if check.verdict is GateVerdict.PASSED:
        return Case(check_title(check))
    kind = "skipped" if check.verdict is GateVerdict.UNDECIDED and allow_undecided else "failure"
    return Case(check_title(check), kind, str(check.verdict), check_reason(check))


def _metric(line: MetricLine) -> Case:
    """A metric passes unless it has no figure because too much of it failed."""
    figure = line.judge_only
    if figure.withheld and line.coverage.failed:
        return Case(line.name, "error", "failed", f"{line.coverage.failed} failed; {explain_reason(figure.withheld)}")
    return Case(line.name) if not figure.withheld else Case(line.name, "skipped", "", explain_reason(figure.withheld))


def _suite(root: Element, number: int, made: Suite) -> None:
    report = made.report
    kinds = [case.kind for case in made.cases]
    began = report.header.started_at or report.provenance.created_at
    ended = report.header.finished_at or began
    suite = SubElement(
        root,
        "testsuite",
        {
            "id": str(number),
            "name": made.name,
            "package": f"concord.run-{report.header.run_id}",
            "timestamp": began.strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": HOST,
            "tests": str(len(made.cases)),
            "failures": str(kinds.count("failure")),
            "errors": str(kinds.count("error")),
            "skipped": str(kinds.count("skipped")),
            "time": f"{max(0.0, (ended - began).total_seconds()) if made.headed else 0.0:.3f}",
        },
    )
    properties = SubElement(suite, "properties")
    for key, value in _properties(report).items() if made.headed else ():
        SubElement(properties, "property", {"name": _clean(key), "value": _clean(value)})
    for case in made.cases:
        _write(suite, case, f"concord.run-{report.header.run_id}.{made.name}")
    SubElement(suite, "system-out").text = _clean(made.said)
    SubElement(suite, "system-err").text = ""


def _write(suite: Element, case: Case, classname: str) -> None:
    found = SubElement(suite, "testcase", {"name": _clean(case.name), "classname": classname, "time": "0.000"})
    if case.kind:
        facts = {"message": _clean(case.message)} | (
            {} if case.kind == "skipped" else {"type": _clean(case.type or case.kind)}
        )
        SubElement(found, case.kind, facts).text = _clean(case.message)


def _properties(report: Report) -> dict[str, str]:
    """Facts of the run under their names, figures under those of their sections; a metric's own figure under its
    name."""
    found = {"run": str(report.header.run_id)}
    for path, value in REPORT.leaves(report, Output.JUNIT):
        section, *inner = path[1:]
        if section == METRICS.name:
            section, inner = "metric", [one for one in inner if one != "judge_only"]
        name = inner[0] if section == RUN.name else ".".join([section, *inner])
        found[name] = _text(value)
    return found


def _text(value: Any) -> str:
    if isinstance(value, Figure):
        text = value.withheld if value.value is None else value.text(4, "to")
        return text if value.low is None else f"{text} for {value.target}"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
