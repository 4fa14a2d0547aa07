"""Filters that display stored codes and values in the user's language."""

import json
from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.translation import get_language, gettext

from evaluation.core.metric_specs import Bilingual
from evaluation.core.samples import QuestionSpec
from evaluation.messages import markdown
from evaluation.messages.explanations import category_name, explain, explain_reason
from evaluation.models import MetricDefinition

MAX_CELL_LENGTH = 300
register = template.Library()
register.filter(category_name)
# Sets the ``lang`` attribute of a text whose language may differ from the page's.
register.filter(markdown.language_of)
register.filter("markdown_html", markdown.render)
register.filter("problem_in_words", explain)


@register.filter
def reason_in_words(code: str) -> str:
    """Message for the code of a reason; empty without one."""
    return explain_reason(code) if code else ""


@register.filter
def in_language(text: Bilingual | Mapping[str, str]) -> str:
    """Bilingual text, or its JSON form, in the active language."""
    bilingual = text if isinstance(text, Bilingual) else Bilingual(text["en"], text["ko"])
    return bilingual.in_language(get_language() or "en")


@register.filter
def metric_title(metric: MetricDefinition | None) -> str:
    """Title of a metric, else its name (imported metrics have no title); empty without a metric."""
    return "" if metric is None else metric.title.get(get_language() or "en") or metric.name


@register.filter
def titled(name: str, titles: Mapping[str, Bilingual]) -> str:
    """Title of the metric with this name, else the name."""
    return in_language(titles[name]) if name in titles else name


@register.filter
def expected_text(question: QuestionSpec) -> str:
    """Expected answer: references, else keywords, else the check."""
    expected = question.references or tuple(" / ".join(alternatives) for alternatives in question.keywords)
    return " · ".join(expected) or question.check


@register.filter
def field_text(value: Any) -> str:
    """JSON value of a question's field as text."""
    if value in (None, "", [], {}):
        return gettext("nothing")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_CELL_LENGTH else f"{text[:MAX_CELL_LENGTH]}…"
