"""Groups of work that one thread turns in steps."""

from __future__ import annotations

import threading
import time
from functools import partial
from threading import Event

import pytest
from django.db import OperationalError

from evaluation.worker.steps import Steps, complete, delay, interleave, run_in_thread


def counted(name: str, log: list[str], steps: int) -> Steps[int]:
    for _ in range(steps):
        log.append(name)
        yield 0.0
    return steps


def test_groups_take_steps_in_turn_and_background_work_ends_last() -> None:
    log: list[str] = []
    background = iter([True, True, True, True])

    def work_in_background(calls_in_flight: bool) -> bool:
        log.append("in flight" if calls_in_flight else "alone")
        return next(background, False)

    interleave([counted("a", log, 2), counted("b", log, 1)], Event(), background=work_in_background)
    assert log == ["a", "b", "in flight", "a", "in flight", "alone", "alone", "alone"]


def test_idle_group_is_asked_again_while_others_work() -> None:
    answers: list[int] = []
    judged: list[int] = []

    def collect() -> Steps[None]:
        for number in range(3):
            answers.append(number)
            yield 0.0

    def judge() -> Steps[None]:
        while True:
            if len(judged) < len(answers):
                judged.append(answers[len(judged)])
                yield 0.0
            else:
                yield None

    interleave([collect(), judge()], Event())
    assert judged == [0, 1, 2]


def failing(error: BaseException) -> Steps[None]:
    yield 0.0
    raise error


def test_error_in_one_group_is_raised_after_the_others_have_ended() -> None:
    log: list[str] = []
    with pytest.raises(ValueError, match="broken"):
        interleave([failing(ValueError("broken")), counted("a", log, 3)], Event())
    assert log == ["a"] * 3


def test_error_in_background_work_is_raised_after_the_groups_have_ended() -> None:
    log: list[str] = []

    def fail_in_background(calls_in_flight: bool) -> bool:
        log.append("background")
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        interleave([counted("a", log, 3)], Event(), background=fail_in_background)
    assert log == ["a", "background", "a", "a"]


@pytest.mark.parametrize("error", [OperationalError("away"), KeyboardInterrupt()])
def test_every_group_is_closed_at_an_interruption(error: BaseException) -> None:
    closed: list[str] = []

    def working() -> Steps[None]:
        try:
            while True:
                yield 0.0
        finally:
            closed.append("working")

    with pytest.raises(type(error)):
        interleave([working(), failing(error)], Event())
    assert closed == ["working"]


def test_call_in_a_thread_wakes_the_loop_and_gives_its_result() -> None:
    wake, caller = Event(), threading.get_ident()
    waits: list[float] = []

    def call() -> bool:
        time.sleep(0.2)
        return threading.get_ident() != caller

    began = time.monotonic()
    assert complete(run_in_thread(call, wake, 0.05, lambda: waits.append(time.monotonic())), wake)
    assert waits
    assert time.monotonic() - began < 5


def test_closed_steps_end_their_call() -> None:
    ended = Event()
    steps = run_in_thread(partial(ended.wait, 60), Event(), on_close=ended.set)
    next(steps)
    began = time.monotonic()
    steps.close()
    assert time.monotonic() - began < 30


def test_delay_is_not_shortened_by_early_steps() -> None:
    began = time.monotonic()
    early_steps = [step for step in delay(0.05) if step]
    assert time.monotonic() - began >= 0.05
    assert len(early_steps) > 1
