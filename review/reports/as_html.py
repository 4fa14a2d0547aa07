"""A report as one HTML file that needs nothing else: for mail, archives, and readers without an account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.template.loader import render_to_string
from django.utils.text import capfirst
from django.utils.translation import get_language, gettext

from evaluation.messages.markdown import language_of
from evaluation.messages.sentences import category_name, explain_reason
from evaluation.profiles.arithmetic import Label
from review.charts import forest as charts
from review.reports.entries import NOTHING, Entry, Inner, Output, Section
from review.reports.figure import Figure, notes, why_withheld
from review.reports.gate import Gate, gate_line, gate_reasons
from review.reports.licence_words import licence_reason, licence_state
from review.reports.lines import AnswerLine, CategoryLine, MetricLine
from review.reports.provenance import Versioned
from review.reports.report import CategoryTable, Report, category_tables
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
    target_in_words,
)
from review.reports.verdict import verdict_of
from review.statistics.correction.outcome import Target

HERE = Output.HTML


Rows = list[tuple[str, tuple[str, ...]]]  # texts under their names


def html_report(report: Report, answers: Sequence[ToldAnswer], gate: Gate | None, pictures: str = "") -> str:
    """The file's text; ``pictures`` are the plots of agreement as safe HTML."""
    header, language = report.header, "ko" if (get_language() or "en").startswith("ko") else "en"
    shown = [line for line in report.metrics if line.latency is None]
    titles = {line.name: line.title.in_language(language) for line in shown}
    of_metric = [*METRICS.entries(HERE), *COVERAGE.entries(HERE)]
    page = {
        "language": language,
        "title": header.name,
        "about": _facts(RUN, report),
        "gate": gate_line(gate) if gate else "",
        "gate_reasons": gate_reasons(gate) if gate else (),
        "verdict": verdict_of(report),
        "reason": explain_reason(header.reason) if header.reason else "",
        "overall": _overall(report, Target.QUESTIONS_LIKE_THESE),
        "target": target_in_words(report, Target.QUESTIONS_LIKE_THESE),
        "overall_here": _overall(report, Target.THIS_RUN),
        "here": target_in_words(report, Target.THIS_RUN),
        "overall_notes": notes(report.overall.corrected, titles),
        "overall_facts": _facts(OVERALL, report),
        "metric_forest": _metrics_drawn(shown, language),
        "metric_columns": _titles(of_metric),
        "metrics": [
            (f"{line.title.in_language(language)} ({line.scale})", _cells(of_metric, line)) for line in report.metrics
        ],
        "pictures": pictures,
        "category_columns": (*_titles(BY_CATEGORY.entries(HERE)), *titles.values()),
        "categories": [_category(line, titles) for line in report.categories],
        "category_tables": [_three(table) for table in category_tables(report, language)],
        "answer_columns": (*_titles(ANSWERS.entries(HERE)), *titles.values()),
        "answers": [_answer(told, titles) for told in answers],
        "left_out": header.answers - len(answers),
        "provenance": list(_provenance(report)),
    }
    return render_to_string("review/report_file.html", {"page": page})


def _facts(section: Section[Report, Report], report: Report) -> tuple[tuple[str, str], ...]:
    return tuple((one.page_heading, one.text(value, 2)) for one, value in facts_of(section, report, HERE))


def _titles(entries: Sequence[Entry[Any]]) -> tuple[str, ...]:
    return tuple(one.page_heading for one in entries)


def _cells(entries: Sequence[Entry[Inner]], row: Inner) -> tuple[str, ...]:
    values = ((one, one.of(row)) for one in entries)
    return tuple(_figure(value) if isinstance(value, Figure) else one.text(value, 2) for one, value in values)


def _overall(report: Report, target: Target) -> charts.Forest:
    rows = []
    for one, figure in figures_of(report, HERE, target):
        title = capfirst(one.page_heading)
        if one.mark is charts.Shape.PLAIN:
            name = gettext("Rules only") if report.overall.label is Label.RULES_ONLY else title
            title = f"{name} ({report.overall.weight:.2f})"
        rows.append(_row(title, one.mark or charts.Shape.PLAIN, figure))
    return charts.forest(rows)


def _row(label: str, shape: charts.Shape, figure: Figure) -> charts.ForestRow:
    if figure.value is None:
        return charts.ForestRow(label, shape, None, withheld=why_withheld(figure))
    return charts.ForestRow(label, shape, charts.Figure(figure.value, figure.low, figure.high))


def _metrics_drawn(lines: Sequence[MetricLine], language: str) -> charts.Forest | None:
    """Every metric with a mean on one axis, as a share of its scale: corrected where it is, else reviewed, else as it
    came; ``None`` where no metric has one."""
    rows = [row for line in lines if (row := _metric_drawn(line, line.title.in_language(language)))]
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


def _category(line: CategoryLine, titles: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    means = [line.metrics[name][0] if name in line.metrics else None for name in titles]
    texts = (NOTHING if figure is None or figure.value is None else f"{figure.value:.2f}" for figure in means)
    return category_name(line.name) or NOTHING, (*_cells(BY_CATEGORY.entries(HERE), line), *texts)


def _three(table: CategoryTable) -> tuple[str, Rows]:
    figures = ((one, (one.judge_only, one.reviewed, one.corrected)) for one in table.rows)
    return table.title, [
        (category_name(one.name) or NOTHING, (str(one.answers), *map(_figure, three))) for one, three in figures
    ]


def _answer(told: ToldAnswer, titles: Mapping[str, str]) -> dict[str, Any]:
    """An answer with what is said of it and its effective values, a star at those that people gave."""
    answer = told.line.answer
    return {
        "question_id": answer.question_id,
        "category": category_name(answer.category),
        "question": answer.question,
        "language": language_of(answer.question),
        "answer": told.text,
        "cells": (*_cells(ANSWERS.entries(HERE), told), *(_value(told.line, name) for name in titles)),
    }


def _value(line: AnswerLine, name: str) -> str:
    found = line.values.get(name)
    said = None if found is None else found.label if found.value is None else found.value
    if found is None or said is None:
        return NOTHING
    text = said if isinstance(said, str) else f"{said:g}" if said == round(said, 2) else f"{said:.2f}"
    return f"{text} *" if found.human else text


def _figure(figure: Figure) -> str:
    return why_withheld(figure) if figure.value is None else figure.text(2, "–")


def _provenance(report: Report) -> Iterator[tuple[str, str]]:
    found = report.provenance
    yield gettext("questions"), _version(found.question_set)
    yield gettext("system"), _version(found.system)
    yield gettext("profile"), _version(found.profile)
    yield gettext("run"), f"#{found.run_id}, seed {found.seed}, k {found.k}, {found.config_hash}"
    for judge in found.judges:
        rubric = f"{judge.rubric.name} v{judge.rubric.version} ({judge.language})"
        yield gettext("judge"), f"{judge.judge.name} v{judge.judge.version} {judge.model} · {rubric}"
    for metric, author in found.imported_judges.items():
        yield gettext("imported judge"), f"{author} · {metric}"
    if found.embeddings:
        yield gettext("embeddings"), f"{found.embeddings.model} {found.embeddings.endpoint or found.embeddings.sha256}"
    if found.token_model:
        yield "BERTScore", f"{found.token_model.sha256}, layer {found.token_model.layer}"
    for draw in found.draws:
        yield gettext("draw"), f"{draw.strategy}, seed {draw.seed}, {draw.sampled} / {draw.frame}"
    yield "Concord", found.product_version
    for one in report.licences:
        yield f"{gettext('Licence')} · {one.metric}", f"{licence_state(one)}. {licence_reason(one)}"


def _version(one: Versioned) -> str:
    return f"{one.name} v{one.version} {one.content_hash}"
