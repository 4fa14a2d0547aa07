"""Comparisons and gates of runs with labels from an incomplete repair: by the corrected figures, with those by the
labels alone next to them, or withheld."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from django.urls import reverse

from contrib.retrieval_truth.acceptance import accept_labels
from contrib.retrieval_truth.models import RetrievalRepair
from contrib.retrieval_truth.results import compute_results
from contrib.retrieval_truth.tests.built import RANKINGS, members, rate_all, repair, run_over
from evaluation.core.roles import Role
from evaluation.models import Answer, QuestionSet, Run
from review.comparisons.comparison import compare, comparison_json
from review.comparisons.difference import MetricDifference, RunDifference, difference
from review.comparisons.gates import run_gate
from review.comparisons.values import load_sides
from review.comparisons.verdict import lead_sentence, next_sentence, other_sentence
from review.reports.gate import GateCheck, GateRequest, gate_reasons
from review.statistics.paired_tests.gate import GateVerdict
from tests.factories import make_profile, make_user
from tests.review import builders

pytestmark = pytest.mark.django_db

METRICS = ("precision_at_k", "recall_at_k", "hit_at_k", "ndcg_at_k")
SCORED = {
    "parts": [{"metric": "recall_at_k", "weight": 1.0}],
    "reported": ["precision_at_k", "hit_at_k", "ndcg_at_k"],
}


def scored_run(version: QuestionSet, name: str, ranking: tuple[int, ...], **profile: object) -> Run:
    """A run by rules alone over the ranking, with what the labels of its version say."""
    answers = run_over(version, f"{name} new", ranking).answer_set
    spec = {"name": "retrieval", "title": {"en": "Retrieval", "ko": "검색"}, "reported": list(METRICS)} | profile
    run = builders.run_over(answers, judged=False, profile=make_profile(answers.project, spec))
    gains = [_gains(answer, ranking) for answer in builders.answer_rows(run)]
    values = {
        "precision_at_k": [sum(hits) / 5 for hits, _ in gains],
        "recall_at_k": [sum(hits) / relevant_count for hits, relevant_count in gains],
        "hit_at_k": [float(any(hits)) for hits, _ in gains],
        "ndcg_at_k": [
            sum(hits) / relevant_count for hits, relevant_count in gains
        ],  # not its formula, which is tested elsewhere
    }
    builders.score_all(run, values)
    return run


def _gains(answer: Answer, ranking: tuple[int, ...]) -> tuple[list[bool], int]:
    truth = set(answer.question.read().ground_truth_chunk_ids)
    return [f"{answer.question.external_id}-{passage_number}" in truth for passage_number in ranking], len(truth)


def accepted_repair(limit: int = 40) -> tuple[RetrievalRepair, QuestionSet]:
    """A repair with labels accepted after ``limit`` of 70 ratings, and the version that has them."""
    label_repair = repair(size=70)
    (reviewer,) = members(label_repair)
    rate_all(label_repair, reviewer, limit=limit)
    return label_repair, accept_labels(label_repair, by=reviewer).question_set


def difference_of(candidate: Run, baseline: Run) -> RunDifference:
    baseline_side, candidate_side = load_sides([baseline, candidate])
    return difference(candidate_side, baseline_side)


def metric(run_difference: RunDifference, name: str) -> MetricDifference:
    return next(metric_difference for metric_difference in run_difference.metrics if metric_difference.name == name)


def check_of(run: Run, request: GateRequest) -> GateCheck:
    gate = run_gate(run, request)
    assert gate is not None
    return gate.checks[0]


@pytest.mark.slow
def test_difference_of_two_runs_is_corrected_and_shown_by_labels_alone() -> None:
    label_repair, version = accepted_repair()
    a, b = (scored_run(version, name, ranking) for name, ranking in zip("AB", RANKINGS, strict=True))
    run_difference = difference_of(b, a)
    repaired_values = {
        row.metric: row.value for row in compute_results(label_repair).figures if row.minus
    }  # A minus B, of the same pool
    for name in ("precision_at_k", "recall_at_k", "ndcg_at_k"):
        metric_difference = metric(run_difference, name)
        assert metric_difference.labels_missing
        assert metric_difference.corrected.value == pytest.approx(-(repaired_values[name] or 0))
        assert (metric_difference.corrected.target, metric_difference.corrected.n) == ("questions_like_these", 10)
        assert metric_difference.corrected.low is not None
        assert metric_difference.corrected.high is not None
    precision = metric(run_difference, "precision_at_k")
    assert precision.paired is not None
    assert precision.paired.value != pytest.approx(precision.corrected.value)
    assert metric(run_difference, "hit_at_k").corrected.withheld == "no_sum"
    metric_json = comparison_json(compare([a, b]))["differences"][0]["metrics"]["precision_at_k"]
    assert metric_json["corrected"]["value"] == pytest.approx(precision.corrected.value)
    assert metric_json["corrected"]["low"] < precision.corrected.low  # the error is held over all differences
    assert metric_json["difference"]["value"] == pytest.approx(precision.paired.value)


@pytest.mark.slow
def test_fully_rated_pool_is_exact_with_question_level_interval() -> None:
    label_repair, version = accepted_repair()
    rate_all(label_repair, members(label_repair)[0])
    a, b = (scored_run(version, name, ranking) for name, ranking in zip("AB", RANKINGS, strict=True))
    corrected = difference_of(b, a).metrics[0].corrected
    assert (corrected.value, corrected.low, corrected.no_interval) == (
        pytest.approx(0.2),
        None,
        "no_variation",
    )  # alike in each


def test_verdict_uses_corrected_figures_and_mentions_the_labels_alone() -> None:
    label_repair, version = accepted_repair(limit=60)
    a, b = (scored_run(version, name, ranking, **SCORED) for name, ranking in zip("AB", RANKINGS, strict=True))
    run_difference, names = difference_of(b, a), {"run": "B", "baseline": "A"}
    ndcg = metric(run_difference, "ndcg_at_k").corrected
    assert ndcg.low is not None
    sentence = lead_sentence(run_difference, names)
    assert sentence.startswith("By nDCG corrected for unlabelled passages: ")
    assert ("can't tell" in sentence) == (ndcg.low <= 0)
    assert other_sentence(run_difference, names).startswith("By labels only (unlabelled passages count as misses): ")
    assert ("more passages" in next_sentence(run_difference, names)) == (ndcg.low <= 0)
    lead = Client()
    lead.force_login(make_user(Role.LEAD, a.project))
    page = lead.get(f"{reverse('run-compare')}?runs={a.pk},{b.pk}").content.decode()
    assert "By nDCG corrected for unlabelled passages: " in page
    assert "unlabelled passages count as misses" in page
    assert "Corrected precision, recall and nDCG are shown below" in page
    assert label_repair.name in page


def test_passages_outside_the_pool_withhold_the_corrected_difference() -> None:
    _, version = accepted_repair()
    a, c = scored_run(version, "A", RANKINGS[0], **SCORED), scored_run(version, "C", (9, 0, 1, 2, 3), **SCORED)
    run_difference = difference_of(c, a)
    assert {metric(run_difference, name).corrected.withheld for name in ("precision_at_k", "ndcg_at_k")} == {
        "outside_pool"
    }
    assert "not in the repair" in lead_sentence(run_difference, {"run": "C", "baseline": "A"})
    check = check_of(c, GateRequest(fail_under=0.1, gate_on="recall_at_k"))
    assert (check.verdict, check.reason, check.value) == (GateVerdict.UNDECIDED, "outside_pool", None)


def test_run_on_the_old_version_is_compared_with_one_on_the_new() -> None:
    label_repair, version = accepted_repair()
    old_runs = [
        scored_run(label_repair.question_set, f"{name} old", ranking)
        for name, ranking in zip("AB", RANKINGS, strict=True)
    ]
    new_run = scored_run(version, "B", RANKINGS[1])
    repaired_values = {row.metric: row.value for row in compute_results(label_repair).figures if row.minus}
    for candidate in (old_runs[1], new_run):
        assert metric(difference_of(candidate, old_runs[0]), "recall_at_k").corrected.value == pytest.approx(
            -(repaired_values["recall_at_k"] or 0)
        )


@pytest.mark.slow
def test_gate_on_a_retrieval_metric_decides_on_the_corrected_figure() -> None:
    """Precision of B by labels alone is below .6; by the pool it is .6 in every question."""
    label_repair, version = accepted_repair(limit=40)
    a, b = (scored_run(version, name, ranking) for name, ranking in zip("AB", RANKINGS, strict=True))
    check = check_of(b, GateRequest(fail_under=0.3, gate_on="precision_at_k"))
    repaired_figure = next(
        row
        for row in compute_results(label_repair).figures
        if row.metric == "precision_at_k" and row.system == "System B v1"
    )
    assert check.value == pytest.approx(repaired_figure.value)
    label_precisions = [
        sum(gains) / 5 for gains, _ in (_gains(answer, RANKINGS[1]) for answer in builders.answer_rows(b))
    ]
    assert check.labels_alone == pytest.approx(sum(label_precisions) / 10)
    assert check.low is not None
    assert check.verdict is (GateVerdict.PASSED if check.low >= 0.3 else GateVerdict.UNDECIDED)
    assert check_of(b, GateRequest(fail_under=0.99, gate_on="precision_at_k")).verdict is GateVerdict.FAILED
    frequent_check = check_of(b, GateRequest(fail_under=0.3, gate_on="precision_at_k", looks=10))
    assert frequent_check.low is not None
    assert frequent_check.low < check.low
    drop = check_of(b, GateRequest(baseline=a, max_drop=0.9, gate_on="precision_at_k"))
    assert (drop.verdict, drop.labels_alone is not None) == (GateVerdict.PASSED, True)
    gate = run_gate(b, GateRequest(fail_under=0.3, gate_on="precision_at_k"))
    assert gate is not None
    assert "By labels only (unlabelled relevant passages count as misses): " in gate_reasons(gate)[0]
    assert json.loads(json.dumps(gate.to_dict()))["checks"][0]["labels_alone"] == pytest.approx(check.labels_alone)


def test_gate_on_complete_labels_uses_the_computed_metric() -> None:
    """Ten questions, recall 1, 0, 1, ...: mean .5, standard deviation sqrt(10 / 9) / 2 = .527; t(.975; 9) = 2.2622, so
    half the interval is 2.2622 x .527 / sqrt(10) = .3770."""
    label_repair = repair()
    run = builders.run_over(label_repair.systems.first().run.answer_set, judged=False)  # type: ignore[union-attr]
    builders.score_all(run, {"recall_at_k": [1.0, 0.0] * 5})
    check = check_of(run, GateRequest(fail_under=0.1, gate_on="recall_at_k"))
    assert (check.value, check.low, check.labels_alone) == (0.5, pytest.approx(0.5 - 0.3770, abs=1e-4), None)
    assert check.verdict is GateVerdict.PASSED
    assert check_of(run, GateRequest(fail_under=0.1, gate_on="ndcg_at_k")).reason == "no_values"


def test_no_gate_passes_on_a_score_with_unrated_passages_as_misses() -> None:
    _, version = accepted_repair()
    a, b = (scored_run(version, name, ranking, **SCORED) for name, ranking in zip("AB", RANKINGS, strict=True))
    for on in ("", "corrected", "judge_only"):
        for request in (GateRequest(fail_under=0.0, gate_on=on), GateRequest(baseline=a, max_drop=1.0, gate_on=on)):
            check = check_of(b, request)
            assert (check.verdict, check.reason) == (GateVerdict.UNDECIDED, "unrated_passages")
    gate = run_gate(b, GateRequest(fail_under=0.0))
    assert gate is not None
    assert gate.exit_code == 100
    plain_run = builders.run_over(b.answer_set, judged=False)  # a profile without a part that reads labels
    builders.score_all(plain_run, {"keyword_hit": [1.0, 0.0] * 5})
    assert check_of(plain_run, GateRequest(fail_under=0.0)).reason != "unrated_passages"
