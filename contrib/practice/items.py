"""Practice examples with their authors' ratings and reasons, and the comparison with a person's own ratings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from evaluation.core.metric_specs import Bilingual
from evaluation.profiles.spec import read_mapping

FILE = Path(__file__).with_name("items.yaml")
# Rubric family whose levels are practised.
FAMILY = "answer_quality"
METRICS = ("correctness", "faithfulness", "completeness")
MetricName = Literal["correctness", "faithfulness", "completeness"]


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Passage(_FrozenModel):
    """A retrieved passage and its source."""

    source: Bilingual
    text: Bilingual


class ExpectedRating(_FrozenModel):
    """The authors' rating: a level of the rubric and the reason for it."""

    level: Annotated[int, Field(ge=1, le=5)]
    why: Bilingual


class PracticeItem(_FrozenModel):
    """An answer to practise on. ``advice`` says what else a reviewer should do with it, such as flag it; it may be
    missing."""

    id: Annotated[str, Field(pattern=r"^[a-z-]{1,40}$")]
    category: str
    question: Bilingual
    answer: Bilingual
    expected: Bilingual
    passages: Annotated[tuple[Passage, ...], Field(min_length=1)]
    ratings: dict[MetricName, ExpectedRating]
    advice: Bilingual | None = None


class _File(_FrozenModel):
    items: Annotated[tuple[PracticeItem, ...], Field(min_length=1)]


@cache
def practice_items() -> tuple[PracticeItem, ...]:
    """Load all examples in the order of practice."""
    return _File.model_validate(read_mapping(FILE.read_text("utf-8"))).items


# Metric -> level; ``None`` if the person could not judge.
Levels = Mapping[str, int | None]


class PracticeFeedback(NamedTuple):
    """Feedback on one criterion: the person's level (``None``: could not judge) and the expected one."""

    metric: str
    own_level: int | None
    expected_rating: ExpectedRating

    @property
    def distance(self) -> int | None:
        """Number of levels between the person's rating and the expected one; ``None`` if the person could not judge."""
        return None if self.own_level is None else abs(self.own_level - self.expected_rating.level)

    @property
    def is_same(self) -> bool:
        return self.distance == 0


class Tally(NamedTuple):
    """Counts of a person's practice ratings on one criterion.

    ``total`` counts all of them, ``same`` those as expected, ``within_one`` those at most one level off, ``higher`` and
    ``lower`` those above and below the expected level."""

    metric: str
    total: int
    same: int
    within_one: int
    higher: int
    lower: int


def practice_feedback(item: PracticeItem, levels: Levels) -> tuple[PracticeFeedback, ...]:
    """Feedback on all criteria of an example, largest distance first; unjudged criteria lead."""
    rows = [PracticeFeedback(name, levels.get(name), item.ratings[name]) for name in METRICS]  # type: ignore[index]
    return tuple(sorted(rows, key=lambda row: -5 if row.distance is None else -row.distance))


def tally_ratings(items: tuple[PracticeItem, ...], levels_by_item: Mapping[str, Levels]) -> tuple[Tally, ...]:
    """Count the ratings of each criterion over all rated examples, without unjudged ones."""
    rows = [
        row for item in items if item.id in levels_by_item for row in practice_feedback(item, levels_by_item[item.id])
    ]
    return tuple(_tally(name, [row for row in rows if row.metric == name]) for name in METRICS)


def _tally(metric: str, rows: list[PracticeFeedback]) -> Tally:
    gaps = [row.own_level - row.expected_rating.level for row in rows if row.own_level is not None]
    return Tally(
        metric,
        total=len(gaps),
        same=sum(gap == 0 for gap in gaps),
        within_one=sum(abs(gap) <= 1 for gap in gaps),
        higher=sum(gap > 0 for gap in gaps),
        lower=sum(gap < 0 for gap in gaps),
    )
