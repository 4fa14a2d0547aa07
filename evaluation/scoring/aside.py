"""Judging answers outside of any run: the same gates, requests, repairs, retries and strict reading, and no ledger, no
score, no row at all. What becomes of the results is the caller's."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from evaluation.core.errors import Refused
from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import Result
from evaluation.judges.clients import client_of
from evaluation.judges.preflight import probed
from evaluation.judging.calls import JudgeReply, Rung, reason_with_words
from evaluation.judging.catalogue import family_for
from evaluation.judging.probing import Probed
from evaluation.judging.prompt import hear, repaired, with_first_failure
from evaluation.judging.rubric import Rubric
from evaluation.models import Answer, Endpoint, JudgeVersion, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import REPAIRABLE, GiveUp, NeedsPerson, decide
from evaluation.scoring.judges import Conversation, Setting
from evaluation.worker.shares import ENDPOINT_BUSY, Busy, SharedPool, SingleCalls

AT_ONCE = 8
PATIENCE_SECONDS = 60.0  # until something can be sent
_WAIT_SECONDS = 0.5


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


@dataclass(slots=True)
class _InHands:
    """An answer in the judge's hands, and how earlier tries of the call it is at ended."""

    answer: Answer
    talk: Conversation
    earlier: list[Outcome] = field(default_factory=list)


@dataclass
class _Sending:
    """Calls of several conversations, each sent when it is due."""

    pool: SharedPool
    rng: random.Random = field(default_factory=random.Random)
    hands: dict[int, _InHands] = field(default_factory=dict)
    due: list[tuple[float, int]] = field(default_factory=list)  # monotonic seconds, key of the answer

    def begin(self, one: _InHands) -> None:
        self.hands[one.answer.pk] = one
        heapq.heappush(self.due, (0.0, one.answer.pk))

    def send(self) -> None:
        now, keys = time.monotonic(), list[int]()
        while self.due and self.due[0][0] <= now:
            keys.append(heapq.heappop(self.due)[1])
        self.pool.submit([(key, call) for key in keys if (call := self.hands[key].talk.call) is not None])
        if not self.pool.in_hands and self.due:
            time.sleep(min(_WAIT_SECONDS, max(0.0, self.due[0][0] - now)))

    def hear(self, key: int, reply: JudgeReply) -> _InHands | None:
        """The conversation, where this ends it."""
        one = self.hands[key]
        call = one.talk.call
        if call is None:
            raise ValueError("nothing was asked")
        heard = hear(reply, call.ask, call.rung)
        decision = decide(heard.outcome, len(one.earlier) + 1, reply.retry_after, self.rng, earlier=one.earlier)
        if isinstance(decision, NeedsPerson):
            raise Refused("judge_away", reason=reason_with_words(decision.reason, reply))
        if not isinstance(decision, GiveUp) and heard.outcome is not Outcome.OK:
            one.earlier.append(heard.outcome)
            if heard.outcome in REPAIRABLE:
                one.talk.call = repaired(call, heard.outcome)
            heapq.heappush(self.due, (time.monotonic() + decision.seconds, key))
            return None
        one.talk.hear(with_first_failure(heard, one.earlier))
        one.earlier = []
        if one.talk.call is None:
            return self.hands.pop(key)
        heapq.heappush(self.due, (0.0, key))
        return None


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
        sending = _Sending(pool)
        while waiting or sending.hands:
            if not more():
                waiting.clear()
            while waiting and len(sending.hands) < AT_ONCE:
                answer = waiting.pop()
                talk = Conversation(setting, WorkUnit(answer=answer), {})
                if talk.call is None:
                    yield answer, talk.results
                else:
                    sending.begin(_InHands(answer, talk))
            sending.send()
            try:
                done = pool.collect(_WAIT_SECONDS) if pool.in_hands else []
            except Busy as busy:
                raise Refused("judge_away", reason=ENDPOINT_BUSY) from busy
            for key, reply in done:
                if (one := sending.hear(int(str(key)), reply)) is not None:
                    yield one.answer, one.talk.results
