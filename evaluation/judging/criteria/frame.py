"""From a criterion to the rubric a judge reads: its texts in the fixed places of a frame that nobody edits."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field

from evaluation.judging.criteria.spec import CriterionSpec
from evaluation.judging.criteria.terms import CriterionTerms, Slot, family_of_criterion
from evaluation.judging.rubric import Rubric

_Text = Annotated[str, Field(min_length=1)]


class Closings(BaseModel):
    """How the request ends, for numbers and for classes; ``{metrics}`` is the criterion's name."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    score: _Text
    label: _Text


class Frame(BaseModel):
    """The texts around every criterion in one language."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    instruction: _Text
    slots: dict[Slot, _Text]
    grading: _Text
    guidance: _Text
    closings: Closings
    repair: _Text


@cache
def frame(language: str) -> Frame:
    """The frame of a language, ``en`` or ``ko``."""
    path = Path(__file__).with_name(f"frame.{language}.yaml")
    return Frame.model_validate(yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader))


def criterion_rubric(spec: CriterionSpec, language: str, *, version: int, metric_version: int) -> Rubric:
    """The rubric of a version of a criterion in one of its languages. Texts are joined, never formatted."""
    around, texts = frame(language), spec.texts(language)
    shown = [f"  - {_indented(around.slots[slot])}" for slot in Slot if slot in spec.sees]
    parts = ["\n".join([around.instruction.rstrip(), *shown]), around.grading.rstrip()]
    if texts.instruction:
        parts.append(f"{around.guidance}\n{texts.instruction}")
    return Rubric(
        family=family_of_criterion(spec.name),
        version=version,
        language="ko" if language == "ko" else "en",
        instruction="\n\n".join(parts),
        closing=around.closings.label if spec.form == "class" else around.closings.score,
        repair=around.repair,
        metrics=(spec.metric(language),),
        criterion=CriterionTerms(
            metric_version=metric_version,
            title_en=spec.title_en,
            title_ko=spec.title_ko,
            direction=spec.direction,
            needs=spec.needs,
            sees=spec.sees,
            categories=spec.categories,
            offline=spec.offline,
        ),
    )


def _indented(text: str) -> str:
    return "\n    ".join(text.strip().splitlines())
