from __future__ import annotations

import asyncio

import pytest

from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.systems.protocol import ADAPTER, AskFailed, RecordedSystem, System

QUESTION = QuestionSpec(id="q1", category="c", text="?")


def test_a_recorded_system_gives_the_answer_of_the_question_and_sample() -> None:
    system: System = RecordedSystem({("q1", 0): AnswerSpec("first"), ("q1", 1): AnswerSpec("second")})
    assert asyncio.run(system.ask(QUESTION)).text == "first"
    assert asyncio.run(system.ask(QUESTION, 1)).text == "second"


def test_an_answer_that_was_not_recorded_is_a_failure_with_a_code_that_asking_again_does_not_cure() -> None:
    with pytest.raises(AskFailed) as failed:
        asyncio.run(RecordedSystem({}).ask(QUESTION))
    assert (failed.value.code, failed.value.retry) == ("no_answer", False)
    assert (failed.value.detail, str(failed.value)) == ("q1 #0", "no_answer: q1 #0")


def test_a_failure_without_a_detail_is_named_by_its_code_alone() -> None:
    assert (str(AskFailed("timeout")), str(AskFailed("timeout", retry=True))) == ("timeout", "timeout")
    assert (AskFailed("timeout").retry, AskFailed("timeout", retry=True).retry) == (False, True)


def test_the_name_of_the_adapter_is_that_of_the_stored_systems() -> None:
    assert ADAPTER == "recorded"  # a part of the hash by which a system's version is found again
