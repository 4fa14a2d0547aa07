"""promptfoo assertions and TREC columns have the meaning that their tools give them."""

import pytest

from evaluation.formats.promptfoo import read_assertion
from evaluation.formats.reading import read_answers, read_questions
from tests.evaluation.formats.support import expect_problems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Note: bring a form", ("equals", "Note: bring a form")),
        ("12:30", ("equals", "12:30")),
        ("file: the third one", ("equals", "file: the third one")),
        ("grade A", ("equals", "grade A")),
        ("similar(0.7): by post", ("similar", "by post")),
        ("not-contains: no", ("not-contains", "no")),
        ("fn: output.length > 3", ("fn", "output.length > 3")),
        ("is-json", ("is-json", "")),
        ("llm-rubric: is polite: yes", ("llm-rubric", "is polite: yes")),
        ("file://check.py", ("file", "file://check.py")),
    ],
)
def test_table_assertion_has_its_promptfoo_type(text: str, expected: tuple[str, str]) -> None:
    assert read_assertion(text) == expected


TABLE = r"""question,__expected,__expected2,__expected3,__metadata:difficulty,__metadata:tags[]
When?,Note: on Friday,"contains-any: Fri, Friday",g-eval: is short,hard,"a\, b,c"
Who?,python: len(output) > 3,"icontains-all: Kim, lead",similar: Ms Kim leads,,
"""


def test_table_with_numbered_assertions_and_metadata_is_read() -> None:
    file = read_questions(TABLE.encode(), "a.csv")
    first, second = file.questions
    assert (first.references, first.keywords) == (("Note: on Friday",), (("Fri", "Friday"),))
    assert (first.difficulty, first.tags) == ("hard", ("a, b", "c"))
    assert (second.references, second.keywords) == (("Ms Kim leads",), (("Kim",), ("lead",)))
    assert file.metadata[second.id] == {"__expected": "python: len(output) > 3"}
    (remark,) = [candidate for candidate in file.remarks if candidate.code == "assertions_not_taken"]
    assert remark.params == {"types": "g-eval (1), python (1)"}
    assert dict(file.columns)["__metadata:tags[]"] == "tags"


def test_assertions_decided_by_models_or_programs_are_no_references() -> None:
    text = (
        "- vars: {question: a?}\n  assert:\n  - {type: factuality, value: 'yes: it is'}\n"
        "  - {type: contains-any, value: [x, y]}\n  - {type: javascript, value: output}\n"
        "  - {type: new-one, value: z}\n"
    )
    file = read_questions(text.encode(), "a.yaml")
    assert (file.questions[0].references, file.questions[0].keywords) == (("yes: it is",), (("x", "y"),))
    assert [r.params for r in file.remarks if r.code == "assertions_not_taken"] == [
        {"types": "javascript (1), new-one (1)"}
    ]


@pytest.mark.parametrize("second", ["Q0", "q0", "0", "1", "ITER", "-"])
def test_second_column_of_runs_and_judgements_is_ignored(second: str) -> None:
    (row,) = read_answers(f"t1 {second} d2 1 0.5 x\nt1 {second} d1 2 0.7 x\n".encode(), "run.txt").answers
    assert row.answer.retrieved_ids == ("d1", "d2")
    (question,) = read_questions(b"t1\ta?\n", "t.tsv", qrels=f"t1 {second} d1 1\n".encode()).questions
    assert question.ground_truth_chunk_ids == ("d1",)


@pytest.mark.parametrize("score", ["nan", "inf", "-Infinity", "1e999"])
def test_scores_and_grades_must_be_finite(score: str) -> None:
    (problem,) = expect_problems(read_answers, f"t1 Q0 d1 1 {score} x\nt1 Q0 d2 2 1 x\n", "run.txt")
    assert (problem.code, problem.line, problem.params) == ("not_number", 1, {"value": score})
    (problem,) = expect_problems(read_questions, b"t1\ta?\n", "t.tsv", qrels=f"t1 0 d1 {score}\n".encode())
    assert (problem.code, problem.line) == ("not_number", 1)


def test_judgements_of_unknown_topics_are_counted() -> None:
    file = read_questions(b"t1\ta?\n", "t.tsv", qrels=b"t1 0 d1 1\nt8 0 d1 1\nt8 0 d2 0\nt9 0 d1 0\n")
    (remark,) = [candidate for candidate in file.remarks if candidate.code == "qrels_of_unknown"]
    assert remark.params == {"judgements": 3, "topics": 2, "ids": "t8, t9"}
    (problem,) = expect_problems(read_questions, b"t1\ta?\n", "t.tsv", qrels=b"t7 0 d1 1\n")
    assert problem.code == "qrels_unmatched"
