from __future__ import annotations

from evaluation.core.samples import Status
from evaluation.judging.calls import JudgeReply
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.families.scripted import make_case, make_reply, verdict
from tests.evaluation.judging.samples import answer, question, run_dialog

PASSAGES = ["Leave is three years.", "It may be split."]
CASE = make_case("statements", question(references=("Three years, splittable.",)), answer("x", PASSAGES))


def statements_reply(*statements: tuple[int, str]) -> JudgeReply:
    return make_reply(statements=[{"reference": number, "statement": text} for number, text in statements])


def test_context_recall_is_the_share_of_supported_statements() -> None:
    extracted = statements_reply((1, "Leave is three years."), (1, "Leave can be split."), (1, "Leave is unpaid."))
    verified = make_reply(
        statement_1=verdict("supported", 1, "three years"),
        statement_2=verdict("supported", 2, "may be split"),
        statement_3=verdict("unsupported"),
    )
    requests, results = run_dialog(CASE, extracted, verified)
    result = results["context_recall"]
    assert result.value is not None
    assert abs(result.value - 200 / 3) < 1e-9  # 2 of 3
    assert [(f.kind, f.context, f.verdict) for f in result.findings] == [
        ("statement", 0, "supported"),
        ("statement", 1, "supported"),
        ("statement", None, "unsupported"),
    ]
    assert "answer" not in requests[0].blocks  # the reference is broken up, not the answer


def test_best_supported_reference_counts() -> None:
    question_spec = question(references=("Three years, unpaid.", "Three years."))
    extracted = statements_reply((1, "Leave is three years."), (1, "Leave is unpaid."), (2, "Leave is three years."))
    verified = make_reply(
        statement_1=verdict("supported", 1),
        statement_2=verdict("unsupported"),
        statement_3=verdict("supported", 1),
    )
    _, results = run_dialog(make_case("statements", question_spec, answer("x", PASSAGES)), extracted, verified)
    result = results["context_recall"]
    assert (result.value, result.detail["reference"], len(result.findings)) == (100.0, 2, 1)


def test_expected_keywords_are_used_as_statements() -> None:
    question_spec = question(references=(), keywords=(("three years", "3 years"), ("split",)))
    verified = make_reply(statement_1=verdict("supported", 1), statement_2=verdict("unsupported"))
    requests, results = run_dialog(make_case("statements", question_spec, answer("x", PASSAGES)), verified)
    assert results["context_recall"].value == 50.0
    assert requests[0].blocks["statements"] == {"statement_1": "three years | 3 years", "statement_2": "split"}


def test_empty_retrieval_scores_0_without_a_call() -> None:
    requests, results = run_dialog(make_case("statements", answer_spec=answer("x", [])))
    assert (requests, results["context_recall"].value) == ([], 0.0)


def test_reference_without_statements_is_not_applicable() -> None:
    _, results = run_dialog(CASE, statements_reply())
    assert (results["context_recall"].status, results["context_recall"].reason) == (
        Status.NOT_APPLICABLE,
        "no_statements",
    )


def test_statement_of_a_missing_reference_is_a_parse_failure() -> None:
    _, results = run_dialog(CASE, statements_reply((2, "Leave is three years.")))
    assert results["context_recall"].reason == "parse"


def test_failed_call_fails_the_metric() -> None:
    _, results = run_dialog(CASE, statements_reply((1, "a")), JudgeReply(Outcome.TRUNCATED))
    assert results["context_recall"].reason == "truncated"
