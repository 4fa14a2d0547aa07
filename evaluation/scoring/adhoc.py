"""Judging answers outside of a run, with the gates, prompts, repairs and retry rules of a run, without storing
anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.errors import DomainError
from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import Result
from evaluation.judges.clients import client_of
from evaluation.judges.preflight import probe_endpoint
from evaluation.judging.call_loop import CallLoop
from evaluation.judging.calls import ResponseFormat
from evaluation.judging.catalogue import family_for
from evaluation.judging.probing import ProbeResult
from evaluation.judging.rubric import Rubric
from evaluation.models import Answer, Endpoint, JudgeVersion, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.scoring.judges import JudgeSetting, UnitConversation
from evaluation.worker.endpoint_quota import ENDPOINT_BUSY, EndpointBusy, SharedPool, SingleCalls

CONCURRENT_CALLS = 8
# How long to wait until a call can be sent.
MAX_SLOT_WAIT_SECONDS = 60.0
# The same for a person who waits for a page, and the limit of all calls together.
TRY_WAIT_SECONDS, TRY_SECONDS = 10, 45


@dataclass(frozen=True, slots=True)
class ProbedJudge:
    """The response format that a judge supports, and the model that answered under its name; empty if not reported."""

    response_format: ResponseFormat
    model: str = ""


def find_response_format(judge: JudgeVersion) -> ProbedJudge:
    """Probe the judge for its response format, by a few calls.

    :raises DomainError: ``judge_away`` with the outcome's code if it cannot be called."""
    if judge.endpoint is None:
        return ProbedJudge(ResponseFormat.JSON_SCHEMA)
    probe = probe_judge(judge, judge.endpoint, MAX_SLOT_WAIT_SECONDS)
    if probe.outcome != Outcome.OK or probe.response_format is None:
        raise DomainError("judge_away", reason=probe.reason)
    return ProbedJudge(probe.response_format, probe.last.model_returned)


def try_judge(judge: JudgeVersion, endpoint: Endpoint) -> ProbeResult:
    """:func:`probe_judge` for a person who waits for the result."""
    return probe_judge(judge, endpoint, TRY_WAIT_SECONDS, TRY_SECONDS)


def probe_judge(
    judge: JudgeVersion, endpoint: Endpoint, max_wait_seconds: float, max_seconds: int | None = None
) -> ProbeResult:
    """Make the probe calls of a preflight without storing them. Waits at most ``max_wait_seconds`` for a slot.

    :raises DomainError: ``judge_away`` if no slot is free, ``judge_too_slow`` if the calls together take longer than
        ``max_seconds``; see also :func:`client_of`."""
    with SingleCalls(endpoint, None, project_id=judge.project_id) as calls:
        if calls.wait(time.monotonic() + max_wait_seconds):
            raise DomainError("judge_away", reason=ENDPOINT_BUSY)
        try:
            return probe_endpoint(client_of(judge), judge, calls, max_seconds)
        except TimeoutError as error:
            raise DomainError("judge_too_slow", seconds=max_seconds) from error


def judge_without_storing(
    judge: JudgeVersion,
    rubric: Rubric,
    answers: Sequence[Answer],
    *,
    response_format: ResponseFormat,
    may_start: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[Answer, Mapping[str, Result]]]:
    """Judge each answer by the rubric and yield its results, one for each metric of the family, as they arrive. Answers
    come with their question and contexts. Profile rules are not applied. ``may_start`` is called about twice a second;
    once it returns false, only answers already begun are finished.

    :raises DomainError: ``judge_away`` if a person has to act first or the endpoint stays busy; results so far are
    valid.
    """
    family = family_for(rubric)
    setting = JudgeSetting(family, rubric, family.produced_metrics, RuleSettings(), judge, response_format)
    waiting = list(reversed(answers))
    with SharedPool(
        client_of(judge),
        judge.endpoint,
        CONCURRENT_CALLS,
        project_id=judge.project_id,
        max_wait_seconds=MAX_SLOT_WAIT_SECONDS,
    ) as pool:
        conversations: dict[int, tuple[Answer, UnitConversation]] = {}
        loop = CallLoop[int](calls=pool, max_in_flight=CONCURRENT_CALLS)
        while waiting or conversations:
            if not may_start():
                waiting.clear()
            while waiting and len(conversations) < CONCURRENT_CALLS:
                answer = waiting.pop()
                conversation = UnitConversation(setting, WorkUnit(answer=answer), {})
                if conversation.call is None:
                    yield answer, conversation.results
                else:
                    conversations[answer.pk] = answer, conversation
                    loop.add(answer.pk, conversation.call)
            try:
                parsed_replies = loop.step()
            except EndpointBusy as busy:
                raise DomainError("judge_away", reason=ENDPOINT_BUSY) from busy
            for key, parsed in parsed_replies:
                answer, conversation = conversations[key]
                conversation.receive(parsed)
                if conversation.call is not None:
                    loop.add(key, conversation.call)
                else:
                    del conversations[key]
                    yield answer, conversation.results
            if loop.blocked_reason:
                raise DomainError("judge_away", reason=loop.blocked_reason)
