"""A custom criterion as people write it: what is asked, its anchored levels, and what the judge may see; and the rubric
a judge reads by it.

It is data. Its texts are put into the fixed places of a frame that nobody edits, as they are; nothing in them is ever a
placeholder.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from evaluation.core.canonical import content_hash
from evaluation.core.errors import InvalidFile, Problem
from evaluation.core.metric_specs import Direction
from evaluation.core.samples import FrozenModel
from evaluation.core.scales import ReviewForm, Scale, review_form_of
from evaluation.judging.rubric import CriterionTerms, Offline, Rubric, RubricMetric, Slot, family_of_criterion

MOST_LEVELS = 11  # the review screen asks for more as a number, without their texts
LONGEST_INSTRUCTION = 4000
LONGEST_ANCHOR, LONGEST_LABEL = 120, 40  # characters
_LINE_BREAKS = "\n\t"
_LANGUAGES: tuple[Literal["en", "ko"], ...] = ("en", "ko")
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def wrong(code: str, **params: str) -> PydanticCustomError:
    """What is wrong with a criterion, as a code of ``wording/problems.py``."""
    return PydanticCustomError(code, code, params)


def _readable(text: str) -> str:
    """Refuse what whoever activates the criterion could not see."""
    hidden = sorted({f"U+{ord(c):04X}" for c in text if unicodedata.category(c) in _UNSEEN and c not in _LINE_BREAKS})
    if hidden:
        raise wrong("criterion_unseen", characters=", ".join(hidden))
    return unicodedata.normalize("NFC", text.replace("\t", " ").strip())


def _one_line(text: str) -> str:
    if "\n" in text:
        raise wrong("criterion_one_line")
    return text


_Readable = AfterValidator(_readable)
_Line = Annotated[str, Field(max_length=300), _Readable, AfterValidator(_one_line)]
_Title = Annotated[str, Field(min_length=1, max_length=80), _Readable, AfterValidator(_one_line)]
_Anchor = Annotated[str, Field(min_length=1, max_length=LONGEST_ANCHOR), _Readable, AfterValidator(_one_line)]
_Label = Annotated[str, Field(pattern=r"^([\w][\w -]*)?$", max_length=LONGEST_LABEL), _Readable]
_Slots = Annotated[tuple[Slot, ...], AfterValidator(lambda given: tuple(slot for slot in Slot if slot in given))]
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class CriterionLevel(FrozenModel):
    """One anchored level: its key, a number or a label, and when it is right."""

    value: int | float | None = Field(default=None, allow_inf_nan=False)
    label: _Label = ""
    text: _Anchor

    @model_validator(mode="after")
    def _has_one_key(self) -> Self:
        if (self.value is None) == (not self.label):
            raise wrong("criterion_level_key")
        return self


class CriterionTexts(FrozenModel):
    """The criterion in one language: the question experts and judges answer, how to grade it, and the levels."""

    question: _Line
    instruction: Annotated[str, Field(max_length=LONGEST_INSTRUCTION), _Readable] = ""
    levels: Annotated[tuple[CriterionLevel, ...], Field(min_length=2, max_length=MOST_LEVELS)]

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        if not self.question:
            raise wrong("criterion_no_question")
        return self

    @property
    def keys(self) -> tuple[float | str, ...]:
        """The levels' numbers or labels, in their order."""
        return tuple(level.label if level.value is None else level.value for level in self.levels)


class CriterionSpec(FrozenModel):
    """A criterion. ``form`` is ``levels`` (whole numbers), ``real`` (numbers between anchors), ``yes_no`` (0 and 1) or
    ``class``. One of the languages may be missing; then readers and judges of that language get the other.

    :raises ValueError: when the levels do not make a scale of the form, differ between the languages, when something
        is needed that the judge may not see, or the offline stand-in cannot give values of the scale.
    """

    name: _Name
    title_en: _Title
    title_ko: _Title
    form: Literal["levels", "real", "yes_no", "class"] = "levels"
    direction: Direction = Direction.HIGHER
    en: CriterionTexts | None = None
    ko: CriterionTexts | None = None
    sees: _Slots = ()
    needs: _Slots = ()
    categories: Annotated[tuple[_Title, ...], AfterValidator(lambda given: tuple(dict.fromkeys(given)))] = ()
    offline: Offline = Offline.NONE

    @model_validator(mode="after")
    def _languages_agree(self) -> Self:
        if not self.languages:
            raise wrong("criterion_no_language")
        if self.en and self.ko and self.en.keys != self.ko.keys:
            raise wrong("criterion_languages_differ")
        for language in self.languages:
            self.metric(language)
        return self

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if blind := sorted(set(self.needs) - set(self.sees)):
            raise wrong("criterion_needs_unseen", slots=", ".join(blind))
        if Slot.CLARIFICATION_OK in self.needs:
            raise wrong("criterion_needs_mark")
        if self.form == "class" and self.direction is not Direction.NONE:
            raise wrong("criterion_class_direction")
        if self.form != "class" and self.direction is Direction.NONE:
            raise wrong("criterion_no_direction")
        if self.offline is not Offline.NONE and self.form == "class":
            raise wrong("criterion_offline_class")
        if self.offline in _OFFLINE_NEEDS and _OFFLINE_NEEDS[self.offline] not in self.needs:
            raise wrong("criterion_offline_needs", stand_in=str(self.offline), slot=str(_OFFLINE_NEEDS[self.offline]))
        return self

    @property
    def languages(self) -> tuple[Literal["en", "ko"], ...]:
        """The languages in which the criterion is written."""
        return tuple(language for language in _LANGUAGES if getattr(self, language))

    def texts(self, language: str) -> CriterionTexts:
        """The texts in a language, else in the other one."""
        found = (self.ko or self.en) if language.startswith("ko") else (self.en or self.ko)
        if found is None:  # excluded when the criterion was read
            raise ValueError("no language")
        return found

    def metric(self, language: str) -> RubricMetric:
        """Question and levels as a rubric holds them.

        :raises ValueError: when the levels do not make a scale of the form.
        """
        texts = self.texts(language)
        labelled = [level.value is None for level in texts.levels]
        if any(labelled) != (self.form == "class") or any(labelled) != all(labelled):
            raise wrong("criterion_level_kind")
        if self.form == "class":
            if len(set(texts.keys)) != len(texts.keys):
                raise wrong("criterion_classes_repeat")
            labels = [{"label": level.label, "text": level.text} for level in texts.levels]
            return RubricMetric.model_validate({"name": self.name, "question": texts.question, "labels": labels})
        numbers = [level.value for level in texts.levels if level.value is not None]
        values = [int(n) if self.form != "real" and float(n).is_integer() else n for n in numbers]
        if self.form == "yes_no" and values != [0, 1]:
            raise wrong("criterion_yes_no")
        if self.form == "levels" and any(isinstance(value, float) for value in values):
            raise wrong("criterion_whole_levels")
        scale = {"levels": "", "yes_no": "yes_no", "real": f"real {values[0]:g}..{values[-1]:g}"}[self.form]
        if values != sorted(set(values)) or (self.form == "levels" and values[-1] - values[0] != len(values) - 1):
            raise wrong("criterion_levels_order")
        levels = [{"value": v, "text": level.text} for v, level in zip(values, texts.levels, strict=True)]
        return RubricMetric.model_validate(
            {"name": self.name, "question": texts.question, "scale": scale, "levels": levels}
        )

    @property
    def scale(self) -> Scale:
        """The scale of the criterion's values."""
        return self.metric("en").read_scale()

    @property
    def review_form(self) -> ReviewForm:
        """What experts rate it by."""
        return review_form_of(self.scale)

    def content(self) -> dict[str, Any]:
        """What makes the version what it is, without defaults, as JSON values."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def comparable_hash(self) -> str:
        """Hash of what figures are compared by: a change here is another metric. Scale, direction, and the anchors."""
        anchors = {language: [level.text for level in self.texts(language).levels] for language in self.languages}
        return content_hash([self.name, str(self.scale), self.direction, self.review_form, anchors])


def read_criterion(values: Any) -> CriterionSpec:
    """Read a criterion.

    :raises InvalidFile: with every problem; the field is the path of what is wrong.
    """
    try:
        return CriterionSpec.model_validate(values)
    except ValidationError as error:
        raise InvalidFile([_problem(one) for one in error.errors()]) from error


def _problem(error: Any) -> Problem:
    field = ".".join(str(part) for part in error["loc"])
    if error["type"].startswith("criterion_"):
        return Problem(error["type"], field=field, params=error.get("ctx", {}))
    return Problem("criterion_invalid", field=field, params={"error": error["msg"]})


_OFFLINE_NEEDS = {
    Offline.CORRECTNESS: Slot.REFERENCE,
    Offline.COMPLETENESS: Slot.REFERENCE,
    Offline.FAITHFULNESS: Slot.CONTEXTS,
}


_Text = Annotated[str, Field(min_length=1)]


class Frame(FrozenModel):
    """The texts around every criterion in one language. ``closings`` end the request, for numbers and for classes;
    ``{metrics}`` in them is the criterion's name."""

    instruction: _Text
    slots: dict[Slot, _Text]
    grading: _Text
    guidance: _Text
    closings: dict[Literal["score", "label"], _Text]
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
        closing=around.closings["label" if spec.form == "class" else "score"],
        repair=around.repair,
        metrics=(spec.metric(language),),
        criterion=CriterionTerms(
            metric_version=metric_version, **spec.model_dump(include=set(CriterionTerms.model_fields))
        ),
    )


def _indented(text: str) -> str:
    return "\n    ".join(text.strip().splitlines())
