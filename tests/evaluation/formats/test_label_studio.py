"""Label Studio both ways: the interface and tasks, and annotations with every problem named by task and field."""

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


def task(*results: dict[str, Any], by: Any = 7, question: str = "q1", **fields: Any) -> dict[str, Any]:
    annotation = {"completed_by": by, "result": list(results), "created_at": "2026-03-01T10:00:00Z"}
    return {"id": 1, "data": {"question_id": question, "sample": 0}, "annotations": [annotation]} | fields


def read(*tasks: Any, annotators: dict[str, str] | None = None) -> RatingFile:
    return read_label_studio(json.dumps(list(tasks)).encode(), "x.json", scales=SCALES, annotators=annotators or {})


def problems(*tasks: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidFile) as raised:
        read(*tasks)
    assert all(explain(one) for one in raised.value.problems)
    return [(one.code, one.field) for one in raised.value.problems]


def test_choices_ratings_and_numbers_become_values_of_their_scale() -> None:
    rating = {"from_name": "correctness", "type": "rating", "value": {"rating": 4}}
    number = {"from_name": "overlap", "type": "number", "value": {"number": 0.25}}
    rows = read(task(rating, choice("refused", "1"), choice("tone", "warm"), number, comment("why"))).ratings
    assert [(row.metric, row.value, row.label) for row in rows] == [
        ("correctness", 4.0, None),
        ("refused", 1.0, None),
        ("tone", None, "warm"),
        ("overlap", 0.25, None),
    ]
    assert {row.reason for row in rows} == {"why"}
    assert {row.origin.blind for row in rows} == {True}
    assert rows[0].origin.created is not None


def test_annotators_are_mapped_by_id_or_address_and_keep_their_address_else() -> None:
    people = {"7": "kim", "lee@example.org": "lee"}
    tasks = [
        task(choice("correctness", "3"), by=by, question=f"q{n}")
        for n, by in enumerate([7, {"id": 9, "email": "lee@example.org"}, {"id": 3, "email": "p@x.org"}, 12])
    ]
    assert [row.origin.author for row in read(*tasks, annotators=people).ratings] == [
        "kim", "lee", "p@x.org", "annotator 12",
    ]  # fmt: skip


def test_cannot_judge_needs_no_value_and_keeps_its_comment() -> None:
    (row,) = read(task(choice("correctness", "cannot_judge"), comment("no source", "correctness_comment"))).ratings
    assert (row.value, row.failure, row.reason) == (None, "cannot_judge: no source", "no source")


def test_annotators_who_saw_predictions_are_not_blind() -> None:
    (row,) = read(task(choice("correctness", "3"), predictions=[{"result": []}])).ratings
    assert row.origin.blind is False


def test_skipped_annotations_are_left_out_and_counted() -> None:
    skipped = task(choice("correctness", "3"))
    skipped["annotations"].append({"completed_by": 8, "was_cancelled": True, "result": []})
    file = read(skipped)
    assert len(file.ratings) == 1
    assert [(one.code, one.params["rows"]) for one in file.remarks] == [("annotations_cancelled", 1)]


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (task(choice("correctness", "9")), ("off_scale", "[0].annotations[0].result[0].value.choices")),
        (task(choice("unheard", "1")), ("control_unknown", "[0].annotations[0].result[0].from_name")),
        (task(WARM, choice("tone", "cold")), ("control_twice", "[0].annotations[0].result[1].from_name")),
        (task(WARM | {"type": "labels"}), ("result_unreadable", "[0].annotations[0].result[0].value")),
        (task(WARM, by=None), ("annotator_missing", "[0].annotations[0].completed_by")),
        (task(WARM, question=""), ("task_without_question", "[0].data.question_id")),
        (task(WARM) | {"annotations": 3}, ("not_list", "[0].annotations")),
        (task(WARM) | {"annotations": []}, ("no_annotations", "")),
        (task(WARM) | {"data": {"question_id": "q", "sample": "x"}}, ("not_integer", "[0].data.sample")),
        (7, ("task_without_question", "[0].data.question_id")),
    ],
)  # fmt: skip
def test_bad_input_is_named_by_task_and_field(broken: Any, expected: tuple[str, str]) -> None:
    assert problems(broken) == [expected]


def test_what_stands_in_place_of_the_results_is_named() -> None:
    annotated = task()
    annotated["annotations"][0]["result"] = 5
    with pytest.raises(InvalidFile) as raised:
        read(annotated)
    (problem,) = raised.value.problems
    assert (problem.code, problem.field) == ("not_list", "[0].annotations[0].result")
    assert problem.params == {"found": "integer"}


def test_all_problems_of_all_tasks_are_listed_with_their_lines() -> None:
    text = json.dumps([task(choice("tone", "hot")), task(choice("tone", "icy"), question="q2")], indent=1)
    with pytest.raises(InvalidFile) as raised:
        read_label_studio(text.encode(), "x.json", scales=SCALES, annotators={})
    (problem,) = raised.value.problems
    assert problem.field[:3] == "[0]"
    assert [line > (problem.line or 0) for line in problem.more_lines] == [True]


def test_one_person_annotating_a_task_twice_is_refused() -> None:
    twice = task(choice("correctness", "3"))
    twice["annotations"] *= 2
    assert problems(twice)[0][0] == "duplicate_rating"


def test_no_list_of_tasks_is_no_export() -> None:
    with pytest.raises(InvalidFile) as raised:
        read_label_studio(b'{"data": 1}', "x.json", scales=SCALES, annotators={})
    assert raised.value.problems[0].code == "no_tasks"


def test_the_interface_asks_for_each_metric_on_its_scale() -> None:
    controls = [
        Control("correctness", "How right?", SCALES["correctness"], {5: 'All of it, "really" <b>'}),
        Control("overlap", "Overlap", SCALES["overlap"], {}),
        Control("tone", "Tone", SCALES["tone"], {}),
    ]
    view = ET.fromstring(labelling_config(controls))
    assert [one.get("value") for one in view.findall("Header")] == ["$question", "How right?", "Overlap", "Tone"]
    first, tone = view.findall("Choices")
    assert [one.get("alias") for one in first] == ["1", "2", "3", "4", "5", "cannot_judge"]
    assert first[4].get("value") == '5 · All of it, "really" <b>'
    assert [one.get("alias") for one in tone] == ["warm", "cold", "cannot_judge"]
    number = view.find("Number")
    assert number is not None
    assert (number.get("min"), number.get("max")) == ("0", "1")
    texts = {one.get("name") for one in view.findall("Text")}
    asked = {one.get("toName") for kind in ("Choices", "Number", "TextArea") for one in view.findall(kind)}
    assert asked == {"answer"} <= texts  # every control is about a text that is there


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
def test_whatever_json_is_read_or_refused_with_problems(value: Any) -> None:
    try:
        file = read_label_studio(json.dumps(value).encode(), "x.json", scales=SCALES, annotators={})
    except InvalidFile as refused:
        said = [explain(one) for one in refused.problems]
    else:
        said = [row.metric for row in file.ratings]
    assert said
    assert all(said)


VALUES = {
    "correctness": st.integers(1, 5).map(str),
    "refused": st.sampled_from(["0", "1"]),
    "tone": st.sampled_from(["warm", "cold"]),
}


@given(st.lists(st.fixed_dictionaries(VALUES), min_size=1, max_size=6), st.text(max_size=20))
def test_what_was_chosen_is_what_is_read(chosen: list[dict[str, str]], why: str) -> None:
    said = why.replace("\x00", "").encode("utf-8", "ignore").decode()
    tasks = [
        task(*(choice(name, value) for name, value in one.items()), comment(said), question=f"q{n}")
        for n, one in enumerate(chosen)
    ]
    rows = read(*tasks).ratings
    found = [(row.question_id, row.metric, row.label or f"{row.value:g}") for row in rows]
    assert found == [(f"q{n}", name, value) for n, one in enumerate(chosen) for name, value in one.items()]
