"""Questions and their changes as tables show them."""

from __future__ import annotations

import json
from typing import Any

from django import template
from django.utils.translation import gettext

from evaluation.core.errors import Problem
from evaluation.core.samples import QuestionSpec
from evaluation.wording.messages import explain

LONGEST_CELL = 300
register = template.Library()


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


@register.filter
def problem_in_words(problem: Problem) -> str:
    """What is wrong with a file, and what to do."""
    return explain(problem)
