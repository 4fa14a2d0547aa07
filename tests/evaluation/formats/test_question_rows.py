"""Question sets: shapes, aliases, derived ids and the rules that refuse a set."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.core.samples import CheckPhrases, Nugget
from evaluation.formats.question_rows import ID, QUESTION_TEXT, REFERENCE, QuestionFile, derive_id
from evaluation.formats.reading import read_questions
from tests.evaluation.formats.support import facts, jsonl, refused, xlsx


def read(*rows: dict[str, Any], **options: Any) -> QuestionFile:
    return read_questions(json.dumps(rows).encode(), "a.json", **options)


def problems_of(*rows: Any) -> list[tuple[str, int | None, str]]:
    return facts(refused(read_questions, jsonl(*rows), "a.jsonl"))


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
def test_every_shape_gives_the_same_question(shape: Any) -> None:
    (question,) = read_questions(json.dumps(shape).encode(), "a.json").questions
    assert question.model_dump(exclude_defaults=True) == {
        "id": derive_id("c", "x?"),
        "category": "c",
        "text": "x?",
        "difficulty": "easy",
    }


def test_what_a_file_says_about_the_set_and_its_categories_is_kept_apart() -> None:
    text = (
        "version: 2\nname: n\ncategories:\n  empty: {questions: }\n  c: {about: simple, questions: [{question: x}]}\n"
    )
    read_file = read_questions(text.encode(), "a.yaml")
    assert read_file.set_metadata == {"version": 2, "name": "n", "categories": {"c": {"about": "simple"}}}


def test_every_category_that_is_no_list_is_told() -> None:
    text = "a: {questions: 5}\nb: {questions: [{question: x}]}\nc:\n  questions: x\n"
    told = facts(refused(read_questions, text, "a.yaml"))
    assert told == [("not_list", 1, "a"), ("not_list", 4, "c")]


@pytest.mark.parametrize("text", ["a: 1", "5", "text", "{}"])
def test_a_file_in_no_known_shape_says_so(text: str) -> None:
    assert [p.code for p in refused(read_questions, text, "a.yaml")] == ["shape_questions"]


def test_a_file_without_rows_says_so() -> None:
    assert [p.code for p in refused(read_questions, "[]", "a.json")] == ["no_rows"]
    assert [p.code for p in refused(read_questions, "# only a remark", "a.yaml")] == ["no_rows"]
    assert [p.code for p in refused(read_questions, "id,question\n,\n", "a.csv")] == ["no_rows"]


@pytest.mark.parametrize("name", ID)
def test_every_alias_of_the_id_is_read(name: str) -> None:
    assert read(row(**{name: "q1"})).questions[0].id == "q1"


@pytest.mark.parametrize("name", QUESTION_TEXT)
def test_every_alias_of_the_question_is_read(name: str) -> None:
    assert read({"category": "c", name: "why?"}).questions[0].text == "why?"


@pytest.mark.parametrize("name", [*REFERENCE, "answer"])
def test_every_alias_of_the_reference_takes_a_text_or_a_list(name: str) -> None:
    assert read(row(**{name: "r"})).questions[0].references == ("r",)
    assert read(row(**{name: ["r", "", "s "]})).questions[0].references == ("r", "s")


def test_two_names_of_one_field_are_refused_unless_they_agree() -> None:
    assert read(row(reference="r", ground_truth="r")).questions[0].references == ("r",)
    assert problems_of(row(reference="r", ground_truth="s")) == [("alias_twice", 1, "ground_truth")]


def test_a_file_of_answers_is_recognised_once_with_its_rows_counted() -> None:
    answers = [row(answer="a", contexts=[]), row(answer="b", confidence=1), row(answer="c")]
    problems = refused(read_questions, jsonl(*answers), "a.jsonl")
    assert (problems[0].code, problems[0].line) == ("looks_like_answers", 1)
    assert problems[0].params == {"rows": 2, "names": "contexts"}


def test_answer_is_the_reference_only_where_nothing_else_could_be() -> None:
    assert read(row(answer="a", reference=None)).questions[0].references == ("a",)
    assert problems_of(row(answer="a", response="b"))[0][0] == "looks_like_answers"


def test_ids_are_derived_from_category_and_question_whatever_the_order() -> None:
    both = [row(question="a"), row(question="b", category="d")]
    there = {q.text: q.id for q in read(*both).questions}
    back = {q.text: q.id for q in read(*reversed(both)).questions}
    assert there == back == {"a": derive_id("c", "a"), "b": derive_id("d", "b")}
    assert len(set(there.values())) == 2


def test_equal_texts_need_different_ids_or_categories() -> None:
    assert len(read(row(id="1"), row(id="2"), row(category="d"), row()).questions) == 4
    assert problems_of(row(), row()) == [("duplicate_question", 2, "question")]
    (problem,) = refused(read_questions, jsonl(row(id="1"), row(id="1", question="y")), "a.jsonl")
    assert (problem.code, problem.line, problem.params) == ("duplicate_id", 2, {"id": "1", "first_line": 1})


def test_equal_ids_are_noticed_in_a_file_of_one_line() -> None:
    text = json.dumps([row(id="1"), row(id="1")])
    assert [p.code for p in refused(read_questions, text, "a.json")] == ["duplicate_id"]


def test_every_further_field_is_read() -> None:
    (question,) = read(
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


def test_lists_in_tables_are_json_or_bars_and_everything_else_is_the_same() -> None:
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
    read_file = read_questions(b"category,question,expected_answer\nc,x,P(A|B)\n", "a.csv")
    assert read_file.questions[0].references == ("P(A", "B)")
    assert [(r.code, r.params) for r in read_file.remarks][-1] == ("references_split", {"rows": 1})


def test_a_cell_that_begins_like_json_must_be_json() -> None:
    text = 'category,question,expected_keywords\nc,x,"[""a"", b]"\n'
    (problem,) = refused(read_questions, text, "a.csv")
    assert (problem.code, problem.line, problem.field) == ("cell_json", 2, "expected_keywords")
    fine = read_questions("category,question,expected_answer\nc,x,[주의] 확인\n".encode(), "a.csv")
    assert fine.questions[0].references == ("[주의] 확인",)


def test_negative_questions_need_a_check_and_a_premise_needs_its_phrases() -> None:
    assert problems_of(row(category="Negative")) == [("check_missing", 1, "check")]
    for missing in ({}, {"check_phrases": {"any_of": []}}):
        found = read(row(category="negative", check="should_correct_premise", **missing))
        assert found.questions[0].check_phrases is None
        assert ("check_phrases_missing", {"rows": 1}) in [(one.code, dict(one.params)) for one in found.remarks]
    good = row(category="negative", check="should_correct_premise", check_phrases=["미래에셋"])
    assert read(good).questions[0].check_phrases == CheckPhrases(any_of=("미래에셋",))


def test_a_check_that_only_a_profile_can_know_is_remarked_with_the_near_one() -> None:
    read_file = read(row(category="negative", check="should_not_halucinate"))
    assert [(r.code, r.params) for r in read_file.remarks if r.code == "check_not_built_in"] == [
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
def test_a_wrong_value_is_one_problem_with_its_place(field: str, value: Any, expected: tuple[str, int, str]) -> None:
    assert problems_of(row(**{field: value})) == [expected]


def test_a_value_that_is_no_truth_is_repeated_in_its_problem() -> None:
    nuggets = [{"name": "n", "vital": "so"}]
    (problem,) = refused(read_questions, jsonl(row(nuggets=nuggets)), "a.jsonl")
    assert problem.params == {"value": "so"}


def test_paths_of_hops_are_kept_as_metadata_and_remarked() -> None:
    read_file = read(row(hops=["MANAGES → TRACKS"]))
    assert read_file.questions[0].hops is None
    assert read_file.metadata[read_file.questions[0].id] == {"hops": ["MANAGES → TRACKS"]}
    assert "hops_kept" in [remark.code for remark in read_file.remarks]


def test_a_row_in_a_section_may_repeat_its_category_but_not_contradict_it() -> None:
    section = {"c": [{"question": "x", "category": "c", "question_type": "kind"}]}
    read_file = read_questions(json.dumps(section).encode(), "a.json")
    assert read_file.metadata_keys == ("question_type",)
    section["c"][0]["category"] = "d"
    assert [p.code for p in refused(read_questions, json.dumps(section), "a.json")] == ["category_conflict"]


def test_group_by_takes_the_named_field_and_leaves_it_where_it_was() -> None:
    read_file = read(row(id="1", source="doc 1", group="g"), row(id="2", source=7), row(id="3"), group_by="source")
    assert [q.group for q in read_file.questions] == ["doc 1", "7", ""]
    assert read_file.metadata["1"] == {"source": "doc 1", "group": "g"}
    assert next((r.code, r.params) for r in read_file.remarks) == ("group_missing", {"name": "source", "rows": 1})


def test_group_by_may_name_a_second_id_or_the_category() -> None:
    by_query = read(row(id="1", query_id="t1"), row(id="2", query_id="t1"), group_by="query_id")
    assert [(q.id, q.group) for q in by_query.questions] == [("1", "t1"), ("2", "t1")]
    assert [q.group for q in read(row(category="d"), group_by="category").questions] == ["d"]


def test_group_by_a_field_that_no_row_has_is_refused() -> None:
    (problem,) = refused(read_questions, jsonl(row()), "a.jsonl", group_by="sorce")
    assert (problem.code, problem.line, problem.field) == ("group_field_unknown", None, "sorce")
    assert problem.params == {"name": "sorce"}


def test_the_rest_is_metadata_with_spellings_kept() -> None:
    text = "- question: x\n  category: c\n  year: 2024\n  code: 010\n  ok: yes\n  metadata: {year: 1, note: n}\n"
    read_file = read_questions(text.encode(), "a.yaml")
    kept = {"year": 2024, "code": "010", "ok": "yes", "metadata.year": 1, "note": "n"}
    assert read_file.metadata[read_file.questions[0].id] == kept
    assert read_file.metadata_keys == tuple(sorted(kept))


def test_fields_of_an_answer_file_are_remarked_when_they_stay_metadata() -> None:
    read_file = read(row(response="r", reference="x"))
    assert [r.params for r in read_file.remarks if r.code == "system_fields_kept"] == [{"names": "response"}]
