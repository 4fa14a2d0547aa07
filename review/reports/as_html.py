"""A report as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from evaluation.messages.explanations import category_name
from evaluation.messages.markdown import language_of
from review.reports.cards import report_cards
from review.reports.entries import DASH, Output
from review.reports.figure_cards import fact_text, facts
from review.reports.gate import Gate, gate_line, gate_reasons
from review.reports.lines import AnswerLine
from review.reports.report import Report
from review.reports.sections import ANSWERS, RUN, AnswerDetail

STYLES = ("concord.css", "charts.css")


def html_report(report: Report, answers: Sequence[AnswerDetail], gate: Gate | None, pictures: str = "") -> str:
    """Render the file. ``pictures`` are the agreement plots as safe HTML."""
    language = "ko" if (get_language() or "en").startswith("ko") else "en"
    titles = {line.name: line.title.in_language(language) for line in report.metrics if line.latency is None}
    page = {
        "cards": report_cards(report, Output.HTML),
        "language": language,
        "styles": SafeString("".join(map(_style, STYLES))),
        "about": facts(RUN, report, Output.HTML),
        "gate": gate_line(gate) if gate else "",
        "gate_reasons": gate_reasons(gate) if gate else (),
        "pictures": pictures,
        "answer_columns": (*(entry.page_heading for entry in ANSWERS.entries(Output.HTML)), *titles.values()),
        "answers": [_answer_row(detail, titles) for detail in answers],
        "left_out": report.header.answers - len(answers),
    }
    return render_to_string("review/reports/report_file.html", {"page": page})


def _style(name: str) -> str:
    path = finders.find(name)
    if path is None:
        raise FileNotFoundError(name)
    return Path(path).read_text(encoding="utf-8")


def _answer_row(detail: AnswerDetail, titles: Mapping[str, str]) -> dict[str, Any]:
    """An answer with its facts and effective values. A star marks expert values."""
    answer = detail.line.answer
    texts = (fact_text(entry, entry.read(detail)) for entry in ANSWERS.entries(Output.HTML))
    return {
        "question_id": answer.question_id,
        "category": category_name(answer.category),
        "question": answer.question,
        "language": language_of(answer.question),
        "answer": detail.text,
        "cells": (*texts, *(_value_text(detail.line, name) for name in titles)),
    }


def _value_text(line: AnswerLine, name: str) -> str:
    effective = line.values.get(name)
    value = None if effective is None else effective.label if effective.value is None else effective.value
    if effective is None or value is None:
        return DASH
    text = value if isinstance(value, str) else f"{value:g}" if value == round(value, 2) else f"{value:.2f}"
    return f"{text} *" if effective.human else text
