from __future__ import annotations

import asyncio

from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.network.outcomes import Outcome
from evaluation.systems.protocol import AskFailed, SystemCall, SystemReply
from evaluation.systems.recorded import NAME, RecordedSystem

QUESTION = QuestionSpec(id="q1", category="c", text="?")


def asked(system: RecordedSystem, sample: int = 0) -> SystemReply:
    return asyncio.run(system.call(SystemCall(QUESTION, sample=sample)))


def test_a_recorded_system_gives_the_answer_of_the_question_and_sample() -> None:
    system = RecordedSystem({("q1", 0): AnswerSpec("first"), ("q1", 1): AnswerSpec("second")})
    texts = [reply.told.answer.text for number in (0, 1) if (reply := asked(system, number)).told]
    assert texts == ["first", "second"]


def test_an_answer_that_was_not_recorded_is_a_failure_with_its_reason() -> None:
    reply = asked(RecordedSystem({}))
    assert (reply.outcome, reply.told, reply.reason) == (Outcome.NOT_FOUND, None, "no_answer: q1 #0")


def test_a_failure_without_a_detail_is_named_by_its_code_alone() -> None:
    assert (str(AskFailed("timeout")), str(AskFailed("timeout", detail="60 s"))) == ("timeout", "timeout: 60 s")


def test_the_name_of_the_connector_is_that_of_the_stored_systems() -> None:
    assert NAME == "recorded"  # a part of the hash by which a system's version is found again
