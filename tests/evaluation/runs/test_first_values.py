"""A judge whose first values all fail alike pauses the run; one that gives any value does not."""

from __future__ import annotations

import pytest

from evaluation.core.samples import Result
from evaluation.models import Run
from evaluation.runs.execution import drain
from evaluation.scoring.first_values import FIRST_VALUES, FirstValues
from evaluation.worker.lifecycle import resume
from tests.evaluation.runs.remote import remote_run, worked_off
from tests.judge_server import JudgeServer, actions

OFF_SCALE = Result.failed("scale", detail={"got": "85", "reason": "r"})


def counted(*answers: dict[str, Result]) -> list[str]:
    """What is said after each answer of one judge."""
    values = FirstValues()
    return [values.count(1, answer) for answer in answers]


def test_ten_failures_of_one_kind_are_told_with_what_came() -> None:
    said = counted(*[{"correctness": OFF_SCALE}] * FIRST_VALUES)
    assert said == [""] * (FIRST_VALUES - 1) + ["scale: correctness 85"]


@pytest.mark.parametrize(
    "answers",
    [
        [{"a": OFF_SCALE}] * 9,
        [{"a": Result.scored(4.0)}, *[{"a": OFF_SCALE}] * 20],
        [{"a": Result.failed("parse")}, *[{"a": OFF_SCALE}] * 20],
        [{"a": Result.failed("upstream: timeout")}] * 20,
        [{"a": Result.not_applicable("no_reference")}] * 20,
        [{"a": OFF_SCALE}, {"a": Result.failed("filtered")}] * 10,
    ],
)
def test_fewer_failures_of_several_kinds_or_a_value_are_no_reason_to_stop(answers: list[dict[str, Result]]) -> None:
    assert not any(counted(*answers))


def test_a_metric_that_always_fails_is_found_beside_one_that_is_scored() -> None:
    said = counted(*[{"a": Result.scored(4.0), "b": OFF_SCALE}] * FIRST_VALUES)
    assert said[-1] == "scale: b 85"


def test_failures_of_two_judges_are_not_added() -> None:
    values = FirstValues()
    assert not any(values.count(number % 2, {"a": OFF_SCALE}) for number in range(2 * FIRST_VALUES - 2))


def test_no_more_than_the_first_values_are_in_hands_until_one_is_scored() -> None:
    values = FirstValues()
    assert values.room(0) == FIRST_VALUES
    assert values.room(4) == FIRST_VALUES - 4
    values.count(1, {"a": OFF_SCALE})
    assert values.room(3) == FIRST_VALUES - 4
    values.count(1, {"a": Result.scored(1.0)})
    assert values.room(3) is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("action", "reason", "calls_each"),
    [
        (
            actions.verdicts(correctness="4", faithfulness="4", completeness="4"),
            'first_values: scale: completeness "4"',
            1,
        ),
        (actions.verdicts(correctness=85, faithfulness=85, completeness=85), "first_values: scale: completeness 85", 1),
        (actions.text("Four, I would say."), "first_values: parse: HTTP 200: Four, I would say.", 2),
        (actions.status(400), "first_values: bad_request: HTTP 400: scripted", 1),
    ],
)
def test_a_run_whose_first_values_all_fail_alike_pauses_and_goes_on_when_resumed(
    judge: JudgeServer, action: actions.Action, reason: str, calls_each: int
) -> None:
    judge.when(lambda request: not request.is_preflight, action)
    run = worked_off(remote_run(judge, 40, concurrency=32))
    assert run.state == Run.State.PAUSED
    assert run.reason.startswith(reason)
    assert judge.calls <= FIRST_VALUES * calls_each
    judge.reset()
    assert resume(run)
    assert drain(run.pk, seconds=30).state in {Run.State.COMPLETED, Run.State.INCOMPLETE}
    assert judge.calls == 40 - FIRST_VALUES


@pytest.mark.django_db
def test_a_judge_that_fails_now_and_then_is_not_stopped(judge: JudgeServer) -> None:
    judge.when(lambda request: not request.is_preflight and judge.calls <= 8, actions.status(400))
    run = worked_off(remote_run(judge, 30, concurrency=4))
    assert run.state == Run.State.INCOMPLETE
    assert judge.calls == 30
