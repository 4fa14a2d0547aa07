"""Attacks and canaries for judges: what is shown to a judge, and what a sound judge must make of it. They are data
files, one for each language; every judge configuration can be put to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluation.core.canonical import content_hash
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec

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


class Bound(BaseModel):
    """What a score must be: at least or at most a level, or not above that of another attack by more than noise."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    at_least: float | None = None
    at_most: float | None = None
    not_above: str = ""


class AttackCase(BaseModel):
    """A question with its reference and passages."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    question: str
    reference: str
    contexts: tuple[str, ...]


class Attack(BaseModel):
    """An answer to the question of a case, and the bounds of its scores by metric."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str
    kind: AttackKind
    case: str
    answer: str
    must: Mapping[str, Bound]


class AttackSet(BaseModel):
    """The attacks of one language."""

    model_config = ConfigDict(frozen=True, extra="forbid")
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
