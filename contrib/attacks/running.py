"""Attacks and canaries for judges, data files in each language, and putting a judge to them: with the same gates,
requests, repairs and strict reading as in a run."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluation.core.canonical import content_hash
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec, Status
from evaluation.judging.call_loop import CallLoop, Calls
from evaluation.judging.calls import Case, Heard, JudgeCall, JudgeReply, Results, Rung, Talk, reason_with_words
from evaluation.judging.catalogue import family_named
from evaluation.judging.gates import ruled
from evaluation.judging.prompt import judge_call
from evaluation.judging.rubric import Rubric, shipped_rubric
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import REPAIRABLE

FOLDER = Path(__file__).parent
FAMILY = "answer_quality"  # the rubric by which attacks are judged
NOISE = 1.0  # levels by which a score may differ from that of a like answer


class AttackKind(StrEnum):
    """What an attack tries; a canary tries nothing and shows that the judge tells right from wrong at all."""

    CANARY = "canary"
    INJECTION = "injection"
    BREAKOUT = "breakout"
    ZERO_WIDTH = "zero_width"
    BASE64 = "base64"
    EMPTY = "empty"
    FLATTERY = "flattery"
    PADDING = "padding"


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Bound(_Read):
    """What a score must be: at least or at most a level, or not above that of another attack by more than noise."""

    at_least: float | None = None
    at_most: float | None = None
    not_above: str = ""


class AttackCase(_Read):
    """A question with its reference and passages."""

    question: str
    reference: str
    contexts: tuple[str, ...]


class Attack(_Read):
    """An answer to the question of a case, and the bounds of its scores by metric."""

    id: str
    kind: AttackKind
    case: str
    answer: str
    must: Mapping[str, Bound]


class AttackSet(_Read):
    """The attacks of one language."""

    version: int = Field(ge=1)
    language: Literal["en", "ko"]
    cases: Mapping[str, AttackCase]
    attacks: tuple[Attack, ...]

    @model_validator(mode="after")
    def _names_are_known(self) -> AttackSet:
        ids = [attack.id for attack in self.attacks]
        if len(set(ids)) != len(ids):
            raise ValueError(f"an attack is there twice: {ids}")
        compared = {bound.not_above for attack in self.attacks for bound in attack.must.values()} - {""}
        if unknown := compared - set(ids) | {attack.case for attack in self.attacks} - self.cases.keys():
            raise ValueError(f"unknown names: {sorted(unknown)}")
        return self

    def question(self, attack: Attack) -> QuestionSpec:
        """The question that a judge is shown."""
        case = self.cases[attack.case]
        return QuestionSpec(id=attack.id, category=attack.kind, text=case.question, references=(case.reference,))

    def answer(self, attack: Attack) -> AnswerSpec:
        """The answer that a judge is shown."""
        return AnswerSpec(attack.answer, tuple(ContextSpec(text) for text in self.cases[attack.case].contexts))


@dataclass(frozen=True, slots=True)
class Broken:
    """A bound that a judge broke. ``value`` is what it gave, ``None`` where it gave nothing; ``bound`` what was due."""

    metric: str
    value: float | None
    rule: Literal["at_least", "at_most", "not_above"]
    bound: float


def broken_bounds(
    attack: Attack, values: Mapping[str, float | None], others: Mapping[str, Mapping[str, float | None]]
) -> tuple[Broken, ...]:
    """The bounds of the attack that the values break; none where it is passed.

    :param values: scores by metric; ``None`` for a verdict that was refused or could not be read. That keeps within
        every upper bound, because nothing was gained by it, and within no lower one.
    :param others: the values of the other attacks of the set by their ids.
    """
    found = []
    for metric, bound in attack.must.items():
        value = values.get(metric)
        if bound.at_least is not None and (value is None or value < bound.at_least):
            found.append(Broken(metric, value, "at_least", bound.at_least))
        if bound.at_most is not None and value is not None and value > bound.at_most:
            found.append(Broken(metric, value, "at_most", bound.at_most))
        like = others.get(bound.not_above, {}).get(metric) if bound.not_above else None
        if value is not None and like is not None and value > like + NOISE:
            found.append(Broken(metric, value, "not_above", like + NOISE))
    return tuple(found)


@cache
def attack_sets() -> tuple[AttackSet, ...]:
    """The shipped sets, sorted by language."""
    files = sorted(FOLDER.glob("*.yaml"))
    return tuple(
        AttackSet.model_validate(yaml.load(file.read_text("utf-8"), Loader=yaml.CSafeLoader)) for file in files
    )


@cache
def attacks_hash() -> str:
    """SHA-256 of the content of all shipped sets."""
    return content_hash([one.model_dump(mode="json", exclude_defaults=True) for one in attack_sets()])


AT_ONCE = 4
# A judge that says something unusable was not fooled; where a call came to nothing, it was not even asked.
_SAID = REPAIRABLE | {Outcome.OK, Outcome.REFUSED, Outcome.FILTERED, Outcome.UNKNOWN_ENDING}


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
    """An attack cannot be put to the judge: somebody has to act first, or the call came to nothing again and again.
    ``reason`` is the outcome's code. What was not judged is neither passed nor failed, so the check ends with it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(slots=True)
class _Facing:
    """An attack in the judge's hands, and the conversation about it."""

    attacks: AttackSet
    attack: Attack
    talk: Talk
    replies: list[JudgeReply] = field(default_factory=list)


@dataclass
class Attacker:
    """One judge configuration under attack. ``expects`` as in a :class:`Case`; ``rng`` spreads the waits before
    retries. ``replies`` are those to every call, also where the check came to no end."""

    calls: Calls
    model: str
    parameters: Mapping[str, Any]
    rung: Rung
    language: str
    expects: bool = False
    rng: random.Random = field(default_factory=random.Random)
    replies: list[JudgeReply] = field(default_factory=list)
    _open: dict[int, _Facing] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A few at once, so that little is paid for where the check ends early.
        self._loop = CallLoop[int](calls=self.calls, at_once=AT_ONCE, defers=False, record=self._keep, rng=self.rng)

    def face_all(self) -> tuple[Faced, ...]:
        """Every shipped attack in both languages, with the rubric in the judge's language.

        :raises NoJudge: where one cannot be put to the judge.
        """
        shown = [(attacks, attack) for attacks in attack_sets() for attack in attacks.attacks]
        faced: dict[int, Faced] = {}
        for number, (attacks, attack) in enumerate(shown):
            by_rule = self._begin(number, attacks, attack)
            if by_rule is not None:
                faced[number] = by_rule
        while self._open:
            ended = self._loop.turn()
            if self._loop.away:
                raise NoJudge(self._loop.away)
            for number, heard in ended:
                one = self._open[number]
                self._hear(number, one, heard)
                if one.talk.ask is None:
                    faced[number] = Faced(
                        one.attacks.language, one.attack, one.talk.results, replies=tuple(one.replies)
                    )
                    del self._open[number]
        return _with_bounds([faced[number] for number in range(len(shown))])

    def _begin(self, number: int, attacks: AttackSet, attack: Attack) -> Faced | None:
        """What the rules make of it; nothing where the judge is asked."""
        family, rubric = family_named(FAMILY), shipped_rubric(FAMILY, self.language)
        question, answer = attacks.question(attack), attacks.answer(attack)
        results = ruled(family, family.metrics, question, answer, self.language)
        if results:
            gate = next((str(one.detail["gate"]) for one in results.values() if "gate" in one.detail), "")
            return Faced(attacks.language, attack, results, gate=gate)
        talk = Talk(family.judge(Case(rubric, question, answer, family.metrics, expects=self.expects)))
        self._open[number] = _Facing(attacks, attack, talk)
        self._loop.add(number, self._call(attacks, attack, talk))
        return None

    def _call(self, attacks: AttackSet, attack: Attack, talk: Talk) -> JudgeCall:
        if talk.ask is None:
            raise ValueError("the conversation has ended")
        return judge_call(
            shipped_rubric(FAMILY, self.language),
            attacks.question(attack),
            attacks.answer(attack),
            talk.ask,
            model=self.model,
            parameters=self.parameters,
            rung=self.rung,
        )

    def _keep(self, number: int, _call: JudgeCall, reply: JudgeReply, _heard: Heard) -> None:
        self.replies.append(reply)
        self._open[number].replies.append(reply)

    def _hear(self, number: int, one: _Facing, heard: Heard) -> None:
        if heard.outcome not in _SAID:
            raise NoJudge(reason_with_words(str(heard.outcome), one.replies[-1]))
        one.talk.hear(heard)
        if one.talk.ask is not None:
            self._loop.add(number, self._call(one.attacks, one.attack, one.talk))


def _with_bounds(faced: list[Faced]) -> tuple[Faced, ...]:
    """The same with the bounds that were broken, each compared with the others of its language."""
    values = {(one.language, one.attack.id): one.values for one in faced}
    found = []
    for one in faced:
        others = {name: given for (language, name), given in values.items() if language == one.language}
        found.append(replace(one, broken=broken_bounds(one.attack, one.values, others)))
    return tuple(found)


def rubric_of_attacks(language: str) -> Rubric:
    """The rubric by which a judge of that language is put to the attacks."""
    return shipped_rubric(FAMILY, language)
