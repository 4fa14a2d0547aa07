"""A report as a Markdown summary, short enough for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from django.utils.translation import gettext as _

from evaluation.wording.messages import explain_doubt, explain_reason
from review.reports.figure import Figure
from review.reports.figure_notes import why_withheld
from review.reports.gate import Gate, gate_line, gate_reasons
from review.reports.report import Report
from review.statistics.paired_tests.gate import GateVerdict

SIGNS = {GateVerdict.PASSED: "✅", GateVerdict.FAILED: "❌", GateVerdict.CANNOT_TELL: "⚠️"}
WORST = 5
LONGEST = 120
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&])")


def markdown_summary(report: Report, gate: Gate | None) -> str:
    """The gate first, then the three overall scores, metrics, categories, and the worst answers."""
    return "\n".join(_lines(report, gate)).rstrip() + "\n"


def _lines(report: Report, gate: Gate | None) -> Iterator[str]:
    header = report.header
    if gate is not None:
        yield from gate_block(gate, gate_line(gate))
    yield f"### {escaped(header.name)}"
    yield ""
    about = [header.question_set, header.system, header.profile, ", ".join(header.judges) or _("no judge")]
    yield " · ".join(escaped(one) for one in about)
    if header.baseline_judged:
        yield ""
        yield _("The judge is the offline baseline: it compares words and understands nothing.")
    if header.reason:
        yield ""
        yield "> " + escaped(explain_reason(header.reason))
    for doubt in report.doubts:
        yield ""
        yield "> ⚠️ " + escaped(explain_doubt(doubt.code, doubt.params))
    if report.removed:
        names = ", ".join(one.question_id for one in report.removed)
        yield ""
        yield "> " + escaped(f"{_('Taken out of all means, because a lead upheld a flag:')} {names}")
    yield ""
    yield from _overall(report)
    yield from _metrics(report)
    yield from _worst(report)


def gate_block(gate: Gate, line: str) -> Iterator[str]:
    """The gate's line with the sign of its verdict, then its reasons."""
    yield f"**{SIGNS[gate.verdict]} {line}**"
    yield ""
    yield from (f"- {escaped(reason)}" for reason in gate_reasons(gate))
    yield ""


def _overall(report: Report) -> Iterator[str]:
    overall = report.overall
    rows = [
        (_("corrected"), overall.corrected, _("what experts would say of all answers")),
        (_("reviewed"), overall.reviewed, _("experts where they rated")),
        (_("judge only"), overall.judge_only, _("variation over questions, not judge error")),
    ]
    yield from table(
        (_("overall score"), _("value"), _("95% interval"), ""),
        ((f"**{name}**", value_cell(figure), interval_cell(figure), note) for name, figure, note in rows),
    )
    answers = {"reviewed": overall.reviewed_answers, "answers": overall.answers}
    yield _("%(reviewed)s of %(answers)s answers reviewed by experts.") % answers
    yield ""


def _metrics(report: Report) -> Iterator[str]:
    yield from table(
        (_("metric"), _("judge only"), _("reviewed"), _("corrected"), _("scored"), _("failed")),
        (
            (
                *(
                    escaped(line.report_name),
                    value_cell(line.judge_only),
                    value_cell(line.reviewed),
                    value_cell(line.corrected),
                ),
                *(str(line.coverage.scored), str(line.coverage.failed)),
            )
            for line in report.metrics
        ),
    )


def _worst(report: Report) -> Iterator[str]:
    if not report.worst:
        return
    yield "<details><summary>" + _("Worst answers") + "</summary>"
    yield ""
    for line in report.worst[:WORST]:
        text = " ".join(line.answer.question.split())
        short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
        yield f"- {line.score or 0.0:.2f} {escaped(short)} ({escaped(line.answer.question_id)})"
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
