"""The quality gate: passed, failed, undecided, and with which exit code."""

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
from tests.review.sampled import fill, rate_all, rate_half, rate_the_others

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """40 answers judged 5 and 3 by turns: overall .75 + .05 x 4 = .95.

    Standard deviation of correctness 1 x sqrt(40/39), of the overall .05 times that: the half-width is
    2.022691 x .05 / sqrt(39) = .016195, so that the interval is .9338 to .9662.
    """
    return fill(run_over(answers_to(["a"] * 40)), [5, 3] * 20)


def ended(command: str, *arguments: str) -> tuple[str, int]:
    """What a command printed, and its exit code."""
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
def test_the_whole_interval_decides(run: Run, limit: str, allowed: bool, verdict: str, code: int) -> None:
    text, ending = ended("results", str(run.pk), "--fail-under", limit, *(["--allow-undecided"] if allowed else []))
    assert text.splitlines()[0] == f"gate on the judge-only score: {verdict}"
    assert ending == code


def test_an_open_question_says_how_many_questions_would_settle_it(run: Run) -> None:
    found = run_gate(run, GateRequest(fail_under=0.94))
    assert found is not None
    (check,) = found.checks
    assert check.low == pytest.approx(0.95 - 0.016195, abs=1e-6)
    assert check.settling is not None
    # 40 x (.016195 / .01)^2 = 104.9
    assert (check.settling.resource, check.settling.needed) == (Resource.QUESTIONS, 105)


def test_a_gate_asked_often_shares_the_error_over_its_looks(run: Run) -> None:
    """With ten looks each has 99.5%: t(.9975; 39) = 2.976, the half-width .05 x 2.976 / sqrt(39) = .02383, so that
    .93, which .9338 had passed, lies inside; likewise for a drop, and for corrected scores."""
    text, code = ended("results", str(run.pk), "--fail-under", "0.93", "--looks", "10")
    said = "gate on the judge-only score: undecided, not passed (one of 10 looks that share the 5% of error)"
    assert (text.splitlines()[0], code) == (said, 100)
    found = run_gate(run, GateRequest(fail_under=0.93, looks=10))
    assert found is not None
    assert found.checks[0].low == pytest.approx(0.95 - 0.02383, abs=1e-5)
    assert found.to_dict()["looks"] == 10
    rate_half(run, [4, 5] * 10)
    alone, often = (run_gate(run, GateRequest(fail_under=0.5, looks=looks)) for looks in (1, 10))
    assert alone is not None
    assert often is not None
    assert (often.checks[0].low or 0) < (alone.checks[0].low or 0) < (alone.checks[0].high or 0)
    other = fill(run_over(make_answer_set(run.answer_set.question_set), judge=run.judges.get().judge_version), [4] * 40)
    drops = [run_gate(other, GateRequest(baseline=run, max_drop=0.02, gate_on="judge_only", looks=n)) for n in (1, 10)]
    lows = [one.checks[0].low or 0 for one in drops if one]
    assert lows[1] == pytest.approx(-0.02383, abs=1e-5)  # judged 4 everywhere: the same mean, differences of 1 by turns
    assert lows[1] < lows[0] == pytest.approx(-0.016195, abs=1e-6)


@pytest.mark.parametrize("looks", [0, -1, 10_001])
def test_a_number_of_looks_that_means_nothing_is_refused(run: Run, looks: int) -> None:
    with pytest.raises(DomainError, match="setting_range"):
        run_gate(run, GateRequest(fail_under=0.5, looks=looks))


def test_the_corrected_score_is_looked_at_where_it_is_offered(run: Run) -> None:
    rate_half(run, [4, 5] * 10)  # of the half drawn all were judged 5
    found = run_gate(run, GateRequest(fail_under=0.93))
    assert found is not None
    assert found.on is GateScore.CORRECTED
    judged = run_gate(run, GateRequest(fail_under=0.93, gate_on="judge_only"))
    assert judged is not None
    assert (judged.on, judged.verdict) == (GateScore.JUDGE_ONLY, GateVerdict.PASSED)


def test_a_partly_corrected_score_tells_nothing(run: Run) -> None:
    """Correctness is rated completely; faithfulness (.20) and completeness (.15), judged 5 of 5, by nobody. They could
    be 1 to 5: .75 + .05 x 3.5 = .925 reaches down by .8 x .35 = .28 and further for other questions."""
    rate_all(run, [4, 3] * 20)
    found = run_gate(run, GateRequest(fail_under=0.5))
    assert found is not None
    (check,) = found.checks
    assert (found.on, check.verdict, check.reason) == (GateScore.CORRECTED, GateVerdict.UNDECIDED, "partly_corrected")
    assert check.value == pytest.approx(0.925)
    assert check.low is not None
    assert check.low < 0.925 - 0.28
    text, _ = ended("results", str(run.pk), "--fail-under", "0.5")
    assert "so it is only partly corrected" in text


def test_a_difference_of_partly_corrected_scores_passes_no_gate(run: Run) -> None:
    rate_all(run, [4] * 40)
    other = fill(run_over(make_answer_set(run.answer_set.question_set), judge=run.judges.get().judge_version), [1] * 40)
    rate_all(other, [1] * 40)
    found = run_gate(other, GateRequest(baseline=run, max_drop=0.02))
    assert found is not None
    assert (found.on, found.verdict, found.checks[0].reason) == (
        GateScore.CORRECTED,
        GateVerdict.UNDECIDED,
        "partly_corrected",
    )


def test_a_blind_rating_of_either_run_makes_the_gate_look_at_corrected_scores(run: Run) -> None:
    other = fill(run_over(make_answer_set(run.answer_set.question_set), judge=run.judges.get().judge_version), [1] * 40)
    imported_rating(answer_rows(run)[0], metric("correctness"), "e1", 4)
    found = run_gate(other, GateRequest(baseline=run, max_drop=0.02))
    assert found is not None
    assert (found.on, found.verdict) == (GateScore.CORRECTED, GateVerdict.UNDECIDED)


def test_a_corrected_score_that_is_withheld_tells_nothing_when_it_was_asked_for(run: Run) -> None:
    found = run_gate(run, GateRequest(fail_under=0.5, gate_on="corrected"))
    assert found is not None
    assert (found.verdict, found.checks[0].reason) == (GateVerdict.UNDECIDED, "not_reviewed")


def test_a_score_without_variation_has_no_interval_and_tells_nothing() -> None:
    found = run_gate(fill(run_over(answers_to(["a"] * 4)), [5] * 4), GateRequest(fail_under=0.5))
    assert found is not None
    assert (found.verdict, found.checks[0].reason, found.checks[0].value) == (
        GateVerdict.UNDECIDED,
        "no_variation",
        pytest.approx(1.0),
    )


def test_a_drop_is_measured_question_by_question(run: Run) -> None:
    judge = run.judges.get().judge_version
    same = run.answer_set.question_set
    worse = fill(run_over(make_answer_set(same), judge=judge), [5, 2] * 20)  # 1 lower on every other question
    # overall .05 x -.5 = -.025; deviation .05 x .5 x sqrt(40/39): half-width 2.022691 x .025 / sqrt(39) = .0081
    gates = [run_gate(worse, GateRequest(baseline=run, max_drop=drop)) for drop in (0.04, 0.01, 0.02)]
    assert [one.verdict for one in gates if one] == [
        GateVerdict.PASSED,
        GateVerdict.FAILED,
        GateVerdict.UNDECIDED,
    ]
    assert gates[0] is not None
    assert gates[0].checks[0].low == pytest.approx(-0.025 - 0.0080974, abs=1e-6)
    assert gates[0].baseline_id == run.pk


def test_corrected_scores_are_compared_where_both_were_rated(run: Run) -> None:
    judge = run.judges.get().judge_version
    other = fill(run_over(make_answer_set(run.answer_set.question_set), judge=judge), [5, 3] * 20)
    for at, (one, two) in enumerate(zip(answer_rows(run), answer_rows(other), strict=True)):
        imported_rating(one, metric("correctness"), "e1", 4)
        imported_rating(two, metric("correctness"), "e1", 2 + at % 2)
    rate_the_others(run)
    rate_the_others(other)
    found = run_gate(other, GateRequest(baseline=run, max_drop=0.02))
    assert found is not None
    # experts: 2.5 against 4, -1.5 x .05 = -.075
    assert (found.on, found.verdict) == (GateScore.CORRECTED, GateVerdict.FAILED)
    assert found.checks[0].value == pytest.approx(-0.075)


def test_corrected_scores_are_compared_whichever_model_judged_them(run: Run) -> None:
    judge = run.judges.get().judge_version
    other = fill(run_over(make_answer_set(run.answer_set.question_set), judge=judge), [5, 2] * 20)
    for at, (one, two) in enumerate(zip(answer_rows(run), answer_rows(other), strict=True)):
        imported_rating(one, metric("correctness"), "e1", 4)
        imported_rating(two, metric("correctness"), "e1", 2 + at % 2)
    rate_the_others(run)
    rate_the_others(other)
    baseline, ours = load_sides([run, other])
    answered_by_two = replace(difference(ours, baseline), differs={SERVED_MODEL: ["one (40)", "another (40)"]})
    corrected, judged = (
        gate_between(ours, answered_by_two, GateRequest(baseline=run, max_drop=0.02, gate_on=on))
        for on in ("corrected", "judge_only")
    )
    assert (corrected.verdict, corrected.checks[0].reason) == (GateVerdict.FAILED, "")
    assert (judged.verdict, judged.checks[0].reason) == (GateVerdict.UNDECIDED, SERVED_MODEL)


def test_an_incomplete_run_fails_whatever_its_figures_are(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=Run.State.INCOMPLETE, reason="failed_share: correctness")
    text, code = ended("results", str(run.pk), "--fail-under", "0.1")
    assert code == 100
    assert "More than a tenth of a part's results failed, or rest on" in text


def test_the_json_report_has_the_gate_and_null_without_one(run: Run) -> None:
    text, _ = ended("results", str(run.pk), "--fail-under", "0.93", "--format", "json")
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
        "verdict": "pass",
    }
    assert json.loads(ended("results", str(run.pk), "--format", "json")[0])["gate"] is None


@pytest.mark.parametrize(
    "arguments", [["--max-drop", "0.1"], ["--baseline", "1"], ["--baseline", "999", "--max-drop", "0"]]
)
def test_options_that_do_not_go_together_are_wrong_usage(run: Run, arguments: list[str]) -> None:
    if arguments[1] == "1":
        arguments[1] = str(run.pk)
    with pytest.raises(CommandError) as raised:
        ended("results", str(run.pk), *arguments)
    assert raised.value.returncode == 2


def test_a_negative_drop_is_refused(run: Run) -> None:
    with pytest.raises(DomainError, match="setting_range"):
        run_gate(run, GateRequest(baseline=run, max_drop=-0.1))


def test_no_gate_was_asked_for(run: Run) -> None:
    assert run_gate(run, GateRequest(allow_undecided=True)) is None


def body(response: Any) -> Any:
    return json.loads(b"".join(response.streaming_content))


def test_rest_puts_the_gate_into_the_report(run: Run) -> None:
    who = Caller(make_user(Role.VIEWER, run.project))
    assert body(who.get(f"runs/{run.pk}/report/?fail_under=0.97"))["gate"]["verdict"] == "fail"
    assert body(who.get(f"runs/{run.pk}/report/"))["gate"] is None
    assert who.get(f"runs/{run.pk}/report/?max_drop=0.1").status_code in {400, 409}
    assert who.get(f"runs/{run.pk}/report/?fail_under=high").status_code == 400
    other = run_over(make_answer_set())
    assert who.get(f"runs/{run.pk}/report/?baseline={other.pk}&max_drop=0.1").status_code == 404


def test_evaluate_ends_with_the_gate_and_writes_it_into_its_reports(tmp_path: Path) -> None:
    answers = make_answer_set()
    named = ["--questions", answers.question_set.name, "--system", answers.system_version.system.name]
    report = tmp_path / "report.json"
    text, code = ended("evaluate", *named, "--fail-under", "0.01", "--output", str(report))
    assert text.splitlines()[0] == "gate on the judge-only score: passed"
    assert code == 0
    assert json.loads(report.read_text(encoding="utf-8"))["gate"]["verdict"] == "pass"
    text, code = ended("evaluate", *named, "--reuse-answers", str(Run.objects.latest("id").pk), "--fail-under", "1.5")
    assert (text.splitlines()[0], code) == ("gate on the judge-only score: failed", 100)
