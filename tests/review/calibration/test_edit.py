"""Plain fields of the workbench: texts are parsed back into the rubric, and everything else is kept."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.roles import Role
from evaluation.criteria.rubrics import draft
from evaluation.judging.draft_checks import check_draft
from evaluation.judging.rubric import Rubric, shipped_rubric, shipped_rubrics
from evaluation.models import RubricVersion
from review.calibration.forms import WordingForm, anchors
from tests.factories import make_user
from tests.pages.markup import compact
from tests.review.calibration.labelled import FAMILY
from tests.review.calibration.place import CalibrationSetup

TEXTS = ("instruction", "question", "text")
WORDS = st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=40)


def submitted(form: WordingForm, **changes: str) -> dict[str, str]:
    """What a browser sends for the form, with these fields changed."""
    values = {name: str(form[name].value() or "").replace("\n", "\r\n") for name in form.fields}
    return values | changes


def without_texts(content: Any) -> Any:
    """Content of a rubric without the texts that the form shows."""
    if isinstance(content, dict):
        return {key: without_texts(value) for key, value in content.items() if key not in TEXTS}
    return [without_texts(part) for part in content] if isinstance(content, list | tuple) else content


@pytest.mark.parametrize("rubric", shipped_rubrics(), ids=lambda rubric: f"{rubric.family}-{rubric.language}")
def test_unchanged_fields_change_nothing(rubric: Rubric) -> None:
    form = WordingForm(rubric, submitted(WordingForm(rubric), note="why"))
    assert not form.is_valid()
    assert form.non_field_errors() == ["Nothing was changed."]


@given(st.data())
def test_only_the_changed_text_differs(data: Any) -> None:
    rubric = data.draw(st.sampled_from(shipped_rubrics()))
    empty_form = WordingForm(rubric)
    name = data.draw(st.sampled_from(sorted(set(empty_form.fields) - {"note"})))
    text = data.draw(WORDS.filter(lambda text: text != empty_form[name].value()))
    form = WordingForm(rubric, submitted(empty_form, **{name: f" {text} "}))
    assert form.is_valid(), form.errors
    edited = form.rubric()
    check_draft(edited)
    assert without_texts(edited.model_dump()) == without_texts(rubric.model_dump())
    if name != "instruction":
        assert edited.instruction == rubric.instruction
    assert WordingForm(edited)[name].value() == text
    assert [step.instruction for step in edited.steps] == [step.instruction for step in rubric.steps]
    differing = [
        (before, after)
        for metric, edited_metric in zip(rubric.metrics, edited.metrics, strict=True)
        for before, after in zip(
            [metric.question, *(row for _, row in anchors(metric))],
            [edited_metric.question, *(row for _, row in anchors(edited_metric))],
            strict=True,
        )
        if before != after
    ]
    assert len(differing) == (name != "instruction")


def test_score_maps_are_dropped_with_the_texts_they_were_fitted_to() -> None:
    rubric = shipped_rubric(FAMILY, "en")
    metrics = (rubric.metrics[0].model_copy(update={"score_map": ((1, 2), (5, 5))}), *rubric.metrics[1:])
    mapped = rubric.model_copy(update={"metrics": metrics, "mapped_from": rubric.content_hash})
    form = WordingForm(mapped, submitted(WordingForm(mapped), instruction="Read closely."))
    assert form.is_valid()
    assert form.rubric() == rubric.model_copy(update={"instruction": "Read closely."})


@pytest.mark.django_db
def test_refused_fields_keep_their_input_and_name_the_fault(place: CalibrationSetup) -> None:
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, place.run.project))
    active = place.statuses.active
    url = reverse("calibration-draft", args=[place.gold.pk])
    params = {"judge": place.judge.pk, "family": FAMILY, "rubric": active.pk}
    fields = submitted(WordingForm(active.rubric), instruction="Read closely.", note="why")
    for changes, fault in (
        ({"anchor-0-0": ""}, "This field is required."),
        ({"anchor-0-0": "x" * 121}, "at most 120 characters"),
        ({"question-0": "\u202ehidden"}, "U+202E"),
        ({"instruction": "x" * 50_000}, "40000"),
    ):
        reply = client.post(url, params | fields | changes)
        page = compact(reply.content.decode())
        assert (reply.status_code, fault in page) == (400, True), changes
        assert "why" in page
        assert all(text in page for text in changes.values() if text)
    assert not RubricVersion.objects.filter(project=place.run.project).exists()
    client.post(url, params | fields)
    version = RubricVersion.objects.get(project=place.run.project)
    assert (version.rubric.instruction, version.note) == ("Read closely.", "why")
    assert draft(place.run.project, version.rubric, by=None) == version
