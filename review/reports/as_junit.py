"""A report as JUnit XML: the gate's rules and the run's metrics as test cases.

The output is valid against the schemas of Ant and Jenkins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from django.utils.translation import gettext as _

from evaluation.messages.explanations import explain_reason
from review.reports.entries import Output
from review.reports.figure import Figure
from review.reports.gate import Gate, GateCheck, check_reason, check_title, gate_line, gate_reasons
from review.reports.lines import MetricLine
from review.reports.report import Report
from review.reports.sections import METRICS, REPORT, RUN
from review.statistics.paired_tests.gate import GateVerdict

#: Characters that XML 1.0 cannot hold, whatever is done with them.
_FORBIDDEN = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# The schema requires a host name; the real one is private.
HOST = "localhost"


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """A test case. ``kind`` is ``failure``, ``error``, ``skipped``, or empty if it passed."""

    name: str
    kind: str = ""
    type: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class JUnitSuite:
    """Test cases of one run. ``has_header`` adds the run's duration and figures."""

    report: Report
    name: str
    cases: Sequence[JUnitCase]
    output: str = ""
    has_header: bool = True


def junit_xml(report: Report, gate: Gate | None) -> bytes:
    """One document with two suites: ``gate`` (``run`` without a gate) and ``metrics``."""
    output = gate_text(gate) if gate else ""
    metrics = [_metric_case(line) for line in report.metrics]
    return junit_document(
        [
            JUnitSuite(report, "gate" if gate else "run", gate_cases(report, gate), output),
            JUnitSuite(report, "metrics", metrics, has_header=False),
        ]
    )


def junit_document(suites: Sequence[JUnitSuite]) -> bytes:
    root = Element("testsuites")
    for number, suite in enumerate(suites):
        _suite(root, number, suite)
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def gate_text(gate: Gate, run: int | None = None) -> str:
    """Gate result with a line for each reason. ``run`` identifies the run among several."""
    return "\n".join([gate_line(gate, run), *gate_reasons(gate)])


def gate_cases(report: Report, gate: Gate | None) -> list[JUnitCase]:
    """Test cases for the run's completeness and each rule of the gate."""
    header = report.header
    complete = JUnitCase("run complete")
    if not header.complete:
        reason = header.reason or "not_finished"
        complete = JUnitCase("run complete", "error", reason.partition(":")[0], explain_reason(reason))
    if gate is None:
        return [complete]
    unapproved = [
        JUnitCase(_("approval for %(metric)s") % {"metric": name}, "failure", "unapproved", _("No valid approval."))
        for name in gate.unapproved
    ]
    return [complete, *(_check_case(check, allow_undecided=gate.allow_undecided) for check in gate.checks), *unapproved]


def _check_case(check: GateCheck, *, allow_undecided: bool) -> JUnitCase:
    """A check fails its test case if it fails the gate. An allowed undecided check is skipped."""
    if check.verdict is GateVerdict.PASSED:
        return JUnitCase(check_title(check))
    kind = "skipped" if check.verdict is GateVerdict.UNDECIDED and allow_undecided else "failure"
    return JUnitCase(check_title(check), kind, str(check.verdict), check_reason(check))


def _metric_case(line: MetricLine) -> JUnitCase:
    """A metric fails if failed results leave it without a figure."""
    figure = line.judge_only
    if figure.withheld and line.coverage.failed:
        return JUnitCase(
            line.name, "error", "failed", f"{line.coverage.failed} failed; {explain_reason(figure.withheld)}"
        )
    return (
        JUnitCase(line.name)
        if not figure.withheld
        else JUnitCase(line.name, "skipped", "", explain_reason(figure.withheld))
    )


def _suite(root: Element, number: int, definition: JUnitSuite) -> None:
    report = definition.report
    kinds = [case.kind for case in definition.cases]
    started = report.header.started_at or report.provenance.created_at
    finished = report.header.finished_at or started
    suite = SubElement(
        root,
        "testsuite",
        {
            "id": str(number),
            "name": definition.name,
            "package": f"concord.run-{report.header.run_id}",
            "timestamp": started.strftime("%Y-%m-%dT%H:%M:%S"),
            "hostname": HOST,
            "tests": str(len(definition.cases)),
            "failures": str(kinds.count("failure")),
            "errors": str(kinds.count("error")),
            "skipped": str(kinds.count("skipped")),
            "time": f"{max(0.0, (finished - started).total_seconds()) if definition.has_header else 0.0:.3f}",
        },
    )
    properties = SubElement(suite, "properties")
    for key, value in _properties(report).items() if definition.has_header else ():
        SubElement(properties, "property", {"name": _clean(key), "value": _clean(value)})
    for case in definition.cases:
        _write(suite, case, f"concord.run-{report.header.run_id}.{definition.name}")
    SubElement(suite, "system-out").text = _clean(definition.output)
    SubElement(suite, "system-err").text = ""


def _write(suite: Element, case: JUnitCase, classname: str) -> None:
    element = SubElement(suite, "testcase", {"name": _clean(case.name), "classname": classname, "time": "0.000"})
    if case.kind:
        facts = {"message": _clean(case.message)} | (
            {} if case.kind == "skipped" else {"type": _clean(case.type or case.kind)}
        )
        SubElement(element, case.kind, facts).text = _clean(case.message)


def _properties(report: Report) -> dict[str, str]:
    """Facts of the run by name, figures by section and name, and metrics by their name."""
    properties = {"run": str(report.header.run_id)}
    for path, value in REPORT.leaves(report, Output.JUNIT):
        section, *inner = path[1:]
        if section == METRICS.name:
            section, inner = "metric", [part for part in inner if part != "judge_only"]
        name = inner[0] if section == RUN.name else ".".join([section, *inner])
        properties[name] = _text(value)
    return properties


def _text(value: Any) -> str:
    if isinstance(value, Figure):
        text = value.withheld if value.value is None else value.text(4, "to")
        return text if value.low is None else f"{text} for {value.target}"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
