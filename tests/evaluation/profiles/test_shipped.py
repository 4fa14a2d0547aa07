"""The shipped profiles have the weights, thresholds and names of their sources."""

from __future__ import annotations

import re

import pytest

from evaluation.core.samples import Status
from evaluation.judging.catalogue import judge_metrics
from evaluation.judging.embedding.similarity import EMBEDDING_METRICS
from evaluation.metrics.catalogue import RULE_METRICS
from evaluation.profiles.arithmetic import band_of
from evaluation.profiles.per_answer import DERIVED_METRICS, PartValue, overall_from_answers, overall_of_answer
from evaluation.profiles.spec import ProfileSpec, shipped_profiles

SHIPPED = {profile.name: profile for profile in shipped_profiles()}
RULE_SPECS = (metric.spec for metric in (*RULE_METRICS, *DERIVED_METRICS))
SPECS = {spec.name: spec for spec in (*RULE_SPECS, *EMBEDDING_METRICS, *judge_metrics())}


def test_seven_profiles_are_shipped() -> None:
    assert set(SHIPPED) == {
        *("graphrag", "ragas", "generation", "regulation", "phases", "phases_normalised", "standard"),
    }


@pytest.mark.parametrize("profile", SHIPPED.values(), ids=lambda p: p.name)
def test_every_metric_of_a_shipped_profile_exists(profile: ProfileSpec) -> None:
    assert [name for name in profile.metrics if name not in SPECS] == []


@pytest.mark.parametrize("profile", SHIPPED.values(), ids=lambda p: p.name)
def test_every_text_is_in_its_own_language(profile: ProfileSpec) -> None:
    tables = [
        text for t in profile.tables for c in (*t.axes, *t.cells) for text in (c.title, getattr(c, "text", c.title))
    ]
    bands = [band.title for bands in (profile.bands, *profile.metric_bands.values()) for band in bands]
    texts = [profile.description, *tables, *bands, *profile.deviations, *(f.title for f in profile.automatic_failures)]
    for text in texts:
        assert text is not None
        assert re.search("[가-힣]", text.ko)
        assert not re.search("[가-힣]", text.en.replace("조의 and 항", ""))


NAMES = {
    "graphrag": "keyword_hit_rate keyword_coverage negative_detection_rate avg_correctness avg_faithfulness "
    "avg_completeness overall_score",
    "ragas": "ragas_faithfulness ragas_context_precision ragas_context_recall ragas_answer_relevance ragas_score "
    "factual_accuracy_percentage semantic_similarity_percentage bert_score_f1",
    "generation": "precision_at_k recall_at_k hit_rate_at_k mrr mean_faithfulness mean_answer_relevancy",
    "regulation": "accuracy completeness citations context_relevance overall_score",
    "phases": "context_relevance completeness groundedness overall_score",
    "phases_normalised": "context_relevance completeness groundedness overall_score",
}


@pytest.mark.parametrize("name", NAMES)
def test_metrics_are_reported_under_the_names_of_the_source(name: str) -> None:
    profile = SHIPPED[name]
    assert set(NAMES[name].split()) <= {profile.report_name(metric) for metric in (*profile.metrics, "overall")}


def answer_score(name: str, category: str = "single_hop", **values: float | None) -> float | None:
    """The overall score of an answer; ``None`` marks a metric that is not applicable."""
    parts = [
        PartValue(
            metric,
            Status.SCORED if value is not None else Status.NOT_APPLICABLE,
            SPECS[metric].scale.low,
            SPECS[metric].scale.high,
            value,
        )
        for metric, value in values.items()
    ]
    return overall_of_answer(SHIPPED[name], parts, category=category).value


def test_ragas_overall_is_the_ragas_score_divided_by_100() -> None:
    # (.3 x 1 + .2 x 1 + .3 x .8327) / .8 = .9372625
    value = answer_score(
        "ragas", claim_support=1.0, context_precision=None, context_recall=100.0, answer_relevance=83.27
    )
    assert value == pytest.approx(0.9372625)
    assert SHIPPED["ragas"].report_value("overall", 0.9372625) == pytest.approx(93.72625)
    assert SHIPPED["ragas"].report_value("claim_support", 0.5) == 50.0


@pytest.mark.parametrize(
    ("figure", "grade"), [(100, "a"), (80, "a"), (79.9, "b"), (59, "c"), (20, "d"), (19.99, "e"), (0, "e")]
)
def test_factual_accuracy_has_grades(figure: float, grade: str) -> None:
    band = band_of(SHIPPED["ragas"].metric_bands["factual_accuracy"], figure)
    assert band is not None
    assert band.name == grade


def test_regulation_has_the_weights_of_its_source() -> None:
    # .35 x .9 + .25 x .8 + .2 x .7 + .2 x .6 = .315 + .2 + .14 + .12
    value = answer_score("regulation", accuracy=0.9, answer_completeness=0.8, citations=0.7, context_relevance=0.6)
    assert value == pytest.approx(0.775)


@pytest.mark.parametrize(("value", "source", "normalised"), [(0.0, 0.1, 0.0), (1.0, 1.0, 1.0), (0.5, 0.55, 0.5)])
def test_range_of_the_phases_profile_starts_at_its_constant(value: float, source: float, normalised: float) -> None:
    parts = {"citation_coverage": value, "nugget_coverage": value, "claim_support": value}
    # .1 + .9 x value, and value itself
    assert answer_score("phases", **parts) == pytest.approx(source)
    assert answer_score("phases_normalised", **parts) == pytest.approx(normalised)


def test_both_phases_profiles_have_equivalent_bands() -> None:
    # .2 x .5 + .3 x 2/3 + .4 x .75 + .1 = .7 and (.1 + .2 + .3) / .9 = 2/3
    parts = {"citation_coverage": 0.5, "nugget_coverage": 2 / 3, "claim_support": 0.75}
    for name, expected in (("phases", 0.7), ("phases_normalised", 2 / 3)):
        value = answer_score(name, **parts)
        assert value == pytest.approx(expected)
        band = band_of(SHIPPED[name].bands, value or 0.0)
        assert band is not None
        assert band.name == "sufficient"


def test_phases_normalised_needs_claims_and_passages() -> None:
    assert answer_score("phases_normalised", citation_coverage=1.0, nugget_coverage=1.0, claim_support=None) is None
    assert answer_score("phases_normalised", citation_coverage=None, nugget_coverage=1.0, claim_support=1.0) is None


def test_standard_uses_nuggets_or_else_completeness() -> None:
    common = {"correctness": 5.0, "claim_support": 0.5, "context_recall": 100.0, "completeness": 3.0}
    # .35 x 1 + .3 x .5 + .2 x .25 + .15 x 1 = .7 with nuggets; completeness 3 of 1..5 is .5: .35 + .15 + .1 + .15
    assert answer_score("standard", **common, nugget_support=0.25) == pytest.approx(0.7)
    assert answer_score("standard", **common, nugget_support=None) == pytest.approx(0.75)


@pytest.mark.parametrize("passed", [0.0, 1.0])
def test_standard_scores_a_negative_question_by_its_check_alone(passed: float) -> None:
    assert answer_score("standard", "negative", correctness=3.0, negative_detection=passed) == passed


def test_standard_without_a_judge_has_no_score() -> None:
    profile = SHIPPED["standard"]
    passed = PartValue("negative_detection", Status.SCORED, 0, 1, 1.0)
    answers = [
        overall_of_answer(profile, [passed], category="negative"),
        overall_of_answer(profile, [PartValue("keyword_hit", Status.SCORED, 0, 1, 1.0)], category="single_hop"),
    ]
    overall = overall_from_answers(profile, answers, ["negative_detection", "keyword_hit"])
    assert (overall.value, overall.reason) == (None, "no_parts")
    # With a judge, of a set of negative questions alone, the checks are the whole score.
    computed = [*profile.metrics]
    assert overall_from_answers(profile, answers[:1], computed).value == 1.0
