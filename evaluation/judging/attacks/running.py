"""Putting a judge to the attacks: the same gates, requests, repairs and strict reading as in a run."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluation.judging.asking import Case, Heard, Results, Talk
from evaluation.judging.attacks.spec import (
    FAMILY,
    Attack,
    AttackSet,
    Broken,
    attack_sets,
    broken_bounds,
)
from evaluation.judging.calls import JudgeCall, JudgeClient, JudgeReply, Outcome, Rung
from evaluation.judging.catalogue import family_named
from evaluation.judging.gates import ruled
from evaluation.judging.prompt import judge_call, repaired
from evaluation.judging.reading import hear
from evaluation.judging.retrying import NeedsPerson, Retry, decide
from evaluation.judging.rubric import Rubric, shipped_rubric
from evaluation.samples import Result, Status

AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Faced:
    """How a judge took one attack. ``gate`` names the rule that decided it without a call; ``results`` hold the scores,
    ``replies`` every call made for it."""

    language: str
    attack: Attack
    results: Results
    gate: str = ""
    replies: tuple[JudgeReply, ...] = ()
    broken: tuple[Broken, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the judge kept within every bound."""
        return not self.broken

    @property
    def values(self) -> dict[str, float | None]:
        """The scores by metric; ``None`` where no verdict was given."""
        return {name: result.value for name, result in self.results.items()}

    @property
    def unanswered(self) -> str:
        """Why there is no verdict although it was asked for; empty where there is one."""
        reasons = [result.reason for result in self.results.values() if result.status is Status.FAILED]
        return reasons[0] if len(reasons) == len(self.results) and reasons else ""


class NoJudge(Exception):
    """The judge cannot be asked at all before somebody acts; ``reason`` is the outcome's code."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass
class Attacker:
    """One judge configuration under attack. ``expects`` as in a :class:`Case`; ``rng`` spreads the waits before
    retries."""

    client: JudgeClient
    model: str
    parameters: Mapping[str, Any]
    rung: Rung
    language: str
    expects: bool = False
    rng: random.Random = field(default_factory=random.Random)

    async def face_all(self) -> tuple[Faced, ...]:
        """Every shipped attack in both languages, with the rubric in the judge's language.

        :raises NoJudge: where no call can succeed before somebody acts.
        """
        places = asyncio.Semaphore(AT_ONCE)

        async def one(attacks: AttackSet, attack: Attack) -> Faced:
            async with places:
                return await self._face(attacks, attack)

        found: list[Faced] = []
        for attacks in attack_sets():
            faced = await asyncio.gather(*(one(attacks, attack) for attack in attacks.attacks))
            values = {each.attack.id: each.values for each in faced}
            for each in faced:
                broken = broken_bounds(each.attack, each.values, values)
                found.append(Faced(each.language, each.attack, each.results, each.gate, each.replies, broken))
        return tuple(found)

    async def _face(self, attacks: AttackSet, attack: Attack) -> Faced:
        family, rubric = family_named(FAMILY), shipped_rubric(FAMILY, self.language)
        question, answer = attacks.question(attack), attacks.answer(attack)
        results = ruled(family, family.metrics, question, answer, self.language)
        if results:
            return Faced(attacks.language, attack, results, gate=_gate_of(results))
        talk = Talk(family.judge(Case(rubric, question, answer, family.metrics, expects=self.expects)))
        replies: list[JudgeReply] = []
        while talk.ask is not None:
            call = judge_call(
                rubric, question, answer, talk.ask, model=self.model, parameters=self.parameters, rung=self.rung
            )
            talk.hear(await self._answered(call, replies))
        return Faced(attacks.language, attack, talk.results, replies=tuple(replies))

    async def _answered(self, call: JudgeCall, replies: list[JudgeReply]) -> Heard:
        """What is heard in the end; waits that are too long for a check count as no answer."""
        earlier: list[Outcome] = []
        while True:
            reply = await self.client.call(call)
            replies.append(reply)
            heard = hear(reply, call.ask, call.rung)
            if heard.outcome is Outcome.OK:
                return heard
            decision = decide(heard.outcome, len(earlier) + 1, reply.retry_after, self.rng, earlier=earlier)
            earlier.append(heard.outcome)
            if isinstance(decision, NeedsPerson):
                raise NoJudge(decision.reason)
            if not isinstance(decision, Retry):
                return heard
            if heard.outcome in {Outcome.PARSE, Outcome.TRUNCATED}:
                call = repaired(call, heard.outcome)
            await asyncio.sleep(decision.seconds)


def rubric_of_attacks(language: str) -> Rubric:
    """The rubric by which a judge of that language is put to the attacks."""
    return shipped_rubric(FAMILY, language)


def _gate_of(results: Mapping[str, Result]) -> str:
    return next((str(result.detail["gate"]) for result in results.values() if "gate" in result.detail), "")
