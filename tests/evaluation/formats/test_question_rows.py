"""Question sets: shapes, aliases, derived ids and the rules that refuse a set."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.core.samples import CheckPhrases, Nugget
from evaluation.formats.question_rows import ID, QUESTION_TEXT, REFERENCE, QuestionFile, derive_id
from evaluation.formats.reading import read_questions
from tests.evaluation.formats.support import expect_problems, facts, jsonl, xlsx


def read_rows(*rows: dict[str, Any], **options: Any) -> QuestionFile:
    return read_questions(json.dumps(rows).encode(), "a.json", **options)


def expect_row_problems(*rows: Any) -> list[tuple[str, int | None, str]]:
    return facts(expect_problems(read_questions, jsonl(*rows), "a.jsonl"))


def row(**fields: Any) -> dict[str, Any]:
    return {"category": "c", "question": "x?", **fields}


@pytest.mark.parametrize(
    "shape",
    [
        {"categories": {"c": {"difficulty": "easy", "questions": [{"question": "x?"}]}}},
        {"categories": {"c": [{"question": "x?", "difficulty": "easy"}]}},
        {"c": [{"question": "x?", "difficulty": "easy"}]},
        {"c": {"questions": [{"question": "x?"}], "difficulty": "easy"}},
        {"questions": [{"category": "c", "question": "x?", "difficulty": "easy"}]},
        [{"category": "c", "question": "x?", "difficulty": "easy"}],
        [{"question_type": "c", "Question": "x?", "difficulty": "easy"}],
    ],
)
def test_every_shape_yields_equal_questions(shape: Any) -> None:
    (question,) = read_questions(json.dumps(shape).encode(), "a.json").questions
    assert question.model_dump(exclude_defaults=True) == {
        "id": derive_id("c", "x?"),
        "category": "c",
        "text": "x?",
        "difficulty": "easy",
    }


def test_metadata_of_set_and_categories_is_stored_separately() -> None:
    text = (
        "version: 2\nname: n\ncategories:\n  empty: {questions: }\n  c: {about: simple, questions: [{question: x}]}\n"
    )
    file = read_questions(text.encode(), "a.yaml")
    assert file.set_metadata == {"version": 2, "name": "n", "categories": {"c": {"about": "simple"}}}


def test_category_without_a_list_is_reported() -> None:
    text = "a: {questions: 5}\nb: {questions: [{question: x}]}\nc:\n  questions: x\n"
    problems = facts(expect_problems(read_questions, text, "a.yaml"))
    assert problems == [("not_list", 1, "a"), ("not_list", 4, "c")]


@pytest.mark.parametrize("text", ["a: 1", "5", "text", "{}"])
def test_unknown_shape_is_refused(text: str) -> None:
    assert [p.code for p in expect_problems(read_questions, text, "a.yaml")] == ["shape_questions"]


def test_file_without_rows_is_refused() -> None:
    assert [p.code for p in expect_problems(read_questions, "[]", "a.json")] == ["no_rows"]
    assert [p.code for p in expect_problems(read_questions, "# only a remark", "a.yaml")] == ["no_rows"]
    assert [p.code for p in expect_problems(read_questions, "id,question\n,\n", "a.csv")] == ["no_rows"]


@pytest.mark.parametrize("name", ID)
def test_every_id_alias_is_read(name: str) -> None:
    assert read_rows(row(**{name: "q1"})).questions[0].id == "q1"


@pytest.mark.parametrize("name", QUESTION_TEXT)
def test_every_question_alias_is_read(name: str) -> None:
    assert read_rows({"category": "c", name: "why?"}).questions[0].text == "why?"


@pytest.mark.parametrize("name", [*REFERENCE, "answer"])
def test_every_reference_alias_accepts_text_or_a_list(name: str) -> None:
    assert read_rows(row(**{name: "r"})).questions[0].references == ("r",)
    assert read_rows(row(**{name: ["r", "", "s "]})).questions[0].references == ("r", "s")


def test_two_aliases_of_a_field_are_refused_unless_equal() -> None:
    assert read_rows(row(reference="r", ground_truth="r")).questions[0].references == ("r",)
    assert expect_row_problems(row(reference="r", ground_truth="s")) == [("alias_twice", 1, "ground_truth")]


def test_answer_file_is_recognised_once_with_a_row_count() -> None:
    answers = [row(answer="a", contexts=[]), row(answer="b", confidence=1), row(answer="c")]
    problems = expect_problems(read_questions, jsonl(*answers), "a.jsonl")
    assert (problems[0].code, problems[0].line) == ("looks_like_answers", 1)
    assert problems[0].params == {"rows": 2, "names": "contexts"}


def test_answer_is_the_reference_only_without_answer_fields() -> None:
    assert read_rows(row(answer="a", reference=None)).questions[0].references == ("a",)
    assert expect_row_problems(row(answer="a", response="b"))[0][0] == "looks_like_answers"


def test_ids_are_derived_from_category_and_question_in_any_order() -> None:
    rows = [row(question="a"), row(question="b", category="d")]
    ids = {q.text: q.id for q in read_rows(*rows).questions}
    reversed_ids = {q.text: q.id for q in read_rows(*reversed(rows)).questions}
    assert ids == reversed_ids == {"a": derive_id("c", "a"), "b": derive_id("d", "b")}
    assert len(set(ids.values())) == 2


def test_equal_questions_need_different_ids_or_categories() -> None:
    assert len(read_rows(row(id="1"), row(id="2"), row(category="d"), row()).questions) == 4
    assert expect_row_problems(row(), row()) == [("duplicate_question", 2, "question")]
    (problem,) = expect_problems(read_questions, jsonl(row(id="1"), row(id="1", question="y")), "a.jsonl")
    assert (problem.code, problem.line, problem.params) == ("duplicate_id", 2, {"id": "1", "first_line": 1})


def test_duplicate_ids_are_detected_in_a_one_line_file() -> None:
    text = json.dumps([row(id="1"), row(id="1")])
    assert [p.code for p in expect_problems(read_questions, text, "a.json")] == ["duplicate_id"]


def test_every_optional_field_is_read() -> None:
    (question,) = read_rows(
        row(
            expected_keywords=["one", ["two", "둘"], 3],
            check="should_correct_premise",
            check_phrases={"all_of": ["a"], "none_of": "b"},
            hops=2,
            aggregation_type="count",
            inference_type="causal",
            required_info=["i"],
            nuggets=["n", {"name": "m", "alternatives": ["k"], "importance": "okay"}, {"name": "o", "vital": False}],
            reference_context_ids=["k1", "k2"],
            persona="professor",
            history=["earlier", {"role": "user", "content": "hello"}],
            clarification_ok=True,
            group="doc-1",
            tags=["t"],
        )
    ).questions
    assert question.model_dump(exclude={"id", "category", "text", "difficulty", "references"}) == {
        "keywords": (("one",), ("two", "둘"), ("3",)),
        "check": "should_correct_premise",
        "check_phrases": CheckPhrases(all_of=("a",), none_of=("b",)).model_dump(),
        "hops": 2,
        "aggregation_type": "count",
        "inference_type": "causal",
        "required_info": ("i",),
        "nuggets": tuple(
            n.model_dump()
            for n in (
                Nugget(name="n"),
                Nugget(name="m", alternatives=("k",), vital=False),
                Nugget(name="o", vital=False),
            )
        ),
        "ground_truth_chunk_ids": ("k1", "k2"),
        "persona": "professor",
        "history": ("earlier", "user: hello"),
        "clarification_ok": True,
        "group": "doc-1",
        "tags": ("t",),
    }


def test_table_lists_are_json_or_bar_separated_as_in_workbooks() -> None:
    header = ["id", "category", "question", "expected_keywords", "expected_answer", "hops", "clarification_ok", "tags"]
    cells = ["q", "c", "x", '[["S&P500", "에스앤피500"], "y|z"]', "a\n| table |", "2", "yes", "one | two|"]
    buffer = "\n".join([",".join(header), ",".join(f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in cells)])
    from_csv = read_questions(buffer.encode(), "a.csv")
    from_xlsx = read_questions(xlsx(header, [*cells[:5], 2, True, cells[7]]), "a.xlsx")
    assert from_csv.questions == from_xlsx.questions
    question = from_csv.questions[0]
    assert question.keywords == (("S&P500", "에스앤피500"), ("y|z",))
    assert question.references == ("a\n| table |",)
    assert (question.hops, question.clarification_ok, question.tags) == (2, True, ("one", "two"))


def test_several_references_in_a_cell_are_remarked() -> None:
    file = read_questions(b"category,question,expected_answer\nc,x,P(A|B)\n", "a.csv")
    assert file.questions[0].references == ("P(A", "B)")
    assert [(r.code, r.params) for r in file.remarks][-1] == ("references_split", {"rows": 1})


def test_cell_that_begins_like_json_must_be_json() -> None:
    text = 'category,question,expected_keywords\nc,x,"[""a"", b]"\n'
    (problem,) = expect_problems(read_questions, text, "a.csv")
    assert (problem.code, problem.line, problem.field) == ("cell_json", 2, "expected_keywords")
    file = read_questions("category,question,expected_answer\nc,x,[주의] 확인\n".encode(), "a.csv")
    assert file.questions[0].references == ("[주의] 확인",)


def test_negative_questions_need_a_check_and_premises_need_phrases() -> None:
    assert expect_row_problems(row(category="Negative")) == [("check_missing", 1, "check")]
    for missing in ({}, {"check_phrases": {"any_of": []}}):
        file = read_rows(row(category="negative", check="should_correct_premise", **missing))
        assert file.questions[0].check_phrases is None
        assert ("check_phrases_missing", {"rows": 1}) in [(remark.code, dict(remark.params)) for remark in file.remarks]
    complete_row = row(category="negative", check="should_correct_premise", check_phrases=["미래에셋"])
    assert read_rows(complete_row).questions[0].check_phrases == CheckPhrases(any_of=("미래에셋",))


def test_check_unknown_to_the_built_ins_is_remarked_with_a_suggestion() -> None:
    file = read_rows(row(category="negative", check="should_not_halucinate"))
    assert [(r.code, r.params) for r in file.remarks if r.code == "check_not_built_in"] == [
        ("check_not_built_in", {"checks": "should_not_halucinate (should_not_hallucinate?)"})
    ]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("expected_keywords", ["", "a"], ("empty_item", 1, "expected_keywords[0]")),
        ("expected_keywords", [[]], ("empty_item", 1, "expected_keywords[0]")),
        ("expected_keywords", {"a": 1}, ("not_list", 1, "expected_keywords")),
        ("expected_keywords", [{"a": 1}], ("not_text", 1, "expected_keywords[0]")),
        ("expected_keywords", [True], ("quote_value", 1, "expected_keywords[0]")),
        ("expected_answer", False, ("quote_value", 1, "expected_answer")),
        ("expected_answer", [["a"]], ("not_text", 1, "expected_answer[0]")),
        ("question", " ", ("missing", 1, "question")),
        ("id", "x" * 201, ("too_long", 1, "id")),
        ("category", ["c"], ("not_text", 1, "category")),
        ("hops", -1, ("out_of_range", 1, "hops")),
        ("hops", 1.5, ("not_integer", 1, "hops")),
        ("clarification_ok", "maybe", ("not_boolean", 1, "clarification_ok")),
        ("check_phrases", {"some_of": ["a"]}, ("unknown_key", 1, "check_phrases")),
        ("nuggets", [{"name": "n", "weight": 2}], ("unknown_key", 1, "nuggets[0]")),
        ("nuggets", [{"alternatives": ["n"]}], ("empty_item", 1, "nuggets[0]")),
        ("nuggets", [{"name": "n", "importance": "high"}], ("unknown_choice", 1, "nuggets[0]")),
        ("nuggets", [{"name": "n", "vital": "so"}], ("not_boolean", 1, "nuggets[0].vital")),
        ("history", [{"role": "user"}], ("empty_item", 1, "history[0]")),
        ("tags", [True], ("quote_value", 1, "tags[0]")),
    ],
)
def test_invalid_value_is_one_problem_with_its_place(field: str, value: Any, expected: tuple[str, int, str]) -> None:
    assert expect_row_problems(row(**{field: value})) == [expected]


def test_invalid_boolean_is_quoted_in_its_problem() -> None:
    nuggets = [{"name": "n", "vital": "so"}]
    (problem,) = expect_problems(read_questions, jsonl(row(nuggets=nuggets)), "a.jsonl")
    assert problem.params == {"value": "so"}


def test_hop_paths_are_kept_as_metadata_and_remarked() -> None:
    file = read_rows(row(hops=["MANAGES → TRACKS"]))
    assert file.questions[0].hops is None
    assert file.metadata[file.questions[0].id] == {"hops": ["MANAGES → TRACKS"]}
    assert "hops_kept" in [remark.code for remark in file.remarks]


def test_section_row_may_repeat_but_not_contradict_its_category() -> None:
    section = {"c": [{"question": "x", "category": "c", "question_type": "kind"}]}
    file = read_questions(json.dumps(section).encode(), "a.json")
    assert file.metadata_keys == ("question_type",)
    section["c"][0]["category"] = "d"
    assert [p.code for p in expect_problems(read_questions, json.dumps(section), "a.json")] == ["category_conflict"]


def test_group_by_uses_a_field_and_keeps_it_as_metadata() -> None:
    file = read_rows(row(id="1", source="doc 1", group="g"), row(id="2", source=7), row(id="3"), group_by="source")
    assert [q.group for q in file.questions] == ["doc 1", "7", ""]
    assert file.metadata["1"] == {"source": "doc 1", "group": "g"}
    assert next((r.code, r.params) for r in file.remarks) == ("group_missing", {"name": "source", "rows": 1})


def test_group_by_accepts_a_second_id_or_the_category() -> None:
    by_query = read_rows(row(id="1", query_id="t1"), row(id="2", query_id="t1"), group_by="query_id")
    assert [(q.id, q.group) for q in by_query.questions] == [("1", "t1"), ("2", "t1")]
    assert [q.group for q in read_rows(row(category="d"), group_by="category").questions] == ["d"]


def test_group_by_an_unknown_field_is_refused() -> None:
    (problem,) = expect_problems(read_questions, jsonl(row()), "a.jsonl", group_by="sorce")
    assert (problem.code, problem.line, problem.field) == ("group_field_unknown", None, "sorce")
    assert problem.params == {"name": "sorce"}


def test_other_fields_become_metadata_with_their_spelling() -> None:
    text = "- question: x\n  category: c\n  year: 2024\n  code: 010\n  ok: yes\n  metadata: {year: 1, note: n}\n"
    file = read_questions(text.encode(), "a.yaml")
    metadata = {"year": 2024, "code": "010", "ok": "yes", "metadata.year": 1, "note": "n"}
    assert file.metadata[file.questions[0].id] == metadata
    assert file.metadata_keys == tuple(sorted(metadata))


def test_answer_fields_stored_as_metadata_are_remarked() -> None:
    file = read_rows(row(response="r", reference="x"))
    assert [r.params for r in file.remarks if r.code == "system_fields_kept"] == [{"names": "response"}]
