"""A run pauses if the first values of a judge all fail in the same way."""

from __future__ import annotations

import pytest

from evaluation.core.samples import Result
from evaluation.models import Run
from evaluation.runs.execution import drain
from evaluation.scoring.first_values import FIRST_VALUES, FirstValues
from evaluation.worker.lifecycle import resume
from tests.evaluation.runs.remote import remote_run, start_and_drain
from tests.judge_server import JudgeServer, actions

OFF_SCALE = Result.failed("scale", detail={"got": "85", "reason": "r"})


def stop_reasons(*answers: dict[str, Result]) -> list[str]:
    """The stop reason after each answer of one judge."""
    values = FirstValues()
    return [values.count(1, answer) for answer in answers]


def test_ten_equal_failures_are_reported_with_the_value() -> None:
    reasons = stop_reasons(*[{"correctness": OFF_SCALE}] * FIRST_VALUES)
    assert reasons == [""] * (FIRST_VALUES - 1) + ["scale: correctness 85"]


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
def test_few_or_mixed_failures_or_any_value_do_not_stop(answers: list[dict[str, Result]]) -> None:
    assert not any(stop_reasons(*answers))


def test_failing_metric_is_detected_next_to_a_scored_one() -> None:
    reasons = stop_reasons(*[{"a": Result.scored(4.0), "b": OFF_SCALE}] * FIRST_VALUES)
    assert reasons[-1] == "scale: b 85"


def test_failures_are_counted_per_judge() -> None:
    values = FirstValues()
    assert not any(values.count(number % 2, {"a": OFF_SCALE}) for number in range(2 * FIRST_VALUES - 2))


def test_calls_in_flight_are_limited_until_a_value_is_scored() -> None:
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
def test_run_with_equal_first_failures_pauses_and_can_be_resumed(
    judge: JudgeServer, action: actions.Action, reason: str, calls_each: int
) -> None:
    judge.when(lambda request: not request.is_preflight, action)
    run = start_and_drain(remote_run(judge, 40, concurrency=32))
    assert run.state == Run.State.PAUSED
    assert run.reason.startswith(reason)
    assert judge.calls <= FIRST_VALUES * calls_each
    judge.reset()
    assert resume(run)
    assert drain(run.pk, seconds=30).state in {Run.State.COMPLETED, Run.State.INCOMPLETE}
    assert judge.calls == 40 - FIRST_VALUES


@pytest.mark.django_db
def test_occasional_failures_do_not_pause_the_run(judge: JudgeServer) -> None:
    judge.when(lambda request: not request.is_preflight and judge.calls <= 8, actions.status(400))
    run = start_and_drain(remote_run(judge, 30, concurrency=4))
    assert run.state == Run.State.INCOMPLETE
    assert judge.calls == 30
