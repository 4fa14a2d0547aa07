"""The judge metrics that exist: the rubric families, listed here by hand, and those of custom criteria, of which
everything is read from the rubric that a run pins."""

from __future__ import annotations

from evaluation.core.errors import UnknownName
from evaluation.core.metric_specs import Bilingual, Kind, MetricSpec
from evaluation.core.scales import review_form_of
from evaluation.judging.calls import Family
from evaluation.judging.families import (
    answer_class,
    answer_quality,
    asked_back,
    claims,
    factual_accuracy,
    negative_questions,
    nuggets,
    passages,
    proposals,
    regulation_quality,
)
from evaluation.judging.formulas import scored_in_one_call
from evaluation.judging.rubric import CriterionTerms, Rubric, Slot

_FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        answer_quality.ANSWER_QUALITY,
        negative_questions.FAMILY,
        claims.CLAIMS,
        passages.FAMILY,
        claims.STATEMENTS,
        asked_back.FAMILY,
        factual_accuracy.FAMILY,
        answer_class.FAMILY,
        answer_quality.GENERATION_FAITHFULNESS,
        answer_quality.ANSWER_RELEVANCY,
        regulation_quality.FAMILY,
        nuggets.FAMILY,
        proposals.FAMILY,
    )
}


def families() -> tuple[str, ...]:
    """The names of the rubric families."""
    return tuple(_FAMILIES)


def family_named(name: str) -> Family:
    """The family of that name.

    :raises UnknownName: for a family that does not exist.
    """
    if name not in _FAMILIES:
        raise UnknownName("rubric family", name, families())
    return _FAMILIES[name]


def family_for(rubric: Rubric) -> Family:
    """The family that works by a rubric: a built-in one, or that of the custom criterion it was made from.

    :raises UnknownName: for a family that does not exist.
    """
    if rubric.criterion is None:
        return family_named(rubric.family)
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
        optional_inputs=tuple("passages" if slot is Slot.CONTEXTS else str(slot) for slot in terms.sees),
        review_form=review_form_of(scale),
        rubric_family=rubric.family,
        categories=terms.categories,
    )


def judge_metrics() -> tuple[MetricSpec, ...]:
    """Every judge metric, family by family in the order of the rubrics."""
    return tuple(spec for family in _FAMILIES.values() for spec in family.metrics)


def judge_metric(name: str) -> MetricSpec:
    """The metric's description.

    :raises UnknownName: when no family has it.
    """
    for spec in judge_metrics():
        if spec.name == name:
            return spec
    raise UnknownName("judge metric", name, [spec.name for spec in judge_metrics()])
