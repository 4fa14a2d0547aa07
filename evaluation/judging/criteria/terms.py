"""What a rubric made from a custom criterion says beside its texts: all that makes its one metric what it is.

It stands in the rubric, so that a run that pins the rubric's version judges by it whatever is activated later.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from evaluation.core.registry import Direction

FAMILY_PREFIX = "criterion:"  # rubric families of criteria; no built-in family and no criterion can have a colon


class Slot(StrEnum):
    """What a judge may be shown beside question and answer. The list is closed: a prompt has no other places."""

    REFERENCE = "reference"
    CONTEXTS = "contexts"
    REQUIRED_INFO = "required_info"
    PERSONA = "persona"
    HISTORY = "history"
    CLARIFICATION_OK = "clarification_ok"


class Offline(StrEnum):
    """By which of its counts of words the offline baseline stands in for the judge; ``none``: it does not."""

    NONE = "none"
    CORRECTNESS = "correctness"
    FAITHFULNESS = "faithfulness"
    COMPLETENESS = "completeness"
    RELEVANCY = "relevancy"


class CriterionTerms(BaseModel):
    """``metric_version`` is the version of the metric definition, which rises only with scale, levels or direction.
    ``needs`` are slots without which the criterion does not apply, ``sees`` those shown where they are there;
    ``categories`` the categories of questions it applies to, all where empty."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    metric_version: Annotated[int, Field(ge=1)]
    title_en: str
    title_ko: str
    direction: Direction
    needs: tuple[Slot, ...] = ()
    sees: tuple[Slot, ...] = ()
    categories: tuple[str, ...] = ()
    offline: Offline = Offline.NONE


def family_of_criterion(name: str) -> str:
    """The rubric family of a criterion."""
    return FAMILY_PREFIX + name


def is_criterion(family: str) -> bool:
    """Whether a rubric family is that of a custom criterion."""
    return family.startswith(FAMILY_PREFIX)
