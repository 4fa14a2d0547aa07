"""Words for what is stored as a code, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping

from django import template
from django.utils.translation import get_language

from evaluation.core.registry import Bilingual
from evaluation.models import MetricDefinition
from evaluation.wording import markdown
from evaluation.wording.messages import category_name, explain_reason

register = template.Library()
register.filter(category_name)


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
def markdown_html(text: str) -> str:
    """Markdown as safe HTML."""
    return markdown.render(text)
