"""The judge metrics that exist: one file per rubric family, listed here by hand."""

from __future__ import annotations

from evaluation.core.errors import UnknownName
from evaluation.core.registry import MetricSpec
from evaluation.judging.asking import Family
from evaluation.judging.families import (
    answer_class,
    answer_quality,
    answer_relevancy,
    asked_back,
    claims,
    criterion,
    factual_accuracy,
    generation_faithfulness,
    negative_questions,
    nuggets,
    passages,
    proposals,
    regulation_quality,
    statements,
)
from evaluation.judging.rubric import Rubric

_FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        answer_quality.FAMILY,
        negative_questions.FAMILY,
        claims.FAMILY,
        passages.FAMILY,
        statements.FAMILY,
        asked_back.FAMILY,
        factual_accuracy.FAMILY,
        answer_class.FAMILY,
        generation_faithfulness.FAMILY,
        answer_relevancy.FAMILY,
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
    return criterion.criterion_family(rubric) if rubric.criterion else family_named(rubric.family)


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


def family_of(metric: str) -> str:
    """The rubric family whose call gives the metric.

    :raises UnknownName: when no family has it.
    """
    return judge_metric(metric).rubric_family
