from __future__ import annotations

from evaluation.core.samples import Status
from evaluation.judging.calls import JudgeReply
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.families.scripted import before, said, verdict
from tests.evaluation.judging.samples import answer, question, talked

PASSAGES = ["Leave is three years.", "It may be split."]
ONE = before("statements", question(references=("Three years, splittable.",)), answer("x", PASSAGES))


def stated(*statements: tuple[int, str]) -> JudgeReply:
    return said(statements=[{"reference": number, "statement": text} for number, text in statements])


def test_the_figure_is_the_share_of_the_statements_that_a_passage_holds() -> None:
    found = stated((1, "Leave is three years."), (1, "Leave can be split."), (1, "Leave is unpaid."))
    checked = said(
        statement_1=verdict("supported", 1, "three years"),
        statement_2=verdict("supported", 2, "may be split"),
        statement_3=verdict("unsupported"),
    )
    asks, results = talked(ONE, found, checked)
    result = results["context_recall"]
    assert result.value is not None
    assert abs(result.value - 200 / 3) < 1e-9  # 2 of 3
    assert [(f.kind, f.context, f.verdict) for f in result.findings] == [
        ("statement", 0, "supported"),
        ("statement", 1, "supported"),
        ("statement", None, "unsupported"),
    ]
    assert "answer" not in asks[0].blocks  # the reference is broken up, not the answer


def test_of_equally_good_references_the_one_that_is_held_best_counts() -> None:
    asked = question(references=("Three years, unpaid.", "Three years."))
    found = stated((1, "Leave is three years."), (1, "Leave is unpaid."), (2, "Leave is three years."))
    checked = said(
        statement_1=verdict("supported", 1),
        statement_2=verdict("unsupported"),
        statement_3=verdict("supported", 1),
    )
    _, results = talked(before("statements", asked, answer("x", PASSAGES)), found, checked)
    result = results["context_recall"]
    assert (result.value, result.detail["reference"], len(result.findings)) == (100.0, 2, 1)


def test_expected_keywords_are_statements_already() -> None:
    asked = question(references=(), keywords=(("three years", "3 years"), ("split",)))
    checked = said(statement_1=verdict("supported", 1), statement_2=verdict("unsupported"))
    asks, results = talked(before("statements", asked, answer("x", PASSAGES)), checked)
    assert results["context_recall"].value == 50.0
    assert asks[0].blocks["statements"] == {"statement_1": "three years | 3 years", "statement_2": "split"}


def test_nothing_retrieved_is_0_without_a_question_asked() -> None:
    asks, results = talked(before("statements", given=answer("x", [])))
    assert (asks, results["context_recall"].value) == ([], 0.0)


def test_a_reference_that_states_nothing_makes_the_figure_inapplicable() -> None:
    _, results = talked(ONE, stated())
    assert (results["context_recall"].status, results["context_recall"].reason) == (
        Status.NOT_APPLICABLE,
        "no_statements",
    )


def test_a_statement_of_a_reference_that_is_not_there_is_not_read() -> None:
    _, results = talked(ONE, stated((2, "Leave is three years.")))
    assert results["context_recall"].reason == "parse"


def test_a_call_that_fails_fails_the_figure() -> None:
    _, results = talked(ONE, stated((1, "a")), JudgeReply(Outcome.TRUNCATED))
    assert results["context_recall"].reason == "truncated"
