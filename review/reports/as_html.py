"""A report as one HTML file that needs nothing else: for mail, archives, and readers without an account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from evaluation.messages.markdown import language_of
from evaluation.messages.sentences import category_name
from review.reports.cards import report_cards
from review.reports.entries import NOTHING, Output
from review.reports.figure_cards import fact_text, facts
from review.reports.gate import Gate, gate_line, gate_reasons
from review.reports.lines import AnswerLine
from review.reports.report import Report
from review.reports.sections import ANSWERS, RUN, ToldAnswer

STYLES = ("concord.css", "charts.css")


def html_report(report: Report, answers: Sequence[ToldAnswer], gate: Gate | None, pictures: str = "") -> str:
    """The file's text; ``pictures`` are the plots of agreement as safe HTML."""
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
        "answer_columns": (*(one.page_heading for one in ANSWERS.entries(Output.HTML)), *titles.values()),
        "answers": [_answer(told, titles) for told in answers],
        "left_out": report.header.answers - len(answers),
    }
    return render_to_string("review/reports/report_file.html", {"page": page})


def _style(name: str) -> str:
    path = finders.find(name)
    if path is None:
        raise FileNotFoundError(name)
    return Path(path).read_text(encoding="utf-8")


def _answer(told: ToldAnswer, titles: Mapping[str, str]) -> dict[str, Any]:
    """An answer with what is said of it and its effective values, a star at those that people gave."""
    answer = told.line.answer
    texts = (fact_text(one, one.of(told)) for one in ANSWERS.entries(Output.HTML))
    return {
        "question_id": answer.question_id,
        "category": category_name(answer.category),
        "question": answer.question,
        "language": language_of(answer.question),
        "answer": told.text,
        "cells": (*texts, *(_value(told.line, name) for name in titles)),
    }


def _value(line: AnswerLine, name: str) -> str:
    found = line.values.get(name)
    said = None if found is None else found.label if found.value is None else found.value
    if found is None or said is None:
        return NOTHING
    text = said if isinstance(said, str) else f"{said:g}" if said == round(said, 2) else f"{said:.2f}"
    return f"{text} *" if found.human else text
