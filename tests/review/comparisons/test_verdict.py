"""Verdicts (better, worse or undecided) with the data needed to decide, and the gate of compared runs."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils.translation import override

from evaluation.core.roles import Role
from evaluation.models import Run
from review.comparisons.comparison import compare
from review.comparisons.difference import RunDifference
from review.comparisons.gates import run_gate, run_gates
from review.comparisons.values import load_sides
from review.comparisons.verdict import (
    corrected_sentence,
    corrected_verdict,
    judge_only_sentence,
    judge_only_verdict,
    lead_sentence,
    next_sentence,
    other_sentence,
)
from review.reports.gate import GateRequest
from review.statistics.correction.outcome import Estimate, Target
from review.statistics.paired_tests.gate import DifferenceVerdict, Resource, difference_verdict
from review.statistics.paired_tests.paired import corrected_difference
from tests.factories import make_user
from tests.review.builders import answer_rows, assignment_of, draw_into, metric, queue_for, rate
from tests.review.clients import Caller
from tests.review.comparisons.test_difference import create_run, make_questions
from tests.review.sampled import rate_all, rate_half, rate_other_parts

pytestmark = pytest.mark.django_db
NAMES = {"run": "new", "baseline": "old"}


@pytest.fixture
def run_pair() -> tuple[Run, Run]:
    """40 questions; correctness 4 everywhere, and 5 and 4 alternately with two losses: 18 x +1, 2 x -2 of 40."""
    question_set = make_questions(40)
    return create_run(question_set, [4] * 40), create_run(question_set, [5, 4] * 18 + [2, 4, 2, 4])


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.01, 0.02, DifferenceVerdict.BETTER),
        (-0.02, -0.01, DifferenceVerdict.WORSE),
        (-0.01, 0.01, DifferenceVerdict.CANNOT_TELL),
        (0.0, 0.02, DifferenceVerdict.CANNOT_TELL),
        (-0.02, -1e-12, DifferenceVerdict.CANNOT_TELL),
    ],
)
def test_interval_without_zero_is_better_or_worse(low: float, high: float, verdict: DifferenceVerdict) -> None:
    assert difference_verdict(low, high) is verdict


def test_decided_difference_needs_no_more_data(run_pair: tuple[Run, Run]) -> None:
    # sum 18 - 4 = 14, mean .35; squares 18 + 8 - 40 x .1225 = 21.1, / (39 x 40) = .013526, root .1163
    # t(39) x .1163 = .2352 < .35
    difference = compare(run_pair).differences[0]
    assert judge_only_verdict(difference).verdict is DifferenceVerdict.BETTER
    reversed_difference = compare(run_pair[::-1]).differences[0]
    assert judge_only_verdict(reversed_difference).verdict is DifferenceVerdict.WORSE
    with override("en"):
        # .05 of a level each: (.35 - .2352) x .05 = .0057 and (.35 + .2352) x .05 = .0293
        assert judge_only_sentence(difference, NAMES) == "new is better by 0.006 to 0.029 on questions like these."
        assert corrected_sentence(difference, NAMES) == ""


def verdict_sentences(difference: RunDifference) -> tuple[str, str]:
    with override("en"):
        return lead_sentence(difference, NAMES), other_sentence(difference, NAMES)


def test_uncorrected_better_verdict_does_not_lead(run_pair: tuple[Run, Run]) -> None:
    assert verdict_sentences(compare(run_pair).differences[0]) == (
        "No verdict yet: no expert has rated these answers. About 20 rated answers are needed for a corrected score.",
        "Judge scores only (judge error not included): new is better by 0.006 to 0.029 on questions like these.",
    )


def rated_difference(judge_values: list[int], experts: tuple[list[int], list[int]]) -> RunDifference:
    """Compare two runs of sixty questions with equal judge scores, all answers rated."""
    question_set = make_questions(60)
    runs = [create_run(question_set, judge_values), create_run(question_set, judge_values)]
    for run, values in zip(runs, experts, strict=True):
        rate_all(run, values)
        rate_other_parts(run)
    return compare(runs).differences[0]


def test_worse_corrected_verdict_leads() -> None:
    # the experts take 1, 2, 3 and 2 levels of 5 off in turn, mean 2 x .05 = .1; squares .5 x 60 over their mean,
    # 30 / (59 x 60), root .0921; t(59) = 2.001: .1842 levels, x .05 = .0092. The judge sees no difference
    lead, other_sentence = verdict_sentences(rated_difference([4] * 60, ([5] * 60, [4, 3, 2, 3] * 15)))
    assert lead == "By corrected scores: new is worse by 0.091 to 0.109 on questions like these."
    assert other_sentence == "Judge scores only (judge error not included): Every score is the same for both."


def test_tie_is_undecided() -> None:
    # differences 0, 1, -1, 0 of a level: squares 30 / (59 x 60), root .0921; x 2.001 x .05 = .0092
    difference = rated_difference([4] * 60, ([4, 3, 4, 5] * 15, [4, 4, 3, 5] * 15))
    lead, other_sentence = verdict_sentences(difference)
    assert lead == (
        "By corrected scores: can't tell. The difference is between −0.009 and +0.009 on questions "
        "like these. The observed difference is too small to tell how many questions would settle it."
    )
    assert other_sentence.startswith("Judge scores only")
    with override("en"):
        assert next_sentence(difference, NAMES) == (
            "Next: add questions, or treat the two as equal if a difference this small doesn't matter."
        )


@pytest.mark.parametrize("ups", [9, 10])
def test_difference_that_rounds_to_zero_reads_like_exactly_zero(ups: int) -> None:
    """The second run is a level better on 10 of 60 questions and worse on 10, or on 9: its mean of -1 / 60 of a level
    would need 60 x (half-width / distance)^2, far above 2,000 questions."""
    first = [3] * 60
    second = [4] * ups + [2] * 10 + [3] * (50 - ups)
    lead, _ = verdict_sentences(rated_difference([4] * 60, (first, second)))
    assert lead.endswith("The observed difference is too small to tell how many questions would settle it.")


def test_undecided_difference_reports_how_many_questions_would_decide_it() -> None:
    question_set = make_questions(20)
    runs = [create_run(question_set, [4] * 20), create_run(question_set, [5] * 6 + [3] * 2 + [4] * 12)]
    verdict = judge_only_verdict(compare(runs).differences[0])
    # sum 4, mean .2; squares 8 - 20 x .04 = 7.2, / (19 x 20) = .018947, root .13765; t(19) = 2.093024: .28810
    # 20 x (.28810 / .2)^2 = 41.5
    assert verdict.verdict is DifferenceVerdict.CANNOT_TELL
    assert verdict.settling is not None
    assert (verdict.settling.resource, verdict.settling.needed) == (Resource.QUESTIONS, 42)


@pytest.mark.slow
def test_partly_corrected_difference_names_no_number_above_two_thousand() -> None:
    question_set = make_questions(200)
    runs = [create_run(question_set, [5, 4, 3, 4] * 50), create_run(question_set, [5, 4, 3, 4] * 50)]
    rate_half(runs[0], [5, 1, 1, 3] * 25)
    rate_half(runs[1], [1, 5, 1, 3] * 15 + [5, 5, 1, 3] * 10)
    difference = compare(runs).differences[0]
    wide, narrow = difference.corrected, difference.corrected_this_run
    assert (wide.target, narrow.target) == ("questions_like_these", "this_run")
    # the experts differ by 4 levels on ten answers of 100, and by nothing on average elsewhere: .4 x .05
    assert wide.value == pytest.approx(0.02)
    assert narrow.value == pytest.approx(0.02)
    verdict = corrected_verdict(difference)
    assert (verdict.verdict, verdict.reason) == (DifferenceVerdict.CANNOT_TELL, "")
    # two parts were rated by nobody, so that the interval is .28 wide and more either way
    assert verdict.settling is None
    with override("en"):
        assert corrected_sentence(difference, NAMES).startswith("By corrected scores: can't tell. The difference is")


def test_without_ratings_it_reports_how_many_a_corrected_score_needs(run_pair: tuple[Run, Run]) -> None:
    verdict = corrected_verdict(compare(run_pair).differences[0])
    assert (verdict.verdict, verdict.reason) == (DifferenceVerdict.CANNOT_TELL, "not_reviewed")
    assert verdict.settling is not None
    assert (verdict.settling.resource, verdict.settling.needed) == (Resource.LABELS, 20)


def test_corrected_gate_with_too_few_labels_reports_how_many(run_pair: tuple[Run, Run]) -> None:
    # the first 16 of the 20 drawn: 4 more are missing
    rate_sampled_half(run_pair[1], 16)
    gate = run_gate(run_pair[1], GateRequest(fail_under=0.5, gate_on="corrected"))
    assert gate is not None
    (check,) = gate.checks
    assert (check.reason, check.settling and check.settling.needed) == ("components_withheld", 20)


def rate_sampled_half(run: Run, count: int) -> None:
    row, answers, person = metric("correctness"), answer_rows(run), make_user()
    queue = queue_for(run, [row], [person])
    draw_into(queue, run, [("all", 0.5, index % 2 == 0) for index in range(len(answers))])
    for answer in answers[::2][:count]:
        rate(assignment_of(queue, answer, person, run), row, 3)


def run_compare(*arguments: str) -> tuple[str, int]:
    out = StringIO()
    try:
        call_command("compare", *arguments, stdout=out, stderr=StringIO())
    except SystemExit as ending:
        return out.getvalue(), int(ending.code or 0)
    return out.getvalue(), 0


@pytest.mark.slow
def test_compare_ends_with_the_gate_of_later_runs(run_pair: tuple[Run, Run]) -> None:
    old, new = (str(run.pk) for run in run_pair)
    text, code = run_compare(old, new, "--max-drop", "0")
    assert (text.splitlines()[0], code) == ("gate on the judge-only score: passed", 0)
    text, code = run_compare(new, old, "--max-drop", "0.001")
    assert (text.splitlines()[0], code) == ("gate on the judge-only score: failed", 100)
    text, code = run_compare(new, old, "--max-drop", "0.02")
    assert (text.splitlines()[0], code) == ("gate on the judge-only score: undecided, not passed", 100)
    text, code = run_compare(new, old, "--max-drop", "0.02", "--allow-undecided")
    assert (text.splitlines()[0], code) == ("gate on the judge-only score: undecided, allowed", 0)
    assert run_compare(new, old)[1] == 0


@pytest.mark.slow
def test_every_run_has_a_gate_and_the_worst_decides(run_pair: tuple[Run, Run]) -> None:
    old, new = (str(run.pk) for run in run_pair)
    worse_run = create_run(run_pair[0].answer_set.question_set, [2, 3] * 20)
    text, code = run_compare(old, new, str(worse_run.pk), "--max-drop", "0")
    assert text.splitlines()[0] == f"run {new}, gate on the judge-only score: passed"
    assert f"run {worse_run.pk}, gate on the judge-only score: failed" in text
    assert code == 100
    report = json.loads(run_compare(old, new, str(worse_run.pk), "--max-drop", "0", "--format", "json")[0])
    assert {pk: gate["verdict"] for pk, gate in report["gates"].items()} == {new: "pass", str(worse_run.pk): "fail"}
    assert report["differences"][0]["verdict"]["judge_only"] == {"verdict": "better", "target": "questions_like_these"}


def test_single_run_gate_accepts_a_minimum_score_but_no_drop(run_pair: tuple[Run, Run]) -> None:
    gates = run_gates(load_sides(run_pair[:1]), GateRequest(fail_under=0.5))
    assert list(gates) == [run_pair[0].pk]
    with pytest.raises(CommandError) as error_info:
        run_compare(str(run_pair[0].pk), "--max-drop", "0.1")
    assert error_info.value.returncode == 2


def test_rest_comparison_includes_a_gate(run_pair: tuple[Run, Run]) -> None:
    caller = Caller(make_user(Role.VIEWER, run_pair[0].project))
    run_ids = ",".join(str(run.pk) for run in run_pair)
    report = caller.get(f"runs/compare/?runs={run_ids}&max_drop=0").json()
    assert report["gates"][str(run_pair[1].pk)]["verdict"] == "pass"
    assert caller.get(f"runs/compare/?runs={run_ids}").json()["gates"] == {}
    assert caller.get(f"runs/compare/?runs={run_pair[0].pk}&max_drop=0.1").status_code in {400, 409}
    assert caller.get(f"runs/compare/?runs={run_ids}&max_drop=-1").status_code == 400


def rate_two_rounds(run: Run, values: list[int], *, planned: bool) -> None:
    """Rate the first half of the answers in one round, and every other of the rest in a second."""
    row, answers, person = metric("correctness"), answer_rows(run), make_user()
    half = len(answers) // 2
    first = queue_for(run, [row], [person], looks=2)
    draw_into(first, run, [("all", 0.5, index < half) for index in range(len(answers))])
    plan = {"first_round": first, "round_number": 2} if planned else {}
    second = queue_for(run, [row], [person], looks=2, **plan)
    certain = [("certain", 1.0, True)] * half
    draw_into(
        second, run, certain + [("all", 0.5, index % 2 == 0) for index in range(half)], planned_after_looking=True
    )
    for queue, positions in ((first, range(half)), (second, range(half, len(answers), 2))):
        for position in positions:
            rate(assignment_of(queue, answers[position], person, run), row, values[position])


@pytest.mark.parametrize("planned", [True, False])
def test_comparison_shares_its_error_over_planned_rounds(planned: bool) -> None:
    question_set = make_questions(60)
    runs = [create_run(question_set, [4] * 60), create_run(question_set, [4] * 60)]
    for run, values in zip(runs, ([5, 5, 4, 5] * 15, [4, 3, 2, 3] * 15), strict=True):
        rate_two_rounds(run, values, planned=planned)
        rate_other_parts(run)
    difference = compare(runs).differences[0]
    verdict = corrected_verdict(difference)
    components = [side.basis.correction.components(side.basis.profile, side.basis.machine) for side in load_sides(runs)]
    at_975 = corrected_difference(components[1], components[0], Target.QUESTIONS_LIKE_THESE, 0.975)
    assert isinstance(at_975, Estimate)
    assert (difference.corrected.low, difference.corrected.high) == pytest.approx((at_975.low, at_975.high))
    assert [entry["weight"] for entry in difference.corrected.extra["rounds"]] == pytest.approx(
        # 60, then 30, then 15 answers are left: (1/30 - 1/60) : (1/15 - 1/30) is 1 : 2.
        [1 / 3, 2 / 3] if planned else [0.5, 0.5]
    )
    if planned:
        assert verdict.verdict is DifferenceVerdict.WORSE
    else:
        assert (verdict.verdict, verdict.reason) == (DifferenceVerdict.CANNOT_TELL, "unplanned_round")
