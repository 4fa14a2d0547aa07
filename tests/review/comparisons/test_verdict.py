"""Better, worse, or cannot tell, with what would settle it; and the gate of compared runs."""

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
from review.statistics.paired_tests.gate import DifferenceVerdict, Resource, difference_verdict
from tests.factories import make_user
from tests.review.builders import answer_rows, assignment_of, draw_into, metric, queue_for, rate
from tests.review.clients import Caller
from tests.review.comparisons.test_difference import a_run, questions
from tests.review.sampled import rate_all, rate_half, rate_the_others

pytestmark = pytest.mark.django_db
NAMES = {"run": "new", "baseline": "old"}


@pytest.fixture
def forty() -> tuple[Run, Run]:
    """40 questions; correctness 4 everywhere, and 5 and 4 by turns with two losses: 18 x +1, 2 x -2 of 40."""
    asked = questions(40)
    return a_run(asked, [4] * 40), a_run(asked, [5, 4] * 18 + [2, 4, 2, 4])


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
def test_an_interval_without_zero_is_better_or_worse(low: float, high: float, verdict: DifferenceVerdict) -> None:
    assert difference_verdict(low, high) is verdict


def test_a_difference_that_is_shown_needs_nothing_more(forty: tuple[Run, Run]) -> None:
    # sum 18 - 4 = 14, mean .35; squares 18 + 8 - 40 x .1225 = 21.1, / (39 x 40) = .013526, root .1163
    # t(39) x .1163 = .2352 < .35
    found = compare(forty).differences[0]
    assert judge_only_verdict(found).verdict is DifferenceVerdict.BETTER
    turned = compare(forty[::-1]).differences[0]
    assert judge_only_verdict(turned).verdict is DifferenceVerdict.WORSE
    with override("en"):
        # .05 of a level each: (.35 - .2352) x .05 = .0057 and (.35 + .2352) x .05 = .0293
        assert judge_only_sentence(found, NAMES) == "new is better by 0.006 to 0.029 on questions like these."
        assert corrected_sentence(found, NAMES) == ""


def first_and_second(found: RunDifference) -> tuple[str, str]:
    with override("en"):
        return lead_sentence(found, NAMES), other_sentence(found, NAMES)


def test_better_but_not_corrected_does_not_lead(forty: tuple[Run, Run]) -> None:
    assert first_and_second(compare(forty).differences[0]) == (
        "Not known yet which is better: no expert has rated these answers. About 20 rated answers are needed for a "
        "corrected score.",
        "Judge scores only (judge error not included): new is better by 0.006 to 0.029 on questions like these.",
    )


def reviewed(judged: list[int], experts: tuple[list[int], list[int]]) -> RunDifference:
    """Two runs of sixty questions that the judge scored alike, every answer of both rated."""
    asked = questions(60)
    runs = [a_run(asked, judged), a_run(asked, judged)]
    for run, values in zip(runs, experts, strict=True):
        rate_all(run, values)
        rate_the_others(run)
    return compare(runs).differences[0]


def test_worse_by_the_corrected_scores_leads() -> None:
    # the experts take 1, 2, 3 and 2 levels of 5 off in turn, mean 2 x .05 = .1; squares .5 x 60 over their mean,
    # 30 / (59 x 60), root .0921; t(59) = 2.001: .1842 levels, x .05 = .0092. The judge sees no difference
    lead, other = first_and_second(reviewed([4] * 60, ([5] * 60, [4, 3, 2, 3] * 15)))
    assert lead == "By the corrected scores: new is worse by 0.091 to 0.109 on questions like these."
    assert other == "Judge scores only (judge error not included): Every score is the same for both."


def test_a_tie_cannot_tell() -> None:
    # differences 0, 1, -1, 0 of a level: squares 30 / (59 x 60), root .0921; x 2.001 x .05 = .0092
    found = reviewed([4] * 60, ([4, 3, 4, 5] * 15, [4, 4, 3, 5] * 15))
    lead, other = first_and_second(found)
    assert lead == (
        "By the corrected scores: cannot tell. The difference is between −0.009 and +0.009 on questions like these. "
        "The observed difference is too small to tell how many questions would decide it."
    )
    assert other.startswith("Judge scores only")
    with override("en"):
        assert next_sentence(found, NAMES) == (
            "Next: add questions, or treat the two as equal if a difference this small doesn't matter."
        )


@pytest.mark.parametrize("ups", [9, 10])
def test_a_difference_that_rounds_to_nothing_says_the_same_as_one_of_exactly_nothing(ups: int) -> None:
    """The second run is a level better on 10 of 60 questions and worse on 10, or on 9: its mean of -1 / 60 of a level
    would need 60 x (half-width / distance)^2, far above 2,000 questions."""
    first = [3] * 60
    second = [4] * ups + [2] * 10 + [3] * (50 - ups)
    lead, _ = first_and_second(reviewed([4] * 60, (first, second)))
    assert lead.endswith("The observed difference is too small to tell how many questions would decide it.")


def test_one_that_is_not_says_how_many_questions_would_show_it() -> None:
    asked = questions(20)
    runs = [a_run(asked, [4] * 20), a_run(asked, [5] * 6 + [3] * 2 + [4] * 12)]
    found = judge_only_verdict(compare(runs).differences[0])
    # sum 4, mean .2; squares 8 - 20 x .04 = 7.2, / (19 x 20) = .018947, root .13765; t(19) = 2.093024: .28810
    # 20 x (.28810 / .2)^2 = 41.5
    assert found.verdict is DifferenceVerdict.CANNOT_TELL
    assert found.settling is not None
    assert (found.settling.resource, found.settling.needed) == (Resource.QUESTIONS, 42)


def test_a_partly_corrected_difference_names_no_number_above_two_thousand() -> None:
    asked = questions(200)
    runs = [a_run(asked, [5, 4, 3, 4] * 50), a_run(asked, [5, 4, 3, 4] * 50)]
    rate_half(runs[0], [5, 1, 1, 3] * 25)
    rate_half(runs[1], [1, 5, 1, 3] * 15 + [5, 5, 1, 3] * 10)
    found = compare(runs).differences[0]
    wide, narrow = found.corrected, found.corrected_this_run
    assert (wide.target, narrow.target) == ("questions_like_these", "this_run")
    # the experts differ by 4 levels on ten answers of 100, and by nothing on average elsewhere: .4 x .05
    assert wide.value == pytest.approx(0.02)
    assert narrow.value == pytest.approx(0.02)
    verdict = corrected_verdict(found)
    assert (verdict.verdict, verdict.reason) == (DifferenceVerdict.CANNOT_TELL, "")
    # two parts were rated by nobody, so that the interval is .28 wide and more either way
    assert verdict.settling is None
    with override("en"):
        assert corrected_sentence(found, NAMES).startswith("By the corrected scores: cannot tell. The difference is")


def test_without_ratings_it_says_how_many_a_corrected_score_needs(forty: tuple[Run, Run]) -> None:
    found = corrected_verdict(compare(forty).differences[0])
    assert (found.verdict, found.reason) == (DifferenceVerdict.CANNOT_TELL, "not_reviewed")
    assert found.settling is not None
    assert (found.settling.resource, found.settling.needed) == (Resource.LABELS, 20)


def test_a_gate_on_a_corrected_score_with_too_few_labels_says_how_many(forty: tuple[Run, Run]) -> None:
    # the first 16 of the 20 drawn: 4 more are missing
    rate_half_of(forty[1], 16)
    found = run_gate(forty[1], GateRequest(fail_under=0.5, gate_on="corrected"))
    assert found is not None
    (check,) = found.checks
    assert (check.reason, check.settling and check.settling.needed) == ("components_withheld", 20)


def rate_half_of(run: Run, count: int) -> None:
    row, answers, person = metric("correctness"), answer_rows(run), make_user()
    queue = queue_for(run, [row], [person])
    draw_into(queue, run, [("all", 0.5, at % 2 == 0) for at in range(len(answers))])
    for answer in answers[::2][:count]:
        rate(assignment_of(queue, answer, person, run), row, 3)


def ended(*arguments: str) -> tuple[str, int]:
    out = StringIO()
    try:
        call_command("compare", *arguments, stdout=out, stderr=StringIO())
    except SystemExit as ending:
        return out.getvalue(), int(ending.code or 0)
    return out.getvalue(), 0


def test_compare_ends_with_the_gate_of_the_runs_after_the_first(forty: tuple[Run, Run]) -> None:
    old, new = (str(run.pk) for run in forty)
    text, code = ended(old, new, "--max-drop", "0")
    assert (text.splitlines()[0], code) == ("gate on the judge-only score: passed", 0)
    text, code = ended(new, old, "--max-drop", "0.001")
    assert (text.splitlines()[0], code) == ("gate on the judge-only score: failed", 100)
    text, code = ended(new, old, "--max-drop", "0.02")
    assert (text.splitlines()[0], code) == ("gate on the judge-only score: undecided, not passed", 100)
    text, code = ended(new, old, "--max-drop", "0.02", "--allow-undecided")
    assert (text.splitlines()[0], code) == ("gate on the judge-only score: undecided, allowed", 0)
    assert ended(new, old)[1] == 0


def test_several_runs_each_have_a_gate_and_the_worst_decides(forty: tuple[Run, Run]) -> None:
    old, new = (str(run.pk) for run in forty)
    worse = a_run(forty[0].answer_set.question_set, [2, 3] * 20)
    text, code = ended(old, new, str(worse.pk), "--max-drop", "0")
    assert text.splitlines()[0] == f"run {new}, gate on the judge-only score: passed"
    assert f"run {worse.pk}, gate on the judge-only score: failed" in text
    assert code == 100
    told = json.loads(ended(old, new, str(worse.pk), "--max-drop", "0", "--format", "json")[0])
    assert {pk: gate["verdict"] for pk, gate in told["gates"].items()} == {new: "pass", str(worse.pk): "fail"}
    assert told["differences"][0]["verdict"]["judge_only"] == {"verdict": "better"}


def test_one_run_alone_can_be_held_to_a_least_score_and_to_no_drop(forty: tuple[Run, Run]) -> None:
    found = run_gates(load_sides(forty[:1]), GateRequest(fail_under=0.5))
    assert list(found) == [forty[0].pk]
    with pytest.raises(CommandError) as raised:
        ended(str(forty[0].pk), "--max-drop", "0.1")
    assert raised.value.returncode == 2


def test_rest_compares_with_a_gate(forty: tuple[Run, Run]) -> None:
    who = Caller(make_user(Role.VIEWER, forty[0].project))
    named = ",".join(str(run.pk) for run in forty)
    told = who.get(f"runs/compare/?runs={named}&max_drop=0").json()
    assert told["gates"][str(forty[1].pk)]["verdict"] == "pass"
    assert who.get(f"runs/compare/?runs={named}").json()["gates"] == {}
    assert who.get(f"runs/compare/?runs={forty[0].pk}&max_drop=0.1").status_code in {400, 409}
    assert who.get(f"runs/compare/?runs={named}&max_drop=-1").status_code == 400
