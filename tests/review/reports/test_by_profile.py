"""Profile section of a report, with figures worked by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from evaluation.core.errors import DomainError
from evaluation.judges.shipped import definitions, profile_row
from evaluation.models import Finding, Run, Score
from review.comparisons.gates import run_gate
from review.reports.exports import export
from review.reports.gate import GateRequest, gate_line, gate_reasons
from review.reports.profile_section import ProfileSection
from tests.review.builders import FAILED, NOT_APPLICABLE, answers_to, make_report, run_over, score_all

pytestmark = pytest.mark.django_db
CATEGORIES = ["single_hop", "single_hop", "multi_hop_2", "negative"]


def scored_run(profile: str, **values: list[float | str | None]) -> Run:
    answers = answers_to(CATEGORIES)
    run = run_over(answers, profile=profile_row(answers.project, profile))
    score_all(run, values)
    return run


def section(run: Run) -> ProfileSection:
    return make_report(run).by_profile


def report_json(run: Run) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(b"".join(export(run, "json").chunks))
    return report


def ragas_run() -> Run:
    return scored_run(
        "ragas",
        claim_support=[1.0, 0.0, NOT_APPLICABLE, 0.5],
        context_precision=[NOT_APPLICABLE, 0.0, NOT_APPLICABLE, 50.0],
        context_recall=[100.0, 0.0, NOT_APPLICABLE, 50.0],
        answer_relevance=[83.27, 83.27, 82.29, 50.0],
        factual_accuracy=[80.0, 59.9, 10.0, 79.99],
        answer_class=["CORRECT", "WRONG", "WRONG", "DONT_KNOW"],
        dont_know=[0, 0, 0, 1],
    )


def test_ragas_figures_have_their_own_names_and_scales() -> None:
    figures = section(ragas_run()).figures
    assert figures["ragas_faithfulness"] == pytest.approx(50.0)  # (1 + 0 + .5) / 3, x 100
    # (93.72625 + 24.981 + 82.29 + 50) / 4
    assert figures["ragas_score"] == pytest.approx(62.7493125)
    assert figures["factual_accuracy_percentage"] == pytest.approx(57.4725)
    assert (figures["correct_answers_count"], figures["wrong_answers_count"], figures["dont_know_answers_count"]) == (
        *(1, 2, 1),
    )


def test_ragas_has_grades_classes_and_spread() -> None:
    profile_section = section(ragas_run())
    (grades,) = profile_section.bands
    assert dict(grades.answers) == {"a": 1, "b": 1, "c": 1, "d": 0, "e": 1}
    assert grades.band is not None
    assert grades.band.name == "c"
    (table,) = profile_section.classes
    assert {share.label: (share.count, share.share) for share in table.total} == {
        "CORRECT": (1, 0.25),
        "WRONG": (2, 0.5),
        "DONT_KNOW": (1, 0.25),
    }
    assert table.total[0].low < 0.25 < table.total[0].high
    assert table.categories["single_hop"] == {"CORRECT": 1, "WRONG": 1, "DONT_KNOW": 0}
    assert profile_section.abstention is not None
    assert (profile_section.abstention.answerable_answered, profile_section.abstention.unanswerable_abstained) == (3, 1)
    overall, single, multi, negative = profile_section.spread
    assert (overall.category, overall.n, overall.lowest) == ("", 4, pytest.approx(24.981))
    assert (single.category, single.n, single.highest) == ("single_hop", 2, pytest.approx(93.72625))
    assert multi.mean == pytest.approx(82.29)
    assert negative.mean == pytest.approx(50.0)


def test_evaluation_section_uses_the_ragas_scale() -> None:
    evaluation = make_report(ragas_run()).evaluation
    assert evaluation["ragas_score"] == pytest.approx(62.7493125)
    assert evaluation["llm_judge"]["ragas_faithfulness"] == pytest.approx(50.0)


def test_generation_has_bands_patterns_and_a_diagnosis() -> None:
    profile_section = section(
        scored_run(
            "generation",
            recall_at_k=[1.0, 0.5, 1.0, NOT_APPLICABLE],
            generation_faithfulness=[0.9, 0.7, 0.2, 0.5],
            answer_relevancy=[0.9, 0.8, 0.7, FAILED],
        )
    )
    patterns, diagnosis = profile_section.diagnoses
    assert dict(patterns.answers) == {"hallucination_risk": 1, "wrong_passages": 0, "sound": 2, "broken": 0}
    assert patterns.unknown == 1  # its relevancy failed, so nobody knows the pattern
    # means: faithfulness 2.3 / 4 = .575, relevancy 2.4 / 3 = .8, recall 2.5 / 3
    assert patterns.run is not None
    assert patterns.run.name == "hallucination_risk"
    assert diagnosis.run is not None
    assert diagnosis.run.name == "generation_stage"
    assert dict(diagnosis.answers) == {"healthy": 1, "generation_stage": 1, "own_knowledge": 1, "retrieval_stage": 0}
    by_name = {band.name: band for band in profile_section.bands}
    assert by_name["mean_answer_relevancy"].band is not None
    assert by_name["mean_answer_relevancy"].band.name == "good"  # .8 itself is not above .8
    assert dict(by_name["mean_faithfulness"].answers) == {"excellent": 1, "good": 1, "fair": 1, "needs_work": 1}
    assert profile_section.passing is None
    assert profile_section.figures["mean_faithfulness"] == pytest.approx(0.575)


def regulation_run() -> Run:
    run = scored_run(
        "regulation",
        accuracy=[0.9, 0.85, 1.0, 1.0],
        answer_completeness=[0.8, 0.75, 1.0, 1.0],
        citations=[0.7, 0.70, 1.0, FAILED],
        context_relevance=[0.8, 0.75, 1.0, 1.0],
        hallucination_flags=[0, 0, 1, 0],
    )
    flagged = Score.objects.get(run=run, metric__name="hallucination_flags", value=1)
    Score.objects.create(
        run=run,
        answer=flagged.answer,
        metric=flagged.metric,
        origin=flagged.origin,
        round=1,
        status="scored",
        value=1,
        detail={"unknown_phone": 1, "forbidden_name": 0, "avoidance": 0},
    )
    return run


def test_regulation_reports_its_pass_rate_and_failure_reasons() -> None:
    passing = section(regulation_run()).passing
    assert passing is not None
    # .815 passes; .775 at every threshold does not; full scores with a phone number do not; a failed part is unknown
    assert (passing.passed, passing.failed, passing.unknown) == (1, 2, 1)
    assert passing.rate == pytest.approx(1 / 3)
    assert passing.low is not None
    assert passing.high is not None
    assert passing.low < 1 / 3 < passing.high
    assert dict(passing.below) == {
        "overall_score": 1,
        "accuracy": 0,
        "completeness": 0,
        "citations": 0,
        "context_relevance": 0,
    }
    assert dict(passing.flags) == {"unknown_phone": 1, "forbidden_name": 0, "avoidance": 0}


def test_regulation_has_its_fields_for_every_answer() -> None:
    run = regulation_run()
    accuracy_score = (
        Score.objects.filter(run=run, metric__name="accuracy").order_by("answer__question__position").first()
    )
    assert accuracy_score is not None
    Finding.objects.create(score=accuracy_score, kind="issue", position=0, text="no article")
    first, _, third, fourth = (entry["source"] for entry in report_json(run)["evaluation"]["details"])
    assert first["overall_score"] == pytest.approx(0.815)
    assert first["passed"] is True
    assert first["metric_status"] == {
        "overall_score": True,
        "accuracy": True,
        "completeness": True,
        "citations": True,
        "context_relevance": True,
    }
    assert first["metric_scores"]["completeness"] == 0.8
    assert first["weights"] == {"accuracy": 0.35, "completeness": 0.25, "citations": 0.2, "context_relevance": 0.2}
    assert (first["issues"], first["strengths"]) == (["no article"], [])
    assert (third["passed"], third["automatic_failures"]) == (False, ["unknown_phone"])
    assert (fourth["passed"], fourth["overall_score"], fourth["failed"]) == (None, None, {"citations": "timeout"})


def test_phases_has_its_fields_for_every_answer() -> None:
    run = scored_run(
        "phases",
        citation_coverage=[0.5, 1.0, 1.0, 0.0],
        nugget_coverage=[2 / 3, 1.0, 0.0, 0.0],
        claim_support=[0.75, 1.0, 0.0, 0.0],
        next_steps=["medium", "low", "low", "low"],
    )
    about = {name: Score.objects.filter(run=run, metric=row) for name, row in definitions(["claim_support"]).items()}
    first_claim = about["claim_support"].order_by("answer__question__position").first()
    assert first_claim is not None
    for position, (text, verdict) in enumerate([("a", "supported"), ("b", "partial"), ("c", "contradicted")]):
        Finding.objects.create(score=first_claim, kind="claim", position=position, text=text, verdict=verdict)
    report = report_json(run)
    first, second = (entry["source"] for entry in report["evaluation"]["details"][:2])
    assert (first["supported_claims"], first["unsupported_claims"]) == (["a"], ["b", "c"])
    # .2 x .5 + .3 x 2/3 + .4 x .75 + .1 = .7, which needs no improvement
    assert (first["overall_score"], first["needs_improvement"]) == (pytest.approx(0.7), False)
    assert (second["overall_score"], second["groundedness"], second["urgency"]) == (pytest.approx(1.0), 1.0, "low")
    assert {"cited_chunks", "uncited_chunks", "covered_nuggets", "missing_nuggets"} <= set(first)
    figures = report["by_profile"]["figures"]
    # (.7 + 1 + .3 + .1) / 4
    assert figures["overall_score"] == pytest.approx(0.525)
    assert {"context_relevance", "completeness", "groundedness"} <= set(figures)
    assert report["by_profile"]["bands"]["overall_score"]["answers"] == {"needs_improvement": 2, "sufficient": 2}


def test_deviations_are_listed_in_both_languages() -> None:
    deviations = report_json(ragas_run())["by_profile"]["deviations"]
    assert len(deviations) == 7
    assert all(set(deviation) == {"en", "ko"} for deviation in deviations)


def test_profile_without_rules_has_figures_only() -> None:
    run = run_over(answers_to(["single_hop"] * 3))
    score_all(run, {"keyword_hit": [1, 0, 1]})
    profile_section = section(run)
    assert not profile_section.has_content
    assert profile_section.figures["keyword_hit_rate"] == pytest.approx(2 / 3)
    assert profile_section.figures["avg_correctness"] is None


def test_flags_cost_one_query_only_where_they_can_fail_an_answer(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    run, other_run = regulation_run(), ragas_run()
    with django_assert_max_num_queries(25):
        make_report(run)
    with django_assert_max_num_queries(23):
        make_report(other_run)


def test_regulation_pass_rate_is_gated_by_its_exact_interval() -> None:
    run = regulation_run()
    # one of three: the exact 95% interval is 0.0084 to 0.9057
    gate = run_gate(run, GateRequest(fail_under=0.5, gate_on="pass_rate"))
    assert gate is not None
    (check,) = gate.checks
    assert (check.value, check.low, check.high) == pytest.approx((1 / 3, 0.0084, 0.9057), abs=5e-5)
    assert (str(gate.verdict), gate_line(gate)) == ("undecided", "gate on the pass rate: undecided, not passed")
    # one third of 24 answers reaches from 0.156 to 0.553, of 40 to 0.499: checked with scipy's betaincinv
    assert check.settling is not None
    assert gate_reasons(gate)[0].endswith("About 40 questions in total would settle it if the value stays the same.")
    lenient_gate, strict_gate = (
        run_gate(run, GateRequest(fail_under=limit, gate_on="pass_rate")) for limit in (0.005, 0.95)
    )
    assert lenient_gate is not None
    assert strict_gate is not None
    assert (str(lenient_gate.verdict), lenient_gate.exit_code) == ("pass", 0)
    assert (str(strict_gate.verdict), strict_gate.exit_code) == ("fail", 100)
    wider = run_gate(run, GateRequest(fail_under=0.5, gate_on="pass_rate", looks=10))
    assert wider is not None
    assert (wider.checks[0].low or 1) < (check.low or 0)


def test_pass_rate_without_a_rule_has_no_value_and_no_drop() -> None:
    gate = run_gate(ragas_run(), GateRequest(fail_under=0.5, gate_on="pass_rate"))
    assert gate is not None
    assert (gate.checks[0].value, gate.checks[0].reason) == (None, "no_values")
    run = regulation_run()
    with pytest.raises(DomainError, match="gate_no_drop"):
        run_gate(run, GateRequest(baseline=run, max_drop=0.1, gate_on="pass_rate"))
