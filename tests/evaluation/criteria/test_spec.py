"""Criteria are validated strictly: levels form a scale, languages agree, and no text is hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evaluation.core.errors import InvalidFile
from evaluation.core.scales import ReviewForm
from evaluation.judging.criteria.spec import read_criterion
from evaluation.judging.rubric import PromptSlot
from evaluation.messages.explanations import explain
from tests.evaluation.criteria.written import ENGLISH, fields, spec

YES_NO = {"question": "Signed?", "levels": [{"value": 0, "text": "No"}, {"value": 1, "text": "Yes"}]}
CLASSES = {"question": "Which?", "levels": [{"label": "open", "text": "Open"}, {"label": "shut", "text": "Shut"}]}
REAL = {
    "question": "How much?",
    "levels": [{"value": 0, "text": "None"}, {"value": 0.5, "text": "Half"}, {"value": 1, "text": "All"}],
}


DISORDER = "criterion_levels_order"
A_LEVEL = {"value": 2, "text": "c"}
CLASS_ALONE = {"form": "class", "direction": "none", "en": CLASSES, "ko": None}
REPEATED_CLASS = {"question": "Which?", "levels": [{"label": "a", "text": "A"}, {"label": "a", "text": "B"}]}


def levels(*texts: dict[str, Any], question: str = "What?") -> dict[str, Any]:
    return {"question": question, "levels": list(texts)}


@pytest.mark.parametrize(
    ("form", "texts", "scale", "review"),
    [
        ("levels", ENGLISH, "levels 1..3", ReviewForm.LEVEL),
        ("yes_no", YES_NO, "yes_no", ReviewForm.YES_NO),
        ("real", REAL, "real 0..1", ReviewForm.LEVEL),
        ("class", CLASSES, "class open|shut", ReviewForm.CLASS),
    ],
)
def test_levels_define_the_scale_and_the_review_form(
    form: str, texts: dict[str, Any], scale: str, review: ReviewForm
) -> None:
    criterion = spec(form=form, en=texts, ko=None, direction="none" if form == "class" else "higher")
    assert (str(criterion.scale), criterion.review_form) == (scale, review)


@pytest.mark.parametrize(
    ("more", "field", "code"),
    [
        ({"en": None, "ko": None}, "", "criterion_no_language"),
        ({"en": levels({"value": 1, "text": "a"}, {"value": 2, "text": "b"})}, "", "criterion_languages_differ"),
        ({"name": "Tone of voice"}, "name", "criterion_invalid"),
        ({"form": "yes_no"}, "", "criterion_yes_no"),
        ({"form": "class", "direction": "none"}, "", "criterion_level_kind"),
        ({"form": "class", "en": CLASSES, "ko": None}, "", "criterion_class_direction"),
        ({"direction": "none"}, "", "criterion_no_direction"),
        ({"needs": ["contexts"]}, "", "criterion_needs_unseen"),
        ({"sees": ["clarification_ok"], "needs": ["clarification_ok"]}, "", "criterion_needs_mark"),
        ({"sees": ["the_whole_database"]}, "sees.0", "criterion_invalid"),
        ({"offline": "faithfulness"}, "", "criterion_offline_needs"),
        ({**CLASS_ALONE, "offline": "relevancy"}, "", "criterion_offline_class"),
        ({**CLASS_ALONE, "en": REPEATED_CLASS}, "", "criterion_classes_repeat"),
        (
            {"en": levels({"value": 1, "text": "a"}, {"value": 3, "text": "b"}), "ko": None},
            "",
            "criterion_levels_order",
        ),
        (
            {"en": levels({"value": 2, "text": "a"}, {"value": 1, "text": "b"}), "ko": None},
            "",
            "criterion_levels_order",
        ),
        ({"en": levels({"value": 1, "text": "a"}, {"value": 1.5, "text": "b"})}, "", "criterion_languages_differ"),
        (
            {"en": levels({"value": 1, "text": "a"}, {"value": 1.5, "text": "b"}), "ko": None},
            "",
            "criterion_whole_levels",
        ),
        ({"en": levels({"value": 1, "text": "a"}), "ko": None}, "en.levels", "criterion_invalid"),
        ({"en": levels({"value": 1, "text": "a\nb"}, A_LEVEL), "ko": None}, "en.levels.0.text", "criterion_one_line"),
        ({"en": levels({"label": "a|b", "text": "a"}, A_LEVEL), "ko": None}, "en.levels.0.label", "criterion_invalid"),
        ({"en": levels({"text": "a"}, A_LEVEL), "ko": None}, "en.levels.0", "criterion_level_key"),
        ({"title_en": "Tone\u202eenoT"}, "title_en", "criterion_unseen"),
        ({"en": {**ENGLISH, "instruction": "Be\u200b fair"}}, "en.instruction", "criterion_unseen"),
        ({"en": {**ENGLISH, "question": "  "}}, "en", "criterion_no_question"),
        ({"prompt": "{system}"}, "prompt", "criterion_invalid"),
    ],
)
def test_invalid_criterion_is_refused_with_field_and_reason(more: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(InvalidFile) as error:
        read_criterion(fields(**more))
    assert (field, code) in {(problem.field, problem.code) for problem in error.value.problems}
    assert all(explain(problem) for problem in error.value.problems)


def test_range_values_stay_real_and_level_values_become_integers() -> None:
    levels = [{"value": 0.0, "text": "None"}, {"value": 1.0, "text": "All"}]
    texts = {"question": "How much?", "levels": levels}
    as_range, as_levels = (spec(form=form, en=texts, ko=None).metric("en").levels for form in ("real", "levels"))
    assert [type(level.value) for level in as_range] == [float, float]
    assert [type(level.value) for level in as_levels] == [int, int]


@pytest.mark.parametrize(
    ("field", "most", "more"),
    [
        ("en.instruction", 4000, lambda text: {"en": {**ENGLISH, "instruction": text}}),
        ("en.question", 300, lambda text: {"en": {**ENGLISH, "question": text}}),
        ("title_en", 80, lambda text: {"title_en": text}),
        ("title_ko", 80, lambda text: {"title_ko": text}),
        ("name", 64, lambda text: {"name": text}),
    ],
)
def test_every_text_has_a_length_limit(field: str, most: int, more: Callable[[str], dict[str, Any]]) -> None:
    assert read_criterion(fields(**more("x" * most)))
    with pytest.raises(InvalidFile) as error:
        read_criterion(fields(**more("x" * (most + 1))))
    assert [problem.field for problem in error.value.problems] == [field]


def test_slots_follow_the_fixed_order_without_repeats() -> None:
    criterion = spec(sees=["persona", "contexts", "persona"], needs=["contexts"])
    assert criterion.sees == (PromptSlot.CONTEXTS, PromptSlot.PERSONA)


def test_results_stay_comparable_until_scale_direction_or_anchors_change() -> None:
    criterion = spec()
    assert spec(en={**ENGLISH, "instruction": "Other guidance"}).comparability_hash == criterion.comparability_hash
    assert (
        spec(sees=["contexts"], categories=["x"], title_en="Manner").comparability_hash == criterion.comparability_hash
    )
    assert spec(direction="lower").comparability_hash != criterion.comparability_hash
    assert spec(ko=None).comparability_hash != criterion.comparability_hash
    changed_levels = [{"value": 1, "text": "Very rude"}, *ENGLISH["levels"][1:]]
    assert spec(en={**ENGLISH, "levels": changed_levels}).comparability_hash != criterion.comparability_hash
