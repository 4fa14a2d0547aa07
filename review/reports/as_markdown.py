"""A report as a Markdown summary, short enough for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from django.utils.translation import gettext as _

from evaluation.messages.sentences import explain_doubt
from review.charts.forest import Shape
from review.reports.entries import NOTHING, Entry, Output, Row
from review.reports.figure import Figure, why_withheld
from review.reports.gate import Gate, gate_line, gate_reasons
from review.reports.licence_words import licence_reason, licence_state
from review.reports.report import Report
from review.reports.sections import (
    ANSWERS,
    BY_CATEGORY,
    COVERAGE,
    METRICS,
    OVERALL,
    RUN,
    ToldAnswer,
    facts_of,
    figures_of,
)
from review.reports.verdict import verdict_of, why_no_headline
from review.statistics.paired_tests.gate import GateVerdict

SIGNS = {GateVerdict.PASSED: "✅", GateVerdict.FAILED: "❌", GateVerdict.UNDECIDED: "⚠️"}
WORST = 5
LONGEST = 120
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&])")


def markdown_summary(report: Report, gate: Gate | None) -> str:
    """The gate first, then the verdict, the three overall scores, metrics, categories, and the worst answers."""
    return "\n".join(_lines(report, gate)).rstrip() + "\n"


def _lines(report: Report, gate: Gate | None) -> Iterator[str]:
    header = report.header
    if gate is not None:
        yield from gate_block(gate, gate_line(gate))
    yield f"### {escaped(header.name)}"
    yield ""
    about = [header.question_set, header.system, header.profile, ", ".join(header.judges) or _("no judge")]
    about += [f"{one.title}: {one.text(value)}" for one, value in facts_of(RUN, report, Output.MARKDOWN)]
    yield " · ".join(escaped(one) for one in about)
    for sentence in verdict_of(report).sentences:
        yield ""
        yield escaped(sentence)
    if header.baseline_judged:
        yield ""
        yield _("The judge is the offline baseline: it compares words and understands nothing.")
    if header.reason:
        yield ""
        yield "> " + escaped(why_no_headline(report))
    for doubt in report.doubts:
        yield ""
        yield "> ⚠️ " + escaped(explain_doubt(doubt.code, doubt.params))
    for licence in report.licences:
        yield ""
        said = _("Licence of %(judge)s on %(metric)s: %(state)s.") % {
            "judge": licence.judge,
            "metric": licence.metric,
            "state": licence_state(licence),
        }
        yield "> " + escaped(f"{said} {licence_reason(licence)}")
    if report.removed:
        names = ", ".join(one.question_id for one in report.removed)
        yield ""
        yield "> " + escaped(f"{_('Taken out of all means, because a lead upheld a flag:')} {names}")
    yield ""
    yield from _overall(report)
    yield from _metrics(report)
    yield from _categories(report)
    yield from _worst(report)


def gate_block(gate: Gate, line: str) -> Iterator[str]:
    """The gate's line with the sign of its verdict, then its reasons."""
    yield f"**{SIGNS[gate.verdict]} {line}**"
    yield ""
    yield from (f"- {escaped(reason)}" for reason in gate_reasons(gate))
    yield ""


def _overall(report: Report) -> Iterator[str]:
    notes = {
        Shape.CORRECTED: _("parts were rated by nobody")
        if report.overall.corrected.partly_corrected
        else _("what experts would say of all answers"),
        Shape.EXPERT: _("experts where they rated"),
        Shape.JUDGE: _("variation over questions, not judge error"),
    }
    rows = [
        (f"**{one.title}**", value_cell(figure), interval_cell(figure), notes.get(one.mark, "") if one.mark else "")
        for one, figure in figures_of(report, Output.MARKDOWN)
    ]
    facts = facts_of(OVERALL, report, Output.MARKDOWN)
    rows += [(f"**{escaped(str(one.title))}**", escaped(one.text(value)), NOTHING, "") for one, value in facts]
    yield from table((_("overall score"), _("value"), _("95% interval, questions like these"), ""), rows)
    overall = report.overall
    answers = {"reviewed": overall.reviewed_answers, "answers": overall.answers}
    yield _("%(reviewed)s of %(answers)s answers reviewed by experts.") % answers
    yield ""


def _metrics(report: Report) -> Iterator[str]:
    columns = [*METRICS.entries(Output.MARKDOWN), *COVERAGE.entries(Output.MARKDOWN)]
    rows = ((escaped(line.report_name), *cells(columns, line)) for line in report.metrics)
    yield from table((_("metric"), *(escaped(str(one.title)) for one in columns)), rows)


def _categories(report: Report) -> Iterator[str]:
    if columns := BY_CATEGORY.entries(Output.MARKDOWN):
        rows = ((escaped(line.name) or NOTHING, *cells(columns, line)) for line in report.categories)
        yield from table((_("category"), *(escaped(str(one.title)) for one in columns)), rows)


def cells(columns: Sequence[Entry[Row]], row: Row) -> list[str]:
    """What entries say of a row: a figure's value or why there is none, anything else as text."""
    values = ((one, one.of(row)) for one in columns)
    return [value_cell(value) if isinstance(value, Figure) else escaped(one.text(value)) for one, value in values]


def _worst(report: Report) -> Iterator[str]:
    if not report.worst:
        return
    yield "<details><summary>" + _("Worst answers") + "</summary>"
    yield ""
    for line in report.worst[:WORST]:
        text = " ".join(line.answer.question.split())
        short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        told = ToldAnswer(line)
        first, *others = ((one, one.text(one.of(told), 2)) for one in ANSWERS.entries(Output.MARKDOWN))
        said = [f"{first[1]} {escaped(short)} ({escaped(line.answer.question_id)})"]
        said += [escaped(f"{one.title} {text}") for one, text in others]
        yield "- " + " · ".join(said)
    yield ""
    yield "</details>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of cells that are Markdown already."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def value_cell(figure: Figure) -> str:
    """A figure's value to three decimals, or why there is none."""
    if figure.value is None:
        return f"– {escaped(why_withheld(figure))}" if figure.n or figure.extra else "–"
    return f"{figure.value:.3f}"


def interval_cell(figure: Figure) -> str:
    """A figure's 95% interval, or a dash."""
    return "–" if figure.low is None or figure.high is None else f"{figure.low:.3f} – {figure.high:.3f}"


def escaped(text: str) -> str:
    """Text in which nothing is Markdown, HTML or a mention."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("@", "@\N{ZERO WIDTH SPACE}")
