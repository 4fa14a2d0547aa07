"""Output of the template filters, above all for missing values."""

from __future__ import annotations

from dataclasses import dataclass

from django.template import Context, Template
from django.utils import translation

from evaluation.core.metric_specs import Bilingual
from evaluation.models import MetricDefinition


@dataclass(frozen=True)
class Figure:
    low: float | None
    high: float | None


def render(source: str, language: str = "en", **values: object) -> str:
    with translation.override(language):
        return Template("{% load figures wording %}" + source).render(Context(values))


def test_missing_number_uses_template_default() -> None:
    for name in ("plain", "signed:3", "share", "duration", "p_value"):
        assert render("{{ value|" + name + '|default:"–" }}', value=None) == "–", name
    assert render("{{ value|interval }}{{ value|share_interval }}", value=Figure(0.1, None)) == ""


def test_numbers_are_rounded_for_display() -> None:
    assert render("{{ value|plain:3 }} {{ value|signed }} {{ value|share }}", value=0.1249) == "0.125 +0.12 12%"
    assert render("{{ value|plain }}", value=-0.001) == "0.00"
    assert render("{{ value|p_value }}", value=0.0004) == "p &lt; 0.001"
    assert render("{{ value|interval }} {{ value|share_interval }}", value=Figure(0.25, 0.5)) == "0.25–0.50 25–50%"


def test_titles_are_translated_and_fall_back_to_the_name() -> None:
    title = Bilingual("answers", "답변")
    assert [render("{{ text|in_language }}", language, text=title) for language in ("en", "ko")] == ["answers", "답변"]
    assert render("{{ text|in_language }}", "ko", text={"en": "answers", "ko": "답변"}) == "답변"
    metric = MetricDefinition(name="tone", title={"en": "Tone"})
    assert [render("{{ metric|metric_title }}", language, metric=metric) for language in ("en", "ko")] == [
        "Tone",
        "tone",
    ]
