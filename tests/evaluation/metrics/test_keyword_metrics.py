"""Keyword hit, keyword coverage and latency."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import UnknownName
from evaluation.core.metric_specs import MetricKind, RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec, Status
from evaluation.metrics.catalogue import RULE_METRICS, is_rule_metric, rule_metric_named
from evaluation.metrics.keyword_coverage import keyword_coverage, keyword_hit
from evaluation.metrics.retrieval import latency

SETTINGS = RuleSettings()


def _question(*keywords: str | tuple[str, ...]) -> QuestionSpec:
    as_alternatives = tuple((k,) if isinstance(k, str) else k for k in keywords)
    return QuestionSpec(id="q1", category="single_hop", text="?", keywords=as_alternatives)


def test_coverage_is_the_share_of_keywords_and_hit_any_of_them() -> None:
    question = _question("삼성전자", ("S&P500", "에스앤피500"), "0.5%", "KODEX 200")
    answer = AnswerSpec("삼성 전자와 에스앤피500을 담고, 보수는 50bp입니다. KODEX 200TR도 있습니다.")
    # found: 삼성전자 (spacing), S&P500 (its alternative), 0.5% (equal value); KODEX 200 is not KODEX 200TR: 3 of 4
    result = keyword_coverage(question, answer, SETTINGS)
    assert result.value == 3 / 4
    assert [f.verdict for f in result.findings] == ["spacing", "alternative", "number", "missing"]
    assert [answer.text[f.start : f.end] for f in result.findings[:3]] == ["삼성 전자", "에스앤피500", "50bp"]
    assert keyword_hit(question, answer, SETTINGS).value == 1


def test_score_is_zero_if_no_keyword_is_found() -> None:
    answer = AnswerSpec("")
    assert keyword_hit(_question("a", "b"), answer, SETTINGS).value == 0
    assert keyword_coverage(_question("a", "b"), answer, SETTINGS).value == 0


@pytest.mark.parametrize("metric", [keyword_hit, keyword_coverage])
@pytest.mark.parametrize("question", [_question(), _question("  ", "\u200b")])
def test_keyword_metrics_are_not_applicable_without_keywords(metric, question: QuestionSpec) -> None:
    result = metric(question, AnswerSpec("anything"), SETTINGS)
    assert (result.status, result.reason) == (Status.NOT_APPLICABLE, "no_keywords")


def test_confirmed_negation_is_a_finding_and_not_a_hit(kiwi: None) -> None:
    result = keyword_hit(_question("미래에셋"), AnswerSpec("운용사는 미래에셋이 아닙니다."), SETTINGS)
    assert (result.value, result.findings[0].verdict, result.detail["negated"]) == (0, "negated", 1)


def test_unconfirmed_negation_counts_with_a_remark() -> None:
    result = keyword_hit(_question("미래에셋"), AnswerSpec("운용사는 미래에셋이 아닙니다."), SETTINGS)
    assert (result.value, result.findings[0].reason) == (1, "negation_not_confirmed")


def test_detail_has_counts_and_the_matching_method() -> None:
    result = keyword_coverage(_question("규정", "학칙"), AnswerSpec("규정은 이렇다"), SETTINGS)
    assert result.detail == {
        "expected": 2,
        "found": 1,
        "negated": 0,
        "matching": "tiers",
        "analysis": "closed_list",
    }
    missed = keyword_coverage(_question("학칙"), AnswerSpec("규정은 이렇다"), SETTINGS)
    assert missed.detail == {"expected": 1, "found": 0, "negated": 0, "matching": "tiers"}


@given(st.lists(st.text(alphabet="가나다 ab1", min_size=1, max_size=4), min_size=1, max_size=5), st.text(max_size=40))
def test_hit_is_one_exactly_if_coverage_is_positive(keywords: list[str], text: str) -> None:
    question, answer = _question(*keywords), AnswerSpec(text)
    hit, coverage = keyword_hit(question, answer, SETTINGS), keyword_coverage(question, answer, SETTINGS)
    assert hit.status == coverage.status
    if hit.value is not None and coverage.value is not None:
        assert (hit.value == 1) == (coverage.value > 0)
        assert 0 <= coverage.value <= 1


@pytest.mark.parametrize(
    ("seconds", "status", "reason"),
    [
        (1.25, Status.SCORED, ""),
        (0.0, Status.SCORED, ""),
        (None, Status.NOT_APPLICABLE, "no_latency"),
        (-0.5, Status.FAILED, "scale: -0.5"),
        (float("nan"), Status.FAILED, "scale: nan"),
        (90_000.0, Status.FAILED, "scale: 90000.0"),
    ],
)
def test_latency_is_the_measured_time_or_has_a_reason(seconds: float | None, status: Status, reason: str) -> None:
    result = latency(_question(), AnswerSpec("a", latency_seconds=seconds), SETTINGS)
    assert (result.status, result.reason) == (status, reason)
    assert result.value == (seconds if status is Status.SCORED else None)


def test_catalogue_lists_each_rule_metric_once_by_name() -> None:
    names = [metric.spec.name for metric in RULE_METRICS]
    assert len(set(names)) == len(names)
    assert {"keyword_hit", "keyword_coverage", "negative_detection", "latency"} <= set(names)
    assert all(
        metric.spec.kind is MetricKind.RULE and rule_metric_named(metric.spec.name) is metric for metric in RULE_METRICS
    )
    assert all(metric.spec.title.ko and metric.spec.formula.ko for metric in RULE_METRICS)


def test_unknown_metric_is_refused_with_a_suggestion() -> None:
    assert not is_rule_metric("correctness")
    with pytest.raises(UnknownName, match="keyword_hit"):
        rule_metric_named("keyword_hits")
