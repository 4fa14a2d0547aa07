"""Judge metrics: the built-in rubric families, those of packages, and those of custom criteria, which are defined by
the pinned rubric."""

from __future__ import annotations

from evaluation.core.errors import UnknownName
from evaluation.core.metric_specs import Bilingual, MetricKind, MetricSpec, judged_spec
from evaluation.core.samples import Result
from evaluation.core.scales import default_review_form
from evaluation.judging.calls import Family, JudgeCase, Judging
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
from evaluation.judging.formulas import score_in_one_call
from evaluation.judging.rubric import CriterionTerms, PromptSlot, Rubric

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


_SHIPPED_COUNT = len(_FAMILIES)


def families() -> tuple[str, ...]:
    return tuple(_FAMILIES)


def own_families() -> tuple[str, ...]:
    """Names of the families of packages."""
    return tuple(_FAMILIES)[_SHIPPED_COUNT:]


def add_family(family: Family) -> None:
    """Register a family of a package."""
    _FAMILIES[family.name] = family


def family_named(name: str) -> Family:
    """Family with this name.

    :raises UnknownName: for a family that does not exist."""
    if name not in _FAMILIES:
        raise UnknownName("rubric family", name, families())
    return _FAMILIES[name]


def family_for(rubric: Rubric) -> Family:
    """Family of a rubric: a declared one, or that of its custom criterion. The family of a package that is not
    installed has the metrics of the rubric, for pages of its runs, and judges nothing."""
    if rubric.criterion is None:
        return _FAMILIES.get(rubric.family) or _missing_family(rubric)
    return Family(rubric.family, (criterion_metric(rubric, rubric.criterion),), score_in_one_call)


def _missing_family(rubric: Rubric) -> Family:
    specs = [
        judged_spec(
            name=metric.name,
            scale=metric.read_scale(),
            title=Bilingual(metric.name, metric.name),
            formula=Bilingual(metric.question, metric.question),
            source="",
            rubric_family=rubric.family,
        )
        for metric in rubric.metrics
    ]

    def judge(case: JudgeCase) -> Judging:
        yield from ()
        return {name: Result.failed(f"metric_not_loaded: {rubric.family}") for name in case.metrics}

    return Family(rubric.family, tuple(specs), judge)


def criterion_metric(rubric: Rubric, terms: CriterionTerms) -> MetricSpec:
    """Metric spec of the criterion's only metric."""
    (rubric_metric,) = rubric.metrics
    scale = rubric_metric.read_scale()
    return MetricSpec(
        name=rubric_metric.name,
        version=terms.metric_version,
        kind=MetricKind.CUSTOM,
        scale=scale,
        title=Bilingual(terms.title_en, terms.title_ko),
        formula=Bilingual(rubric_metric.question, rubric_metric.question),
        source="",
        direction=terms.direction,
        inputs=tuple(str(slot) for slot in terms.needs),
        optional_inputs=tuple("passages" if slot is PromptSlot.CONTEXTS else str(slot) for slot in terms.sees),
        review_form=default_review_form(scale),
        rubric_family=rubric.family,
        categories=terms.categories,
    )


def judge_metrics() -> tuple[MetricSpec, ...]:
    """Judge metrics, family by family in the order of the rubrics."""
    return tuple(spec for family in _FAMILIES.values() for spec in family.metrics)


def judge_metric(name: str) -> MetricSpec:
    """Metric spec with this name.

    :raises UnknownName: if no family has it."""
    for spec in judge_metrics():
        if spec.name == name:
            return spec
    raise UnknownName("judge metric", name, [spec.name for spec in judge_metrics()])
