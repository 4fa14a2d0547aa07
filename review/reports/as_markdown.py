"""A report as a Markdown summary, short enough for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from django.utils.translation import gettext as _

from evaluation.messages.explanations import explain_judge_warning
from review.charts.forest import Shape
from review.reports.approval_words import approval_reason, approval_state
from review.reports.entries import DASH, Entry, Output, Row
from review.reports.figure import Figure, round_notes, withheld_reason
from review.reports.gate import Gate, gate_line, gate_reasons
from review.reports.report import Report
from review.reports.sections import (
    ANSWERS,
    BY_CATEGORY,
    COVERAGE,
    METRICS,
    OVERALL,
    RUN,
    AnswerDetail,
    overall_figures,
    section_facts,
)
from review.reports.verdict import missing_headline_reason, verdict_of
from review.statistics.paired_tests.gate import GateVerdict

SIGNS = {GateVerdict.PASSED: "✅", GateVerdict.FAILED: "❌", GateVerdict.UNDECIDED: "⚠️"}
WORST_COUNT = 5
MAX_QUESTION_CHARACTERS = 120
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&])")


def markdown_summary(report: Report, gate: Gate | None) -> str:
    """Render the gate, the verdict, overall scores, metrics, categories and the worst answers."""
    return "\n".join(_lines(report, gate)).rstrip() + "\n"


def _lines(report: Report, gate: Gate | None) -> Iterator[str]:
    header = report.header
    if gate is not None:
        yield from gate_block(gate, gate_line(gate))
    yield f"### {escape_markdown(header.name)}"
    yield ""
    facts = [header.question_set, header.system, header.profile, ", ".join(header.judges) or _("no judge")]
    facts += [f"{entry.title}: {entry.text(value)}" for entry, value in section_facts(RUN, report, Output.MARKDOWN)]
    yield " · ".join(escape_markdown(fact) for fact in facts)
    for sentence in verdict_of(report).sentences:
        yield ""
        yield escape_markdown(sentence)
    if header.baseline_judged:
        yield ""
        yield _(
            "This run was judged by the offline baseline, which only compares words. Don't rely on the "
            "judge-only score."
        )
    if header.reason:
        yield ""
        yield "> " + escape_markdown(missing_headline_reason(report))
    for judge_warning in report.doubts:
        yield ""
        yield "> ⚠️ " + escape_markdown(explain_judge_warning(judge_warning.code, judge_warning.params))
    for approval in report.approvals:
        yield ""
        approval_text = _("Approval of %(judge)s for %(metric)s: %(state)s.") % {
            "judge": approval.judge,
            "metric": approval.metric,
            "state": approval_state(approval),
        }
        yield "> " + escape_markdown(f"{approval_text} {approval_reason(approval)}")
    if report.removed:
        names = ", ".join(answer.question_id for answer in report.removed)
        yield ""
        yield "> " + escape_markdown(f"{_('Excluded from all means because a lead upheld a flag:')} {names}")
    yield ""
    yield from _overall(report)
    yield from _metrics(report)
    yield from _categories(report)
    yield from _worst(report)


def gate_block(gate: Gate, line: str) -> Iterator[str]:
    """Line of the gate with the sign of its verdict, then its reasons."""
    yield f"**{SIGNS[gate.verdict]} {line}**"
    yield ""
    yield from (f"- {escape_markdown(reason)}" for reason in gate_reasons(gate))
    yield ""


def _overall(report: Report) -> Iterator[str]:
    notes = {
        Shape.CORRECTED: _("some parts are not rated")
        if report.overall.corrected.partly_corrected
        else _("estimated expert score"),
        Shape.EXPERT: _("expert ratings, else judge"),
        Shape.JUDGE: _("variation over questions, not judge error"),
    }
    rows = [
        (
            f"**{entry.title}**",
            value_cell(figure),
            interval_cell(figure),
            notes.get(entry.mark, "") if entry.mark else "",
        )
        for entry, figure in overall_figures(report, Output.MARKDOWN)
    ]
    facts = section_facts(OVERALL, report, Output.MARKDOWN)
    rows += [
        (f"**{escape_markdown(str(entry.title))}**", escape_markdown(entry.text(value)), DASH, "")
        for entry, value in facts
    ]
    yield from table((_("overall score"), _("value"), _("95% CI, questions like these"), ""), rows)
    overall = report.overall
    answers = {"reviewed": overall.reviewed_answers, "answers": overall.answers}
    yield _("%(reviewed)s of %(answers)s answers reviewed by experts.") % answers
    yield ""
    if sentences := round_notes(overall.corrected):
        yield escape_markdown(" ".join(sentences))
        yield ""


def _metrics(report: Report) -> Iterator[str]:
    columns = [*METRICS.entries(Output.MARKDOWN), *COVERAGE.entries(Output.MARKDOWN)]
    rows = ((escape_markdown(line.report_name), *cells(columns, line)) for line in report.metrics)
    yield from table((_("metric"), *(escape_markdown(str(entry.title)) for entry in columns)), rows)


def _categories(report: Report) -> Iterator[str]:
    if columns := BY_CATEGORY.entries(Output.MARKDOWN):
        rows = ((escape_markdown(line.name) or DASH, *cells(columns, line)) for line in report.categories)
        yield from table((_("category"), *(escape_markdown(str(entry.title)) for entry in columns)), rows)


def cells(columns: Sequence[Entry[Row]], row: Row) -> list[str]:
    """Cells of a row: a figure's value or reason, otherwise text."""
    values = ((entry, entry.read(row)) for entry in columns)
    return [
        value_cell(value) if isinstance(value, Figure) else escape_markdown(entry.text(value))
        for entry, value in values
    ]


def _worst(report: Report) -> Iterator[str]:
    if not report.worst:
        return
    yield "<details><summary>" + _("Worst answers") + "</summary>"
    yield ""
    for line in report.worst[:WORST_COUNT]:
        text = " ".join(line.answer.question.split())
        short_question = text if len(text) <= MAX_QUESTION_CHARACTERS else f"{text[: MAX_QUESTION_CHARACTERS - 1]}…"
        detail = AnswerDetail(line)
        score_entry, *other_entries = (
            (entry, entry.text(entry.read(detail), 2)) for entry in ANSWERS.entries(Output.MARKDOWN)
        )
        parts = [f"{score_entry[1]} {escape_markdown(short_question)} ({escape_markdown(line.answer.question_id)})"]
        parts += [escape_markdown(f"{entry.title} {text}") for entry, text in other_entries]
        yield "- " + " · ".join(parts)
    yield ""
    yield "</details>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Render a table of Markdown cells."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def value_cell(figure: Figure) -> str:
    """A figure's value to three decimals, or the reason for its absence."""
    if figure.value is None:
        return f"– {escape_markdown(withheld_reason(figure))}" if figure.n or figure.extra else "–"
    return f"{figure.value:.3f}"


def interval_cell(figure: Figure) -> str:
    return "–" if figure.low is None or figure.high is None else f"{figure.low:.3f} – {figure.high:.3f}"


def escape_markdown(text: str) -> str:
    """Escape Markdown, HTML and mentions."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("@", "@\N{ZERO WIDTH SPACE}")
