"""Comparisons and gates of runs whose labels come from a repair that is not complete: by the corrected figures, with
those by labels alone beside them, or not at all."""

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


def scored(version: QuestionSet, name: str, ranking: tuple[int, ...], **profile: object) -> Run:
    """A run by rules alone over the ranking, with what the labels of its version say."""
    answers = run_over(version, f"{name} new", ranking).answer_set
    spec = {"name": "retrieval", "title": {"en": "Retrieval", "ko": "검색"}, "reported": list(METRICS)} | profile
    run = builders.run_over(answers, judged=False, profile=make_profile(answers.project, spec))
    gains = [_gains(answer, ranking) for answer in builders.answer_rows(run)]
    values = {
        "precision_at_k": [sum(found) / 5 for found, _ in gains],
        "recall_at_k": [sum(found) / known for found, known in gains],
        "hit_at_k": [float(any(found)) for found, _ in gains],
        "ndcg_at_k": [sum(found) / known for found, known in gains],  # not its formula, which is tested elsewhere
    }
    builders.score_all(run, values)
    return run


def _gains(answer: Answer, ranking: tuple[int, ...]) -> tuple[list[bool], int]:
    truth = set(answer.question.read().ground_truth_chunk_ids)
    return [f"{answer.question.external_id}-{place}" in truth for place in ranking], len(truth)


def accepted(most: int = 40) -> tuple[RetrievalRepair, QuestionSet]:
    """A repair with labels taken over after so many ratings of 70, and the version that has them."""
    found = repair(size=70)
    (one,) = members(found)
    rate_all(found, one, most=most)
    return found, accept_labels(found, by=one).question_set


def compared(ours: Run, baseline: Run) -> RunDifference:
    theirs, mine = load_sides([baseline, ours])
    return difference(mine, theirs)


def metric(found: RunDifference, name: str) -> MetricDifference:
    return next(one for one in found.metrics if one.name == name)


def check_of(run: Run, asked: GateRequest) -> GateCheck:
    found = run_gate(run, asked)
    assert found is not None
    return found.checks[0]


@pytest.mark.slow
def test_the_difference_of_two_runs_is_corrected_beside_that_by_labels_alone() -> None:
    found, version = accepted()
    a, b = (scored(version, name, ranking) for name, ranking in zip("AB", RANKINGS, strict=True))
    told = compared(b, a)
    whole = {
        row.metric: row.value for row in compute_results(found).figures if row.minus
    }  # A minus B, of the same pool
    for name in ("precision_at_k", "recall_at_k", "ndcg_at_k"):
        one = metric(told, name)
        assert one.labels_missing
        assert one.corrected.value == pytest.approx(-(whole[name] or 0))
        assert (one.corrected.target, one.corrected.n) == ("questions_like_these", 10)
        assert one.corrected.low is not None
        assert one.corrected.high is not None
    precision = metric(told, "precision_at_k")
    assert precision.paired is not None
    assert precision.paired.value != pytest.approx(precision.corrected.value)
    assert metric(told, "hit_at_k").corrected.withheld == "no_sum"
    held = comparison_json(compare([a, b]))["differences"][0]["metrics"]["precision_at_k"]
    assert held["corrected"]["value"] == pytest.approx(precision.corrected.value)
    assert held["corrected"]["low"] < precision.corrected.low  # the error is held over all differences
    assert held["difference"]["value"] == pytest.approx(precision.paired.value)


@pytest.mark.slow
def test_where_the_pool_is_rated_as_a_whole_the_values_are_the_truth_and_the_interval_is_of_the_questions() -> None:
    found, version = accepted()
    rate_all(found, members(found)[0])
    a, b = (scored(version, name, ranking) for name, ranking in zip("AB", RANKINGS, strict=True))
    told = compared(b, a).metrics[0].corrected
    assert (told.value, told.low, told.no_interval) == (pytest.approx(0.2), None, "no_variation")  # alike in each


def test_the_verdict_goes_by_what_is_corrected_and_says_what_the_labels_alone_say() -> None:
    found, version = accepted(most=60)
    a, b = (scored(version, name, ranking, **SCORED) for name, ranking in zip("AB", RANKINGS, strict=True))
    told, names = compared(b, a), {"run": "B", "baseline": "A"}
    ndcg = metric(told, "ndcg_at_k").corrected
    assert ndcg.low is not None
    said = lead_sentence(told, names)
    assert said.startswith("By nDCG, corrected for passages without a label: ")
    assert ("cannot tell" in said) == (ndcg.low <= 0)
    assert other_sentence(told, names).startswith("By the labels alone, where passages without one count as misses: ")
    assert ("more passages" in next_sentence(told, names)) == (ndcg.low <= 0)
    lead = Client()
    lead.force_login(make_user(Role.LEAD, a.project))
    page = lead.get(f"{reverse('run-compare')}?runs={a.pk},{b.pk}").content.decode()
    assert "By nDCG, corrected for passages without a label: " in page
    assert "passages without a label count as misses" in page
    assert "Precision, recall and nDCG stand corrected below" in page
    assert found.name in page


def test_a_run_with_passages_outside_the_pool_has_no_corrected_difference_and_says_why() -> None:
    _, version = accepted()
    a, c = scored(version, "A", RANKINGS[0], **SCORED), scored(version, "C", (9, 0, 1, 2, 3), **SCORED)
    told = compared(c, a)
    assert {metric(told, name).corrected.withheld for name in ("precision_at_k", "ndcg_at_k")} == {"outside_pool"}
    assert "not in the pool of the repair" in lead_sentence(told, {"run": "C", "baseline": "A"})
    check = check_of(c, GateRequest(fail_under=0.1, gate_on="recall_at_k"))
    assert (check.verdict, check.reason, check.value) == (GateVerdict.UNDECIDED, "outside_pool", None)


def test_a_run_on_the_old_version_is_compared_by_the_repair_with_one_on_the_new() -> None:
    found, version = accepted()
    old = [scored(found.question_set, f"{name} old", ranking) for name, ranking in zip("AB", RANKINGS, strict=True)]
    new = scored(version, "B", RANKINGS[1])
    whole = {row.metric: row.value for row in compute_results(found).figures if row.minus}
    for ours in (old[1], new):
        assert metric(compared(ours, old[0]), "recall_at_k").corrected.value == pytest.approx(
            -(whole["recall_at_k"] or 0)
        )


@pytest.mark.slow
def test_a_gate_on_a_retrieval_metric_decides_on_the_corrected_figure() -> None:
    """Precision of B by labels alone is below .6; by the pool it is .6 in every question."""
    found, version = accepted(most=40)
    a, b = (scored(version, name, ranking) for name, ranking in zip("AB", RANKINGS, strict=True))
    check = check_of(b, GateRequest(fail_under=0.3, gate_on="precision_at_k"))
    whole = next(
        row for row in compute_results(found).figures if row.metric == "precision_at_k" and row.system == "System B v1"
    )
    assert check.value == pytest.approx(whole.value)
    alone = [sum(gains) / 5 for gains, _ in (_gains(one, RANKINGS[1]) for one in builders.answer_rows(b))]
    assert check.labels_alone == pytest.approx(sum(alone) / 10)
    assert check.low is not None
    assert check.verdict is (GateVerdict.PASSED if check.low >= 0.3 else GateVerdict.UNDECIDED)
    assert check_of(b, GateRequest(fail_under=0.99, gate_on="precision_at_k")).verdict is GateVerdict.FAILED
    often = check_of(b, GateRequest(fail_under=0.3, gate_on="precision_at_k", looks=10))
    assert often.low is not None
    assert often.low < check.low
    drop = check_of(b, GateRequest(baseline=a, max_drop=0.9, gate_on="precision_at_k"))
    assert (drop.verdict, drop.labels_alone is not None) == (GateVerdict.PASSED, True)
    gate = run_gate(b, GateRequest(fail_under=0.3, gate_on="precision_at_k"))
    assert gate is not None
    assert "By the labels alone, where relevant passages without one count as misses: " in gate_reasons(gate)[0]
    assert json.loads(json.dumps(gate.to_dict()))["checks"][0]["labels_alone"] == pytest.approx(check.labels_alone)


def test_a_gate_on_a_retrieval_metric_of_complete_labels_takes_it_as_computed() -> None:
    """Ten questions, recall 1, 0, 1, ...: mean .5, standard deviation sqrt(10 / 9) / 2 = .527; t(.975; 9) = 2.2622, so
    half the interval is 2.2622 x .527 / sqrt(10) = .3770."""
    found = repair()
    run = builders.run_over(found.systems.first().run.answer_set, judged=False)  # type: ignore[union-attr]
    builders.score_all(run, {"recall_at_k": [1.0, 0.0] * 5})
    check = check_of(run, GateRequest(fail_under=0.1, gate_on="recall_at_k"))
    assert (check.value, check.low, check.labels_alone) == (0.5, pytest.approx(0.5 - 0.3770, abs=1e-4), None)
    assert check.verdict is GateVerdict.PASSED
    assert check_of(run, GateRequest(fail_under=0.1, gate_on="ndcg_at_k")).reason == "no_values"


def test_no_gate_passes_on_a_score_that_counts_unrated_passages_as_misses() -> None:
    _, version = accepted()
    a, b = (scored(version, name, ranking, **SCORED) for name, ranking in zip("AB", RANKINGS, strict=True))
    for on in ("", "corrected", "judge_only"):
        for asked in (GateRequest(fail_under=0.0, gate_on=on), GateRequest(baseline=a, max_drop=1.0, gate_on=on)):
            check = check_of(b, asked)
            assert (check.verdict, check.reason) == (GateVerdict.UNDECIDED, "unrated_passages")
    gate = run_gate(b, GateRequest(fail_under=0.0))
    assert gate is not None
    assert gate.exit_code == 100
    plain = builders.run_over(b.answer_set, judged=False)  # a profile without a part that reads labels
    builders.score_all(plain, {"keyword_hit": [1.0, 0.0] * 5})
    assert check_of(plain, GateRequest(fail_under=0.0)).reason != "unrated_passages"
