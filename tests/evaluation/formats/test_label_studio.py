"""Label Studio export and import: interface, tasks and annotations, with problems named by task and field."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import InvalidFile
from evaluation.core.scales import Scale
from evaluation.formats.label_studio import Control, labelling_config
from evaluation.formats.rating_rows import RatingFile
from evaluation.formats.reading import read_label_studio
from evaluation.messages.explanations import explain

SCALES = {
    "correctness": Scale.parse("1..5"),
    "refused": Scale.parse("bool"),
    "tone": Scale.parse("class:warm|cold"),
    "overlap": Scale.parse("0..1:real"),
}


def choice(name: str, value: str) -> dict[str, Any]:
    return {"from_name": name, "to_name": "answer", "type": "choices", "value": {"choices": [value]}}


WARM = choice("tone", "warm")


def comment(text: str, name: str = "comment") -> dict[str, Any]:
    return {"from_name": name, "to_name": "answer", "type": "textarea", "value": {"text": [text]}}


def task(*results: dict[str, Any], annotator: Any = 7, question: str = "q1", **fields: Any) -> dict[str, Any]:
    annotation = {"completed_by": annotator, "result": list(results), "created_at": "2026-03-01T10:00:00Z"}
    return {"id": 1, "data": {"question_id": question, "sample": 0}, "annotations": [annotation]} | fields


def read_tasks(*tasks: Any, annotators: dict[str, str] | None = None) -> RatingFile:
    return read_label_studio(json.dumps(list(tasks)).encode(), "x.json", scales=SCALES, annotators=annotators or {})


def expect_task_problems(*tasks: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidFile) as error:
        read_tasks(*tasks)
    assert all(explain(problem) for problem in error.value.problems)
    return [(problem.code, problem.field) for problem in error.value.problems]


def test_choices_ratings_and_numbers_become_scale_values() -> None:
    rating = {"from_name": "correctness", "type": "rating", "value": {"rating": 4}}
    number = {"from_name": "overlap", "type": "number", "value": {"number": 0.25}}
    rows = read_tasks(task(rating, choice("refused", "1"), choice("tone", "warm"), number, comment("why"))).ratings
    assert [(row.metric, row.value, row.label) for row in rows] == [
        ("correctness", 4.0, None),
        ("refused", 1.0, None),
        ("tone", None, "warm"),
        ("overlap", 0.25, None),
    ]
    assert {row.reason for row in rows} == {"why"}
    assert {row.origin.blind for row in rows} == {True}
    assert rows[0].origin.created is not None


def test_annotators_are_mapped_by_id_or_address_or_keep_their_address() -> None:
    people = {"7": "kim", "lee@example.org": "lee"}
    tasks = [
        task(choice("correctness", "3"), annotator=annotator, question=f"q{n}")
        for n, annotator in enumerate([7, {"id": 9, "email": "lee@example.org"}, {"id": 3, "email": "p@x.org"}, 12])
    ]
    assert [row.origin.author for row in read_tasks(*tasks, annotators=people).ratings] == [
        "kim", "lee", "p@x.org", "annotator 12",
    ]  # fmt: skip


def test_cannot_judge_has_no_value_and_keeps_its_comment() -> None:
    (row,) = read_tasks(
        task(choice("correctness", "cannot_judge"), comment("no source", "correctness_comment"))
    ).ratings
    assert (row.value, row.failure, row.reason) == (None, "cannot_judge: no source", "no source")


def test_annotators_with_visible_predictions_are_not_blind() -> None:
    (row,) = read_tasks(task(choice("correctness", "3"), predictions=[{"result": []}])).ratings
    assert row.origin.blind is False


def test_skipped_annotations_are_left_out_and_counted() -> None:
    skipped = task(choice("correctness", "3"))
    skipped["annotations"].append({"completed_by": 8, "was_cancelled": True, "result": []})
    file = read_tasks(skipped)
    assert len(file.ratings) == 1
    assert [(remark.code, remark.params["rows"]) for remark in file.remarks] == [("annotations_cancelled", 1)]


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (task(choice("correctness", "9")), ("off_scale", "[0].annotations[0].result[0].value.choices")),
        (task(choice("unheard", "1")), ("control_unknown", "[0].annotations[0].result[0].from_name")),
        (task(WARM, choice("tone", "cold")), ("control_twice", "[0].annotations[0].result[1].from_name")),
        (task(WARM | {"type": "labels"}), ("result_unreadable", "[0].annotations[0].result[0].value")),
        (task(WARM, annotator=None), ("annotator_missing", "[0].annotations[0].completed_by")),
        (task(WARM, question=""), ("task_without_question", "[0].data.question_id")),
        (task(WARM) | {"annotations": 3}, ("not_list", "[0].annotations")),
        (task(WARM) | {"annotations": []}, ("no_annotations", "")),
        (task(WARM) | {"data": {"question_id": "q", "sample": "x"}}, ("not_integer", "[0].data.sample")),
        (7, ("task_without_question", "[0].data.question_id")),
    ],
)  # fmt: skip
def test_invalid_input_is_named_by_task_and_field(broken: Any, expected: tuple[str, str]) -> None:
    assert expect_task_problems(broken) == [expected]


def test_invalid_results_field_is_named() -> None:
    annotated = task()
    annotated["annotations"][0]["result"] = 5
    with pytest.raises(InvalidFile) as error:
        read_tasks(annotated)
    (problem,) = error.value.problems
    assert (problem.code, problem.field) == ("not_list", "[0].annotations[0].result")
    assert problem.params == {"found": "integer"}


def test_problems_of_all_tasks_are_listed_with_their_lines() -> None:
    text = json.dumps([task(choice("tone", "hot")), task(choice("tone", "icy"), question="q2")], indent=1)
    with pytest.raises(InvalidFile) as error:
        read_label_studio(text.encode(), "x.json", scales=SCALES, annotators={})
    (problem,) = error.value.problems
    assert problem.field[:3] == "[0]"
    assert [line > (problem.line or 0) for line in problem.more_lines] == [True]


def test_second_annotation_of_a_task_by_one_person_is_refused() -> None:
    annotated = task(choice("correctness", "3"))
    annotated["annotations"] *= 2
    assert expect_task_problems(annotated)[0][0] == "duplicate_rating"


def test_document_without_a_task_list_is_refused() -> None:
    with pytest.raises(InvalidFile) as error:
        read_label_studio(b'{"data": 1}', "x.json", scales=SCALES, annotators={})
    assert error.value.problems[0].code == "no_tasks"


def test_interface_contains_a_control_per_metric_and_scale() -> None:
    controls = [
        Control("correctness", "How right?", SCALES["correctness"], {5: 'All of it, "really" <b>'}),
        Control("overlap", "Overlap", SCALES["overlap"], {}),
        Control("tone", "Tone", SCALES["tone"], {}),
    ]
    view = ET.fromstring(labelling_config(controls))
    assert [element.get("value") for element in view.findall("Header")] == [
        "$question",
        "How right?",
        "Overlap",
        "Tone",
    ]
    first, tone = view.findall("Choices")
    assert [element.get("alias") for element in first] == ["1", "2", "3", "4", "5", "cannot_judge"]
    assert first[4].get("value") == '5 · All of it, "really" <b>'
    assert [element.get("alias") for element in tone] == ["warm", "cold", "cannot_judge"]
    number = view.find("Number")
    assert number is not None
    assert (number.get("min"), number.get("max")) == ("0", "1")
    texts = {element.get("name") for element in view.findall("Text")}
    targets = {element.get("toName") for kind in ("Choices", "Number", "TextArea") for element in view.findall(kind)}
    assert targets == {"answer"} <= texts  # every control is about a text that is there


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["data", "annotations", "result", "value", "choices", "type", "from_name", "completed_by", "id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_read_or_refused_with_problems(value: Any) -> None:
    try:
        file = read_label_studio(json.dumps(value).encode(), "x.json", scales=SCALES, annotators={})
    except InvalidFile as error:
        texts = [explain(problem) for problem in error.problems]
    else:
        texts = [row.metric for row in file.ratings]
    assert texts
    assert all(texts)


VALUES = {
    "correctness": st.integers(1, 5).map(str),
    "refused": st.sampled_from(["0", "1"]),
    "tone": st.sampled_from(["warm", "cold"]),
}


@given(st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=6), st.text(max_size=20))
def test_chosen_values_are_read_back(annotations: list[dict[str, str]], comment_input: str) -> None:
    comment_text = comment_input.replace("\x00", "").encode("utf-8", "ignore").decode()
    tasks = [
        task(*(choice(name, value) for name, value in choices.items()), comment(comment_text), question=f"q{n}")
        for n, choices in enumerate(annotations)
    ]
    rows = read_tasks(*tasks).ratings
    values = [(row.question_id, row.metric, row.label or f"{row.value:g}") for row in rows]
    assert values == [
        (f"q{n}", name, value) for n, choices in enumerate(annotations) for name, value in choices.items()
    ]
