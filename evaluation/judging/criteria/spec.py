"""Custom criterion: question, anchored levels and the inputs that the judge sees, and the rubric built from it.

A criterion is data. Its texts are inserted into a fixed frame as they are and are never treated as placeholders."""

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
from evaluation.core.scales import ReviewForm, Scale, default_review_form
from evaluation.judging.rubric import CriterionTerms, OfflineMeasure, PromptSlot, Rubric, RubricMetric, criterion_family

# The review screen shows larger scales as a number field without level texts.
MAX_LEVELS = 11
MAX_INSTRUCTION_CHARACTERS = 4000
# Characters.
MAX_ANCHOR_CHARACTERS, MAX_LABEL_CHARACTERS = 120, 40
_LINE_BREAKS = "\n\t"
_LANGUAGES: tuple[Literal["en", "ko"], ...] = ("en", "ko")
_INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def criterion_error(code: str, **params: str) -> PydanticCustomError:
    """Validation error with a message code of ``messages/problems.py``."""
    return PydanticCustomError(code, code, params)


def _visible_text(text: str) -> str:
    """Reject invisible characters, which a reviewer could not see before activation."""
    hidden = sorted(
        {f"U+{ord(c):04X}" for c in text if unicodedata.category(c) in _INVISIBLE_CATEGORIES and c not in _LINE_BREAKS}
    )
    if hidden:
        raise criterion_error("criterion_unseen", characters=", ".join(hidden))
    return unicodedata.normalize("NFC", text.replace("\t", " ").strip())


def _one_line(text: str) -> str:
    if "\n" in text:
        raise criterion_error("criterion_one_line")
    return text


_Readable = AfterValidator(_visible_text)
_Line = Annotated[str, Field(max_length=300), _Readable, AfterValidator(_one_line)]
_Title = Annotated[str, Field(min_length=1, max_length=80), _Readable, AfterValidator(_one_line)]
_Anchor = Annotated[str, Field(min_length=1, max_length=MAX_ANCHOR_CHARACTERS), _Readable, AfterValidator(_one_line)]
_Label = Annotated[str, Field(pattern=r"^([\w][\w -]*)?$", max_length=MAX_LABEL_CHARACTERS), _Readable]
_Slots = Annotated[
    tuple[PromptSlot, ...], AfterValidator(lambda slots: tuple(slot for slot in PromptSlot if slot in slots))
]
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class CriterionLevel(FrozenModel):
    """One anchored level: its key (number or label) and the text that says when it applies."""

    value: int | float | None = Field(default=None, allow_inf_nan=False)
    label: _Label = ""
    text: _Anchor

    @model_validator(mode="after")
    def _has_one_key(self) -> Self:
        if (self.value is None) == (not self.label):
            raise criterion_error("criterion_level_key")
        return self


class CriterionTexts(FrozenModel):
    """Criterion in one language: question for experts and judges, grading guidance and levels."""

    question: _Line
    instruction: Annotated[str, Field(max_length=MAX_INSTRUCTION_CHARACTERS), _Readable] = ""
    levels: Annotated[tuple[CriterionLevel, ...], Field(min_length=2, max_length=MAX_LEVELS)]

    @model_validator(mode="after")
    def _has_question(self) -> Self:
        if not self.question:
            raise criterion_error("criterion_no_question")
        return self

    @property
    def keys(self) -> tuple[float | str, ...]:
        """Numbers or labels of the levels, in order."""
        return tuple(level.label if level.value is None else level.value for level in self.levels)


class CriterionSpec(FrozenModel):
    """A criterion. ``form`` is ``levels`` (whole numbers), ``real`` (numbers between anchors), ``yes_no`` (0 and 1) or
    ``class``. If one language is missing, its readers and judges get the other.

    :raises ValueError: if the levels do not form a scale, differ between languages, an input is needed but not visible
    to the judge, or the offline measure cannot produce values of the scale."""

    name: _Name
    title_en: _Title
    title_ko: _Title
    form: Literal["levels", "real", "yes_no", "class"] = "levels"
    direction: Direction = Direction.HIGHER
    en: CriterionTexts | None = None
    ko: CriterionTexts | None = None
    sees: _Slots = ()
    needs: _Slots = ()
    categories: Annotated[tuple[_Title, ...], AfterValidator(lambda names: tuple(dict.fromkeys(names)))] = ()
    offline: OfflineMeasure = OfflineMeasure.NONE

    @model_validator(mode="after")
    def _languages_agree(self) -> Self:
        if not self.languages:
            raise criterion_error("criterion_no_language")
        if self.en and self.ko and self.en.keys != self.ko.keys:
            raise criterion_error("criterion_languages_differ")
        for language in self.languages:
            self.metric(language)
        return self

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if hidden := sorted(set(self.needs) - set(self.sees)):
            raise criterion_error("criterion_needs_unseen", slots=", ".join(hidden))
        if PromptSlot.CLARIFICATION_OK in self.needs:
            raise criterion_error("criterion_needs_mark")
        if self.form == "class" and self.direction is not Direction.NONE:
            raise criterion_error("criterion_class_direction")
        if self.form != "class" and self.direction is Direction.NONE:
            raise criterion_error("criterion_no_direction")
        if self.offline is not OfflineMeasure.NONE and self.form == "class":
            raise criterion_error("criterion_offline_class")
        if self.offline in _OFFLINE_NEEDS and _OFFLINE_NEEDS[self.offline] not in self.needs:
            raise criterion_error(
                "criterion_offline_needs", stand_in=str(self.offline), slot=str(_OFFLINE_NEEDS[self.offline])
            )
        return self

    @property
    def languages(self) -> tuple[Literal["en", "ko"], ...]:
        return tuple(language for language in _LANGUAGES if getattr(self, language))

    def texts(self, language: str) -> CriterionTexts:
        """Texts in a language, or in the other one if it is missing."""
        texts = (self.ko or self.en) if language.startswith("ko") else (self.en or self.ko)
        # Excluded by validation.
        if texts is None:
            raise ValueError("no language")
        return texts

    def metric(self, language: str) -> RubricMetric:
        """Rubric metric with the criterion's question and levels.

        :raises ValueError: if the levels do not form a scale of the criterion's form."""
        texts = self.texts(language)
        labelled = [level.value is None for level in texts.levels]
        if any(labelled) != (self.form == "class") or any(labelled) != all(labelled):
            raise criterion_error("criterion_level_kind")
        if self.form == "class":
            if len(set(texts.keys)) != len(texts.keys):
                raise criterion_error("criterion_classes_repeat")
            labels = [{"label": level.label, "text": level.text} for level in texts.levels]
            return RubricMetric.model_validate({"name": self.name, "question": texts.question, "labels": labels})
        numbers = [level.value for level in texts.levels if level.value is not None]
        values = [int(n) if self.form != "real" and float(n).is_integer() else n for n in numbers]
        if self.form == "yes_no" and values != [0, 1]:
            raise criterion_error("criterion_yes_no")
        if self.form == "levels" and any(isinstance(value, float) for value in values):
            raise criterion_error("criterion_whole_levels")
        scale = {"levels": "", "yes_no": "yes_no", "real": f"real {values[0]:g}..{values[-1]:g}"}[self.form]
        if values != sorted(set(values)) or (self.form == "levels" and values[-1] - values[0] != len(values) - 1):
            raise criterion_error("criterion_levels_order")
        levels = [{"value": v, "text": level.text} for v, level in zip(values, texts.levels, strict=True)]
        return RubricMetric.model_validate(
            {"name": self.name, "question": texts.question, "scale": scale, "levels": levels}
        )

    @property
    def scale(self) -> Scale:
        return self.metric("en").read_scale()

    @property
    def review_form(self) -> ReviewForm:
        return default_review_form(self.scale)

    def content(self) -> dict[str, Any]:
        """JSON values that define the version, without defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def comparability_hash(self) -> str:
        """Hash of scale, direction and anchors. Scores are comparable only within one hash; a change defines a new
        metric."""
        anchors = {language: [level.text for level in self.texts(language).levels] for language in self.languages}
        return content_hash([self.name, str(self.scale), self.direction, self.review_form, anchors])


def read_criterion(values: Any) -> CriterionSpec:
    """Validate a criterion.

    :raises InvalidFile: with every problem; its field is the path of the invalid value."""
    try:
        return CriterionSpec.model_validate(values)
    except ValidationError as error:
        raise InvalidFile([_problem(detail) for detail in error.errors()]) from error


def _problem(error: Any) -> Problem:
    field = ".".join(str(part) for part in error["loc"])
    if error["type"].startswith("criterion_"):
        return Problem(error["type"], field=field, params=error.get("ctx", {}))
    return Problem("criterion_invalid", field=field, params={"error": error["msg"]})


_OFFLINE_NEEDS = {
    OfflineMeasure.CORRECTNESS: PromptSlot.REFERENCE,
    OfflineMeasure.COMPLETENESS: PromptSlot.REFERENCE,
    OfflineMeasure.FAITHFULNESS: PromptSlot.CONTEXTS,
}


_Text = Annotated[str, Field(min_length=1)]


class CriterionFrame(FrozenModel):
    """Fixed texts around every criterion in one language. ``closings`` end the request, for numbers and for classes;
    ``{metrics}`` in them is the criterion's name."""

    instruction: _Text
    slots: dict[PromptSlot, _Text]
    grading: _Text
    guidance: _Text
    closings: dict[Literal["score", "label"], _Text]
    repair: _Text


@cache
def criterion_frame(language: str) -> CriterionFrame:
    """Load the frame of a language, ``en`` or ``ko``."""
    path = Path(__file__).with_name(f"frame.{language}.yaml")
    return CriterionFrame.model_validate(yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader))


def criterion_rubric(spec: CriterionSpec, language: str, *, version: int, metric_version: int) -> Rubric:
    """Build the rubric of a criterion version in one language. Texts are joined, never formatted."""
    frame_texts, texts = criterion_frame(language), spec.texts(language)
    slot_lines = [f"  - {_indented(frame_texts.slots[slot])}" for slot in PromptSlot if slot in spec.sees]
    parts = ["\n".join([frame_texts.instruction.rstrip(), *slot_lines]), frame_texts.grading.rstrip()]
    if texts.instruction:
        parts.append(f"{frame_texts.guidance}\n{texts.instruction}")
    return Rubric(
        family=criterion_family(spec.name),
        version=version,
        language="ko" if language == "ko" else "en",
        instruction="\n\n".join(parts),
        closing=frame_texts.closings["label" if spec.form == "class" else "score"],
        repair=frame_texts.repair,
        metrics=(spec.metric(language),),
        criterion=CriterionTerms(
            metric_version=metric_version, **spec.model_dump(include=set(CriterionTerms.model_fields))
        ),
    )


def _indented(text: str) -> str:
    return "\n    ".join(text.strip().splitlines())
