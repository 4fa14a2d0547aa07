"""Words for what is stored as a code or a value, in the reader's language."""

import json
from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.translation import get_language, gettext

from evaluation.core.metric_specs import Bilingual
from evaluation.core.samples import QuestionSpec
from evaluation.messages import markdown
from evaluation.messages.sentences import category_name, explain, explain_reason
from evaluation.models import MetricDefinition

LONGEST_CELL = 300
register = template.Library()
register.filter(category_name)
register.filter(markdown.language_of)  # of a text on a page in another one, for the ``lang`` of its element
register.filter("markdown_html", markdown.render)
register.filter("problem_in_words", explain)


@register.filter
def reason_in_words(code: str) -> str:
    """The sentence for the code of a reason; empty without one."""
    return explain_reason(code) if code else ""


@register.filter
def in_language(text: Bilingual | Mapping[str, str]) -> str:
    """A text in both languages, also in its JSON form, as the reader reads it."""
    both = text if isinstance(text, Bilingual) else Bilingual(text["en"], text["ko"])
    return both.in_language(get_language() or "en")


@register.filter
def metric_title(metric: MetricDefinition | None) -> str:
    """The metric's title; its name where it came without one, as imported ones do. Empty without a metric."""
    return "" if metric is None else metric.title.get(get_language() or "en") or metric.name


@register.filter
def titled(name: str, titles: Mapping[str, Bilingual]) -> str:
    """The title of a metric that is told by its name; the name where nothing has a title."""
    return in_language(titles[name]) if name in titles else name


@register.filter
def expected_text(question: QuestionSpec) -> str:
    """What is expected of an answer: references, else keywords, else what is checked."""
    expects = question.references or tuple(" / ".join(one) for one in question.keywords)
    return " · ".join(expects) or question.check


@register.filter
def field_text(value: Any) -> str:
    """A field of a question, which is a JSON value, as text."""
    if value in (None, "", [], {}):
        return gettext("nothing")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
