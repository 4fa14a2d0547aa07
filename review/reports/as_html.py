"""A report as one HTML file that needs nothing else: for mail, archives, and readers without an account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils.translation import get_language, gettext

from evaluation.profiles.arithmetic import Label
from evaluation.wording.categories import category_name
from evaluation.wording.markdown import language_of
from evaluation.wording.messages import explain_reason
from review.charts import forest as charts
from review.reports.category_tables import CategoryTable, category_tables
from review.reports.figure import Figure
from review.reports.figure_notes import notes, why_withheld
from review.reports.gate import Gate, gate_line, gate_reasons
from review.reports.provenance import Versioned
from review.reports.report import AnswerLine, CategoryLine, MetricLine, Report

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of texts under its name."""

    name: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An answer with its effective values, a star at those that people gave."""

    question_id: str
    category: str
    question: str
    language: str
    answer: str
    score: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HtmlReport:
    """Everything that ``review/report_file.html`` shows."""

    language: str
    title: str
    about: tuple[tuple[str, str], ...]
    gate: str
    gate_reasons: tuple[str, ...]
    reason: str
    overall: charts.Forest
    metric_forest: charts.Forest | None
    pictures: str
    metrics: tuple[Row, ...]
    columns: tuple[str, ...]
    categories: tuple[Row, ...]
    category_tables: tuple[tuple[str, tuple[Row, ...]], ...]
    overall_notes: tuple[str, ...]
    answers: tuple[AnswerRow, ...]
    provenance: tuple[tuple[str, str], ...]


def html_report(report: Report, texts: Mapping[int, str], gate: Gate | None, pictures: str = "") -> str:
    """The file's text; ``texts`` are the answers' by id, ``pictures`` the plots of agreement as safe HTML."""
    header, language = report.header, "ko" if (get_language() or "en").startswith("ko") else "en"
    shown = [line for line in report.metrics if line.latency is None]
    page = HtmlReport(
        language=language,
        title=header.name,
        about=tuple(_about(report)),
        gate=gate_line(gate) if gate else "",
        gate_reasons=tuple(gate_reasons(gate)) if gate else (),
        reason=explain_reason(header.reason) if header.reason else "",
        overall=_overall(report),
        metric_forest=_metrics_drawn(shown, language),
        pictures=pictures,
        metrics=tuple(_metric(line, language) for line in report.metrics),
        columns=tuple(line.title.in_language(language) for line in shown),
        categories=tuple(_category(line, shown) for line in report.categories),
        category_tables=tuple(_three(table) for table in category_tables(report, language)),
        overall_notes=tuple(
            notes(report.overall.corrected, {one.name: one.title.in_language(language) for one in shown})
        ),
        answers=tuple(_answer(line, shown, texts) for line in report.answers),
        provenance=tuple(_provenance(report)),
    )
    return render_to_string("review/report_file.html", {"page": page})


def _about(report: Report) -> Iterator[tuple[str, str]]:
    header = report.header
    judges = ", ".join(header.judges) or gettext("none")
    yield gettext("system"), header.system
    yield gettext("questions"), header.question_set
    yield gettext("profile"), header.profile
    yield gettext("judge"), f"{judges} ({gettext('offline baseline')})" if header.baseline_judged else judges
    yield gettext("answers"), str(header.answers)
    yield gettext("reviewed by experts"), str(report.overall.reviewed_answers)


def _overall(report: Report) -> charts.Forest:
    overall = report.overall
    rows = [
        _row(gettext("Corrected"), charts.Shape.CORRECTED, overall.corrected),
        _row(gettext("Reviewed"), charts.Shape.EXPERT, overall.reviewed),
        _row(gettext("Judge only"), charts.Shape.JUDGE, overall.judge_only),
    ]
    if overall.part_only is not None:
        title = gettext("Rules only") if overall.label is Label.RULES_ONLY else gettext("Parts only")
        rows.append(_row(f"{title} ({overall.weight:.2f})", charts.Shape.PLAIN, overall.part_only))
    return charts.forest(rows)


def _row(label: str, shape: charts.Shape, figure: Figure) -> charts.ForestRow:
    if figure.value is None:
        return charts.ForestRow(label, shape, None, withheld=why_withheld(figure))
    return charts.ForestRow(label, shape, charts.Figure(figure.value, figure.low, figure.high))


def _metrics_drawn(lines: Sequence[MetricLine], language: str) -> charts.Forest | None:
    """Every metric with a mean on one axis, as a share of its scale: corrected where it is, else reviewed, else as it
    came; ``None`` where no metric has one."""
    rows = [row for line in lines if (row := _metric_drawn(line, line.title.in_language(language))) is not None]
    return charts.forest(rows) if rows else None


def _metric_drawn(line: MetricLine, title: str) -> charts.ForestRow | None:
    choices = (
        (charts.Shape.CORRECTED, line.corrected, gettext("corrected")),
        (charts.Shape.EXPERT, line.reviewed if line.rated else None, gettext("reviewed")),
        (charts.Shape.JUDGE if line.kind == "judge" else charts.Shape.PLAIN, line.judge_only, gettext("as it came")),
    )
    low, width = line.scale.low, line.scale.width
    for shape, figure, note in choices:
        if figure is None or figure.value is None or width <= 0:
            continue
        ends = (None if v is None else (v - low) / width for v in (figure.low, figure.high))
        return charts.ForestRow(title, shape, charts.Figure((figure.value - low) / width, *ends), note=note)
    return None


def _metric(line: MetricLine, language: str) -> Row:
    title = f"{line.title.in_language(language)} ({line.scale})"
    counts = (line.coverage.scored, line.coverage.failed, line.coverage.not_applicable)
    figures = (_figure(line.judge_only), _figure(line.reviewed), _figure(line.corrected))
    return Row(title, (*figures, *map(str, counts)))


def _category(line: CategoryLine, shown: Sequence[MetricLine]) -> Row:
    means = [line.metrics[one.name][0] if one.name in line.metrics else None for one in shown]
    texts = (NOTHING if figure is None or figure.value is None else f"{figure.value:.2f}" for figure in means)
    return Row(category_name(line.name) or NOTHING, (str(line.answers), *texts))


def _three(table: CategoryTable) -> tuple[str, tuple[Row, ...]]:
    rows = (
        Row(
            category_name(one.name) or NOTHING,
            (str(one.answers), _figure(one.judge_only), _figure(one.reviewed), _figure(one.corrected)),
        )
        for one in table.rows
    )
    return table.title, tuple(rows)


def _answer(line: AnswerLine, shown: Sequence[MetricLine], texts: Mapping[int, str]) -> AnswerRow:
    answer = line.answer
    return AnswerRow(
        question_id=answer.question_id,
        category=category_name(answer.category),
        question=answer.question,
        language=language_of(answer.question),
        answer=texts.get(answer.answer_id, ""),
        score=NOTHING if line.score is None else f"{line.score:.2f}",
        values=tuple(_value(line, one.name) for one in shown),
    )


def _value(line: AnswerLine, name: str) -> str:
    found = line.values.get(name)
    said = None if found is None else found.label if found.value is None else found.value
    if found is None or said is None:
        return NOTHING
    text = said if isinstance(said, str) else f"{said:g}" if said == round(said, 2) else f"{said:.2f}"
    return f"{text} *" if found.human else text


def _figure(figure: Figure) -> str:
    if figure.value is None:
        return why_withheld(figure)
    ends = "" if figure.low is None or figure.high is None else f" ({figure.low:.2f} – {figure.high:.2f})"
    return f"{figure.value:.2f}{ends}"


def _provenance(report: Report) -> Iterator[tuple[str, str]]:
    found = report.provenance
    yield gettext("questions"), _version(found.question_set)
    yield gettext("system"), _version(found.system)
    yield gettext("profile"), _version(found.profile)
    yield gettext("run"), f"#{found.run_id}, seed {found.seed}, k {found.k}, {found.config_hash}"
    for judge in found.judges:
        rubric = f"{judge.rubric.name} v{judge.rubric.version} ({judge.language})"
        yield gettext("judge"), f"{judge.judge.name} v{judge.judge.version} {judge.model} · {rubric}"
    if found.embeddings:
        yield gettext("embeddings"), f"{found.embeddings.model} {found.embeddings.endpoint or found.embeddings.sha256}"
    if found.token_model:
        yield "BERTScore", f"{found.token_model.sha256}, layer {found.token_model.layer}"
    for draw in found.draws:
        yield gettext("draw"), f"{draw.strategy}, seed {draw.seed}, {draw.sampled} / {draw.frame}"
    yield "Concord", found.product_version


def _version(one: Versioned) -> str:
    return f"{one.name} v{one.version} {one.content_hash}"
