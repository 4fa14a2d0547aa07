"""What the filters of templates write, above all where there is nothing to write."""

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


def written(source: str, language: str = "en", **values: object) -> str:
    with translation.override(language):
        return Template("{% load figures wording %}" + source).render(Context(values))


def test_a_number_that_is_not_there_leaves_the_template_to_say_so() -> None:
    for name in ("plain", "signed:3", "share", "about", "p_value"):
        assert written("{{ value|" + name + '|default:"–" }}', value=None) == "–", name
    assert written("{{ value|interval }}{{ value|share_interval }}", value=Figure(0.1, None)) == ""


def test_numbers_are_rounded_where_they_are_shown() -> None:
    assert written("{{ value|plain:3 }} {{ value|signed }} {{ value|share }}", value=0.1249) == "0.125 +0.12 12%"
    assert written("{{ value|plain }}", value=-0.001) == "0.00"
    assert written("{{ value|p_value }}", value=0.0004) == "p &lt; 0.001"
    assert written("{{ value|interval }} {{ value|share_interval }}", value=Figure(0.25, 0.5)) == "0.25–0.50 25–50%"


def test_titles_are_those_of_the_reader_and_the_name_stands_where_there_is_none() -> None:
    both = Bilingual("answers", "답변")
    assert [written("{{ text|in_language }}", language, text=both) for language in ("en", "ko")] == ["answers", "답변"]
    assert written("{{ text|in_language }}", "ko", text={"en": "answers", "ko": "답변"}) == "답변"
    metric = MetricDefinition(name="tone", title={"en": "Tone"})
    assert [written("{{ metric|metric_title }}", language, metric=metric) for language in ("en", "ko")] == [
        "Tone",
        "tone",
    ]
