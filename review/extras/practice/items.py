"""The ten answers to practise on: question, answer, passages, and the rating their authors would give with a reason."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluation.core.registry import Bilingual
from evaluation.profiles.strict_yaml import read_mapping

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
