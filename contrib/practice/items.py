"""The ten answers to practise on, with the rating their authors would give and a reason, and what a person's practice
ratings have in common with it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from evaluation.core.metric_specs import Bilingual
from evaluation.profiles.spec import read_mapping

FILE = Path(__file__).with_name("items.yaml")
FAMILY = "answer_quality"  # the rubric whose levels are asked for
METRICS = ("correctness", "faithfulness", "completeness")
Name = Literal["correctness", "faithfulness", "completeness"]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Passage(_Data):
    """A retrieved passage and where it is from."""

    source: Bilingual
    text: Bilingual


class Expected(_Data):
    """The rating the authors would give: a level of the rubric and why it is this one."""

    level: Annotated[int, Field(ge=1, le=5)]
    why: Bilingual


class PracticeItem(_Data):
    """One answer to practise on. ``advice`` says what to do beside rating it, where there is something."""

    id: Annotated[str, Field(pattern=r"^[a-z-]{1,40}$")]
    category: str
    question: Bilingual
    answer: Bilingual
    expected: Bilingual
    passages: Annotated[tuple[Passage, ...], Field(min_length=1)]
    ratings: dict[Name, Expected]
    advice: Bilingual | None = None


class _File(_Data):
    items: Annotated[tuple[PracticeItem, ...], Field(min_length=1)]


@cache
def practice_items() -> tuple[PracticeItem, ...]:
    """All items in the order in which they are practised."""
    return _File.model_validate(read_mapping(FILE.read_text("utf-8"))).items


Levels = Mapping[str, int | None]  # metric -> level; ``None`` where the person could not judge


class Told(NamedTuple):
    """One criterion: the person's level (``None``: could not judge) beside the expected one."""

    metric: str
    own: int | None
    expected: Expected

    @property
    def distance(self) -> int | None:
        """Levels between the two; ``None`` where the person could not judge."""
        return None if self.own is None else abs(self.own - self.expected.level)

    @property
    def same(self) -> bool:
        """Whether both gave the same level."""
        return self.distance == 0


class Tally(NamedTuple):
    """A person's practice on one criterion: ratings given, the same, at most one level apart, and ``higher`` and
    ``lower`` than expected."""

    metric: str
    given: int
    same: int
    near: int
    higher: int
    lower: int


def told(item: PracticeItem, given: Levels) -> tuple[Told, ...]:
    """The criteria of an item, those that differ first and the furthest of them at the top."""
    found = [Told(name, given.get(name), item.ratings[name]) for name in METRICS]  # type: ignore[index]
    return tuple(sorted(found, key=lambda one: -5 if one.distance is None else -one.distance))


def tally(items: tuple[PracticeItem, ...], given: Mapping[str, Levels]) -> tuple[Tally, ...]:
    """The criteria over all items that were rated; what could not be judged is not counted."""
    everything = [one for item in items if item.id in given for one in told(item, given[item.id])]
    return tuple(_tally(name, [one for one in everything if one.metric == name]) for name in METRICS)


def _tally(metric: str, found: list[Told]) -> Tally:
    apart = [one.own - one.expected.level for one in found if one.own is not None]
    return Tally(
        metric,
        given=len(apart),
        same=sum(gap == 0 for gap in apart),
        near=sum(abs(gap) <= 1 for gap in apart),
        higher=sum(gap > 0 for gap in apart),
        lower=sum(gap < 0 for gap in apart),
    )
