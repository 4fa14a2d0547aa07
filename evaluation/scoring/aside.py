"""Judging answers outside of any run: the same gates, requests, repairs, retries and strict reading, and no ledger, no
score, no row at all. What becomes of the results is the caller's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.errors import Refused
from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import Result
from evaluation.judges.clients import client_of
from evaluation.judges.preflight import probed
from evaluation.judging.call_loop import CallLoop
from evaluation.judging.calls import Rung
from evaluation.judging.catalogue import family_for
from evaluation.judging.probing import Probed
from evaluation.judging.rubric import Rubric
from evaluation.models import Answer, Endpoint, JudgeVersion, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.scoring.judges import Conversation, Setting
from evaluation.worker.shares import ENDPOINT_BUSY, Busy, SharedPool, SingleCalls

AT_ONCE = 8
PATIENCE_SECONDS = 60.0  # until something can be sent


@dataclass(frozen=True, slots=True)
class Reached:
    """How a judge can be asked, and the model that answered under its name; empty where it did not say."""

    rung: Rung
    model: str = ""


def reach(judge: JudgeVersion) -> Reached:
    """How the judge can be asked, found out by a few calls.

    :raises Refused: ``judge_away`` with the outcome's code where it cannot.
    """
    if judge.endpoint is None:
        return Reached(Rung.JSON_SCHEMA)
    found = asked_once(judge, judge.endpoint, PATIENCE_SECONDS)
    if found.outcome != Outcome.OK or found.rung is None:
        raise Refused("judge_away", reason=found.reason)
    return Reached(found.rung, found.last.model_returned)


def asked_once(judge: JudgeVersion, endpoint: Endpoint, patience: float) -> Probed:
    """What the few calls told that begin every run, of which nothing is kept. At most ``patience`` seconds are waited
    for a place at the endpoint.

    :raises Refused: ``judge_away`` where there is none; what :func:`client_of` refuses.
    """
    with SingleCalls(endpoint, None, project_id=judge.project_id) as calls:
        if calls.wait(time.monotonic() + patience):
            raise Refused("judge_away", reason=ENDPOINT_BUSY)
        return probed(client_of(judge), judge, calls)


def judged_aside(
    judge: JudgeVersion,
    rubric: Rubric,
    answers: Sequence[Answer],
    *,
    rung: Rung,
    more: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[Answer, Mapping[str, Result]]]:
    """What the judge makes of each answer by the rubric, as it comes; every metric of the family has a result. Answers
    come with their question and contexts. Rules of profiles are not applied. ``more`` is asked about twice a second
    whether to begin further answers; those that are begun are finished.

    :raises Refused: ``judge_away`` where somebody has to act first or the endpoint stays busy; what was given before
        is paid for and stands.
    """
    family = family_for(rubric)
    setting = Setting(family, rubric, family.given, RuleSettings(), judge, rung)
    waiting = list(reversed(answers))
    with SharedPool(
        client_of(judge), judge.endpoint, AT_ONCE, project_id=judge.project_id, patience=PATIENCE_SECONDS
    ) as pool:
        talks: dict[int, tuple[Answer, Conversation]] = {}
        loop = CallLoop[int](calls=pool, at_once=AT_ONCE)
        while waiting or talks:
            if not more():
                waiting.clear()
            while waiting and len(talks) < AT_ONCE:
                answer = waiting.pop()
                talk = Conversation(setting, WorkUnit(answer=answer), {})
                if talk.call is None:
                    yield answer, talk.results
                else:
                    talks[answer.pk] = answer, talk
                    loop.add(answer.pk, talk.call)
            try:
                ended = loop.turn()
            except Busy as busy:
                raise Refused("judge_away", reason=ENDPOINT_BUSY) from busy
            for key, heard in ended:
                answer, talk = talks[key]
                talk.hear(heard)
                if talk.call is not None:
                    loop.add(key, talk.call)
                else:
                    del talks[key]
                    yield answer, talk.results
            if loop.away:
                raise Refused("judge_away", reason=loop.away)
