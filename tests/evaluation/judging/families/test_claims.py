from __future__ import annotations

import pytest

from evaluation.core.samples import Status
from evaluation.judging.calls import JudgeReply
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.families.scripted import make_case, make_reply, verdict
from tests.evaluation.judging.samples import answer, run_dialog

TEXT = "Leave lasts three years. It can be taken twice, and costs 50 euros. Ask the office."
PASSAGES = ["Leave is three years at most.", "Leave may be taken twice. A fee of 20 euros is due."]
CASE = make_case("claims", answer_spec=answer(TEXT, PASSAGES))
EXTRACTED = make_reply(
    claims=[
        {"claim": "Leave lasts three years.", "quote": "Leave lasts three years"},
        {"claim": "Leave can be taken twice.", "quote": "It can be taken TWICE"},
        {"claim": "Leave costs 50 euros.", "quote": "taking leave costs 50 euros"},
        {"claim": "Leave is granted by the dean.", "quote": "the dean grants it"},
    ]
)
VERIFIED = make_reply(
    claim_1=verdict("partial", 1, "three years at most"),
    claim_2=verdict("supported", 2, "Leave may be taken twice."),
    claim_3=verdict("contradicted", 2, "fee of 20 euros"),
    claim_4=verdict("supported"),
)


def test_claim_support_is_the_share_of_fully_supported_claims() -> None:
    requests, results = run_dialog(CASE, EXTRACTED, VERIFIED)
    result = results["claim_support"]
    # 2 of 4 supported; with the partial one counted half 2.5 of 4
    assert (result.value, result.detail["with_partial"]) == (0.5, 0.625)
    assert {word: result.detail[word] for word in ("supported", "partial", "contradicted")} == {
        "supported": 2,
        "partial": 1,
        "contradicted": 1,
    }
    assert [request.step for request in requests] == ["extract", "verify"]


def test_each_claim_is_a_finding_with_spans_in_answer_and_passage() -> None:
    _, results = run_dialog(CASE, EXTRACTED, VERIFIED)
    partial, supported, contradicted, unlocated = results["claim_support"].findings
    assert (TEXT[partial.start : partial.end], partial.approximate) == ("Leave lasts three years", False)
    assert (TEXT[supported.start : supported.end], supported.approximate) == (
        "It can be taken twice",
        False,
    )  # case folded
    # "taking leave costs 50 euros" stands nowhere: of its words leave, costs, 50, euros (taking is another word)
    # the second sentence holds 50, euros and costs
    assert (TEXT[contradicted.start : contradicted.end], contradicted.approximate) == (
        "It can be taken twice, and costs 50 euros.",
        True,
    )
    assert (unlocated.start, unlocated.end, unlocated.context) == (None, None, None)
    assert (supported.context, supported.quote) == (1, "Leave may be taken twice.")
    assert PASSAGES[1][contradicted.quote_start : contradicted.quote_end] == "fee of 20 euros"
    assert PASSAGES[0][partial.quote_start : partial.quote_end] == "three years at most"


def test_extraction_hides_passages_and_verification_hides_the_answer() -> None:
    requests, _ = run_dialog(CASE, EXTRACTED, VERIFIED)
    assert list(requests[0].blocks) == ["question", "answer"]
    assert list(requests[1].blocks) == ["question", "claims", "contexts"]
    assert requests[1].blocks["contexts"][1] == {"number": 2, "text": PASSAGES[1]}


def test_answer_without_claims_is_not_applicable() -> None:
    requests, results = run_dialog(CASE, make_reply(claims=[]))
    assert (results["claim_support"].status, results["claim_support"].reason) == (Status.NOT_APPLICABLE, "no_claims")
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The handbook does not mention parental leave.", "admits_ignorance"),
        ("해당 내용은 문서에 나와 있지 않습니다.", "admits_ignorance"),
        ("Certainly, with pleasure.", "no_claims"),
    ],
)
def test_admission_of_ignorance_is_distinguished_from_no_claims(text: str, reason: str) -> None:
    _, results = run_dialog(make_case("claims", answer_spec=answer(text, PASSAGES)), make_reply(claims=[]))
    assert results["claim_support"].reason == reason


def test_claims_are_unsupported_without_a_call_if_nothing_was_retrieved() -> None:
    requests, results = run_dialog(make_case("claims", answer_spec=answer(TEXT, [])), EXTRACTED)
    assert results["claim_support"].value == 0.0
    assert {finding.verdict for finding in results["claim_support"].findings} == {"unsupported"}
    assert len(requests) == 1


def test_many_claims_are_checked_in_batches_of_25() -> None:
    extracted = make_reply(claims=[{"claim": f"Fact {n}.", "quote": ""} for n in range(1, 27)])
    first_batch = make_reply(**{f"claim_{n}": verdict("supported", 1) for n in range(1, 26)})
    requests, results = run_dialog(CASE, extracted, first_batch, make_reply(claim_26=verdict("unsupported")))
    assert len(requests) == 3
    assert results["claim_support"].value == pytest.approx(25 / 26)


@pytest.mark.parametrize(
    "reply",
    [
        make_reply(claim_1=verdict("supported"), claim_2=verdict("supported"), claim_3=verdict("supported")),
        make_reply(**{f"claim_{n}": verdict("maybe") for n in range(1, 5)}),
        make_reply(**{f"claim_{n}": verdict("supported", 3) for n in range(1, 5)}),  # there is no third passage
        make_reply(**{f"claim_{n}": verdict("supported", True) for n in range(1, 5)}),
        make_reply(**{f"claim_{n}": verdict("supported") for n in range(1, 6)}),  # nor a fifth claim
        make_reply(claims=[]),
    ],
)
def test_incomplete_verification_fails_the_metric(reply: JudgeReply) -> None:
    _, results = run_dialog(CASE, EXTRACTED, reply)
    assert (results["claim_support"].status, results["claim_support"].reason) == (Status.FAILED, "parse")


@pytest.mark.parametrize("at", [0, 1])
def test_failed_call_fails_the_metric_with_its_reason(at: int) -> None:
    replies = [*[EXTRACTED, VERIFIED][:at], JudgeReply(Outcome.TIMEOUT)]
    _, results = run_dialog(CASE, *replies)
    assert (results["claim_support"].status, results["claim_support"].reason) == (Status.FAILED, "timeout")


def test_equal_claims_get_consecutive_spans() -> None:
    text = "It is free. Ask. It is free. It is free."
    claim = {"claim": "It is free.", "quote": "It is free."}
    case = make_case("claims", answer_spec=answer(text, PASSAGES))
    _, results = run_dialog(
        case, make_reply(claims=[claim] * 4), make_reply(**{f"claim_{i}": verdict("supported") for i in range(1, 5)})
    )
    # the fourth has no place left behind the third, and takes the first again
    assert [part.start for part in results["claim_support"].findings] == [0, 17, 29, 0]
