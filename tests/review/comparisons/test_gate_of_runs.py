"""Quality gate: passed, failed or undecided, and the exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.models import Run
from review.comparisons.difference import difference
from review.comparisons.gates import gate_between, run_gate
from review.comparisons.values import SERVED_MODEL, load_sides
from review.reports.gate import GateRequest, GateScore
from review.statistics.paired_tests.gate import GateVerdict, Resource
from tests.factories import make_answer_set, make_user
from tests.review.builders import answer_rows, answers_to, imported_rating, metric, run_over
from tests.review.clients import Caller
from tests.review.sampled import fill, rate_all, rate_half, rate_other_parts

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """40 answers judged 5 and 3 by turns: overall .75 + .05 x 4 = .95.

    Standard deviation of correctness 1 x sqrt(40/39), of the overall .05 times that: the half-width is
    2.022691 x .05 / sqrt(39) = .016195, so that the interval is .9338 to .9662.
    """
    return fill(run_over(answers_to(["a"] * 40)), [5, 3] * 20)


def run_command(command: str, *arguments: str) -> tuple[str, int]:
    """Run a command and return its output and exit code."""
    out = StringIO()
    try:
        call_command(command, *arguments, stdout=out, stderr=StringIO())
    except SystemExit as ending:
        return out.getvalue(), int(ending.code or 0)
    return out.getvalue(), 0


@pytest.mark.parametrize(
    ("limit", "allowed", "verdict", "code"),
    [
        ("0.93", False, "passed", 0),
        ("0.97", False, "failed", 100),
        ("0.97", True, "failed", 100),
        ("0.94", False, "undecided, not passed", 100),
        ("0.94", True, "undecided, allowed", 0),
    ],
)
def test_gate_is_decided_by_the_whole_interval(run: Run, limit: str, allowed: bool, verdict: str, code: int) -> None:
    text, ending = run_command(
        "results", str(run.pk), "--fail-under", limit, *(["--allow-undecided"] if allowed else [])
    )
    assert text.splitlines()[0] == f"gate on the judge-only score: {verdict}"
    assert ending == code


def test_undecided_gate_reports_how_many_questions_would_decide_it(run: Run) -> None:
    gate = run_gate(run, GateRequest(fail_under=0.94))
    assert gate is not None
    (check,) = gate.checks
    assert check.low == pytest.approx(0.95 - 0.016195, abs=1e-6)
    assert check.settling is not None
    # 40 x (.016195 / .01)^2 = 104.9
    assert (check.settling.resource, check.settling.needed) == (Resource.QUESTIONS, 105)


def test_repeated_gate_shares_its_error_over_the_looks(run: Run) -> None:
    """With ten looks each has 99.5%: t(.9975; 39) = 2.976, the half-width .05 x 2.976 / sqrt(39) = .02383, so that
    .93, which .9338 had passed, lies inside; likewise for a drop, and for corrected scores."""
    text, code = run_command("results", str(run.pk), "--fail-under", "0.93", "--looks", "10")
    headline = (
        "gate on the judge-only score: undecided, not passed (one of 10 interim checks that share the 5% error rate)"
    )
    assert (text.splitlines()[0], code) == (headline, 100)
    gate = run_gate(run, GateRequest(fail_under=0.93, looks=10))
    assert gate is not None
    assert gate.checks[0].low == pytest.approx(0.95 - 0.02383, abs=1e-5)
    assert gate.to_dict()["looks"] == 10
    rate_half(run, [4, 5] * 10)
    single_look, ten_looks = (run_gate(run, GateRequest(fail_under=0.5, looks=look_count)) for look_count in (1, 10))
    assert single_look is not None
    assert ten_looks is not None
    assert (ten_looks.checks[0].low or 0) < (single_look.checks[0].low or 0) < (single_look.checks[0].high or 0)
    other_run = fill(
        run_over(
            make_answer_set(run.answer_set.question_set, texts=["Another answer."]),
            judge=run.judges.get().judge_version,
        ),
        [4] * 40,
    )
    drops = [
        run_gate(other_run, GateRequest(baseline=run, max_drop=0.02, gate_on="judge_only", looks=n)) for n in (1, 10)
    ]
    lows = [gate_result.checks[0].low or 0 for gate_result in drops if gate_result]
    assert lows[1] == pytest.approx(-0.02383, abs=1e-5)  # judged 4 everywhere: the same mean, differences of 1 by turns
    assert lows[1] < lows[0] == pytest.approx(-0.016195, abs=1e-6)


@pytest.mark.parametrize("look_count", [0, -1, 10_001])
def test_invalid_number_of_looks_is_refused(run: Run, look_count: int) -> None:
    with pytest.raises(DomainError, match="setting_range"):
        run_gate(run, GateRequest(fail_under=0.5, looks=look_count))


def test_gate_uses_the_corrected_score_when_available(run: Run) -> None:
    rate_half(run, [4, 5] * 10)  # of the half drawn all were judged 5
    gate = run_gate(run, GateRequest(fail_under=0.93))
    assert gate is not None
    assert gate.on is GateScore.CORRECTED
    judge_only_gate = run_gate(run, GateRequest(fail_under=0.93, gate_on="judge_only"))
    assert judge_only_gate is not None
    assert (judge_only_gate.on, judge_only_gate.verdict) == (GateScore.JUDGE_ONLY, GateVerdict.PASSED)


def test_partly_corrected_score_is_undecided(run: Run) -> None:
    """Correctness is rated completely; faithfulness (.20) and completeness (.15), judged 5 of 5, by nobody. They could
    be 1 to 5: .75 + .05 x 3.5 = .925 reaches down by .8 x .35 = .28 and further for other questions."""
    rate_all(run, [4, 3] * 20)
    gate = run_gate(run, GateRequest(fail_under=0.5))
    assert gate is not None
    (check,) = gate.checks
    assert (gate.on, check.verdict, check.reason) == (GateScore.CORRECTED, GateVerdict.UNDECIDED, "partly_corrected")
    assert check.value == pytest.approx(0.925)
    assert check.low is not None
    assert check.low < 0.925 - 0.28
    text, _ = run_command("results", str(run.pk), "--fail-under", "0.5")
    assert "so it is only partly corrected" in text


def test_difference_of_partly_corrected_scores_passes_no_gate(run: Run) -> None:
    rate_all(run, [4] * 40)
    other_run = fill(
        run_over(
            make_answer_set(run.answer_set.question_set, texts=["Another answer."]),
            judge=run.judges.get().judge_version,
        ),
        [1] * 40,
    )
    rate_all(other_run, [1] * 40)
    gate = run_gate(other_run, GateRequest(baseline=run, max_drop=0.02))
    assert gate is not None
    assert (gate.on, gate.verdict, gate.checks[0].reason) == (
        GateScore.CORRECTED,
        GateVerdict.UNDECIDED,
        "partly_corrected",
    )


def test_blind_rating_of_either_run_switches_the_gate_to_corrected_scores(run: Run) -> None:
    other_run = fill(
        run_over(
            make_answer_set(run.answer_set.question_set, texts=["Another answer."]),
            judge=run.judges.get().judge_version,
        ),
        [1] * 40,
    )
    imported_rating(answer_rows(run)[0], metric("correctness"), "e1", 4)
    gate = run_gate(other_run, GateRequest(baseline=run, max_drop=0.02))
    assert gate is not None
    assert (gate.on, gate.verdict) == (GateScore.CORRECTED, GateVerdict.UNDECIDED)


def test_withheld_corrected_score_is_undecided_when_requested(run: Run) -> None:
    gate = run_gate(run, GateRequest(fail_under=0.5, gate_on="corrected"))
    assert gate is not None
    assert (gate.verdict, gate.checks[0].reason) == (GateVerdict.UNDECIDED, "not_reviewed")


def test_score_without_variation_is_undecided() -> None:
    gate = run_gate(fill(run_over(answers_to(["a"] * 4)), [5] * 4), GateRequest(fail_under=0.5))
    assert gate is not None
    assert (gate.verdict, gate.checks[0].reason, gate.checks[0].value) == (
        GateVerdict.UNDECIDED,
        "no_variation",
        pytest.approx(1.0),
    )


def test_same_answers_with_the_same_values_do_not_drop(run: Run) -> None:
    again = fill(run_over(run.answer_set, judge=run.judges.get().judge_version), [5, 3] * 20)
    first = fill(run_over(run.answer_set, judge=run.judges.get().judge_version), [5, 3] * 20)
    gate = run_gate(again, GateRequest(baseline=first, max_drop=0.0))
    assert gate is not None
    assert gate.verdict is GateVerdict.PASSED
    assert (gate.checks[0].low, gate.checks[0].high, gate.checks[0].target) == (0.0, 0.0, "this_run")


def test_drop_is_measured_question_by_question(run: Run) -> None:
    judge = run.judges.get().judge_version
    question_set = run.answer_set.question_set
    worse_run = fill(
        run_over(make_answer_set(question_set, texts=["Another answer."]), judge=judge), [5, 2] * 20
    )  # 1 lower on every other question
    # overall .05 x -.5 = -.025; deviation .05 x .5 x sqrt(40/39): half-width 2.022691 x .025 / sqrt(39) = .0081
    gates = [run_gate(worse_run, GateRequest(baseline=run, max_drop=drop)) for drop in (0.04, 0.01, 0.02)]
    assert [gate.verdict for gate in gates if gate] == [
        GateVerdict.PASSED,
        GateVerdict.FAILED,
        GateVerdict.UNDECIDED,
    ]
    assert gates[0] is not None
    assert gates[0].checks[0].low == pytest.approx(-0.025 - 0.0080974, abs=1e-6)
    assert gates[0].baseline_id == run.pk


def test_corrected_scores_are_compared_when_both_runs_are_rated(run: Run) -> None:
    judge = run.judges.get().judge_version
    other_run = fill(
        run_over(make_answer_set(run.answer_set.question_set, texts=["Another answer."]), judge=judge), [5, 3] * 20
    )
    for index, (first_answer, second_answer) in enumerate(zip(answer_rows(run), answer_rows(other_run), strict=True)):
        imported_rating(first_answer, metric("correctness"), "e1", 4)
        imported_rating(second_answer, metric("correctness"), "e1", 2 + index % 2)
    rate_other_parts(run)
    rate_other_parts(other_run)
    gate = run_gate(other_run, GateRequest(baseline=run, max_drop=0.02))
    assert gate is not None
    # experts: 2.5 against 4, -1.5 x .05 = -.075
    assert (gate.on, gate.verdict) == (GateScore.CORRECTED, GateVerdict.FAILED)
    assert gate.checks[0].value == pytest.approx(-0.075)


def test_corrected_scores_are_compared_across_judge_models(run: Run) -> None:
    judge = run.judges.get().judge_version
    other_run = fill(
        run_over(make_answer_set(run.answer_set.question_set, texts=["Another answer."]), judge=judge), [5, 2] * 20
    )
    for index, (first_answer, second_answer) in enumerate(zip(answer_rows(run), answer_rows(other_run), strict=True)):
        imported_rating(first_answer, metric("correctness"), "e1", 4)
        imported_rating(second_answer, metric("correctness"), "e1", 2 + index % 2)
    rate_other_parts(run)
    rate_other_parts(other_run)
    baseline, other_side = load_sides([run, other_run])
    mixed_models = replace(difference(other_side, baseline), differs={SERVED_MODEL: ["one (40)", "another (40)"]})
    corrected, judge_only = (
        gate_between(other_side, mixed_models, GateRequest(baseline=run, max_drop=0.02, gate_on=score_kind))
        for score_kind in ("corrected", "judge_only")
    )
    assert (corrected.verdict, corrected.checks[0].reason) == (GateVerdict.FAILED, "")
    assert (judge_only.verdict, judge_only.checks[0].reason) == (GateVerdict.UNDECIDED, SERVED_MODEL)


def test_incomplete_run_fails_the_gate(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=Run.State.INCOMPLETE, reason="failed_share: correctness")
    text, code = run_command("results", str(run.pk), "--fail-under", "0.1")
    assert code == 100
    assert "More than a tenth of a part's results failed, or rely only on" in text


def test_json_report_contains_the_gate_or_null(run: Run) -> None:
    text, _ = run_command("results", str(run.pk), "--fail-under", "0.93", "--format", "json")
    gate = json.loads(text)["gate"]
    assert gate["on"] == "judge_only"
    assert gate["verdict"] == "pass"
    assert gate["exit_code"] == 0
    assert gate["checks"][0] == {
        "rule": "fail_under",
        "limit": 0.93,
        "value": pytest.approx(0.95),
        "low": pytest.approx(0.933805, abs=1e-6),
        "high": pytest.approx(0.966195, abs=1e-6),
        "target": "questions_like_these",
        "verdict": "pass",
    }
    assert json.loads(run_command("results", str(run.pk), "--format", "json")[0])["gate"] is None


@pytest.mark.parametrize(
    "arguments", [["--max-drop", "0.1"], ["--baseline", "1"], ["--baseline", "999", "--max-drop", "0"]]
)
def test_incompatible_options_are_a_usage_error(run: Run, arguments: list[str]) -> None:
    if arguments[1] == "1":
        arguments[1] = str(run.pk)
    with pytest.raises(CommandError) as error_info:
        run_command("results", str(run.pk), *arguments)
    assert error_info.value.returncode == 2


def test_negative_drop_is_refused(run: Run) -> None:
    with pytest.raises(DomainError, match="setting_range"):
        run_gate(run, GateRequest(baseline=run, max_drop=-0.1))


def test_no_gate_without_a_limit(run: Run) -> None:
    assert run_gate(run, GateRequest(allow_undecided=True)) is None


def streamed_json(response: Any) -> Any:
    return json.loads(b"".join(response.streaming_content))


def test_rest_report_contains_the_gate(run: Run) -> None:
    caller = Caller(make_user(Role.VIEWER, run.project))
    assert streamed_json(caller.get(f"runs/{run.pk}/report/?fail_under=0.97"))["gate"]["verdict"] == "fail"
    assert streamed_json(caller.get(f"runs/{run.pk}/report/"))["gate"] is None
    assert caller.get(f"runs/{run.pk}/report/?max_drop=0.1").status_code in {400, 409}
    assert caller.get(f"runs/{run.pk}/report/?fail_under=high").status_code == 400
    foreign_run = run_over(make_answer_set())
    assert caller.get(f"runs/{run.pk}/report/?baseline={foreign_run.pk}&max_drop=0.1").status_code == 404


@pytest.mark.slow
def test_evaluate_command_prints_the_gate_and_writes_it_to_reports(tmp_path: Path) -> None:
    answers = make_answer_set()
    options = ["--questions", answers.question_set.name, "--system", answers.system_version.system.name]
    report = tmp_path / "report.json"
    text, code = run_command("evaluate", *options, "--fail-under", "0.01", "--output", str(report))
    assert text.splitlines()[0] == "gate on the judge-only score: passed"
    assert code == 0
    assert json.loads(report.read_text(encoding="utf-8"))["gate"]["verdict"] == "pass"
    text, code = run_command(
        "evaluate", *options, "--reuse-answers", str(Run.objects.latest("id").pk), "--fail-under", "1.5"
    )
    assert (text.splitlines()[0], code) == ("gate on the judge-only score: failed", 100)
