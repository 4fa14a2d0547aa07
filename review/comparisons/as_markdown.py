"""A comparison as a Markdown summary, short enough for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from django.utils.translation import gettext as _

from review.comparisons.difference import RunDifference
from review.comparisons.verdict_sentences import p_text, sentences
from review.comparisons.versions import differing_versions
from review.comparisons.whole import Comparison
from review.reports.as_markdown import cells, escaped, gate_block, table
from review.reports.entries import NOTHING, Output
from review.reports.figure import Figure, why_withheld
from review.reports.gate import Gate, gate_line
from review.reports.report import Report
from review.reports.sections import OVERALL
from review.statistics.paired_tests.paired import PairedDifference


def comparison_markdown(found: Comparison, gates: Mapping[int, Gate]) -> str:
    """The gates first, then what is said of each run against the first, scores side by side, what differs between the
    runs, and the differences metric by metric."""
    return "\n".join(_lines(found, gates)).rstrip() + "\n"


def _lines(found: Comparison, gates: Mapping[int, Gate]) -> Iterator[str]:
    for run, gate in gates.items():
        yield from gate_block(gate, gate_line(gate, run))
    reports = [side.report for side in found.sides]
    yield f"### {_('Comparison')}"
    yield ""
    for one in found.differences:
        yield from (f"- {escaped(sentence)}" for sentence in sentences(one))
    yield ""
    yield from _side_by_side(reports)
    if differing := differing_versions(reports):
        yield "> ⚠️ " + _("Not the same, so not comparable as it stands")
        yield ""
        runs = [_named(report) for report in reports]
        rows = [[escaped(kind), *map(escaped, values)] for kind, values in differing.items()]
        yield from table((_("what"), *runs), rows)
    for one in found.differences:
        yield from _difference(one)


def _side_by_side(reports: Sequence[Report]) -> Iterator[str]:
    scores = OVERALL.entries(Output.MARKDOWN)
    yield from table(
        (_("run"), _("system"), _("state"), *(str(one.title) for one in scores)),
        (
            (str(one.header.run_id), escaped(one.header.system), escaped(one.header.state), *cells(scores, one))
            for one in reports
        ),
    )


def _difference(one: RunDifference) -> Iterator[str]:
    title = _("Run %(run)s minus run %(baseline)s, judge-only scores of the same questions")
    yield "#### " + title % {"run": one.run_id, "baseline": one.baseline_id}
    yield ""
    rows = [(f"**{_('overall')}**", *_paired(one.overall), NOTHING, _corrected(one.corrected))]
    rows += [
        (escaped(line.name), *_paired(line.paired), p_text(line.p_holm), _corrected(line.corrected))
        for line in one.metrics
    ]
    header = (_("figure"), _("difference"), _("95% interval"), "p", _("p, Holm"), _("corrected difference"))
    yield from table(header, rows)


def _paired(one: PairedDifference | None) -> tuple[str, str, str]:
    if one is None:
        return NOTHING, NOTHING, NOTHING
    interval = NOTHING if one.low is None or one.high is None else f"{one.low:+.3f} – {one.high:+.3f}"
    return f"{one.value:+.3f}", interval, p_text(one.p_value)


def _corrected(figure: Figure) -> str:
    if figure.value is None:
        return escaped(why_withheld(figure))
    return f"{figure.value:+.3f}" + ("" if figure.low is None else f" ({figure.low:+.3f} – {figure.high:+.3f})")


def _named(report: Report) -> str:
    return f"{_('run')} {report.header.run_id}"
