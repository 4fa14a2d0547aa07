"""Families of custom criteria: one metric each, one call, everything read from the rubric that a run pins."""

from __future__ import annotations

from evaluation.core.errors import UnknownName
from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm
from evaluation.core.scales import ScaleKind
from evaluation.judging.asking import Family
from evaluation.judging.criteria.terms import CriterionTerms, Slot
from evaluation.judging.formulas import scored_in_one_call
from evaluation.judging.rubric import Rubric

FORMS = {ScaleKind.CLASS: ReviewForm.CLASS, ScaleKind.YES_NO: ReviewForm.YES_NO}
SHOWN_AS = {Slot.CONTEXTS: "passages"}  # with numbers and sources


def criterion_family(rubric: Rubric) -> Family:
    """The family of a rubric that was made from a criterion.

    :raises UnknownName: for any other rubric.
    """
    if rubric.criterion is None:
        raise UnknownName("custom criterion", rubric.family, ())
    return Family(rubric.family, (criterion_metric(rubric, rubric.criterion),), scored_in_one_call)


def criterion_metric(rubric: Rubric, terms: CriterionTerms) -> MetricSpec:
    """The description of the rubric's one metric."""
    (asked,) = rubric.metrics
    scale = asked.read_scale()
    return MetricSpec(
        name=asked.name,
        version=terms.metric_version,
        kind=Kind.CUSTOM,
        scale=scale,
        title=Bilingual(terms.title_en, terms.title_ko),
        formula=Bilingual(asked.question, asked.question),
        source="",
        direction=terms.direction,
        inputs=tuple(str(slot) for slot in terms.needs),
        optional_inputs=tuple(SHOWN_AS.get(slot, str(slot)) for slot in terms.sees),
        review_form=FORMS.get(scale.kind, ReviewForm.LEVEL),
        rubric_family=rubric.family,
        categories=terms.categories,
    )
