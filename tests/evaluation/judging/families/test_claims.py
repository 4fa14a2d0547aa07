from __future__ import annotations

import pytest

from evaluation.core.samples import Status
from evaluation.judging.calls import JudgeReply
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.families.scripted import before, said, verdict
from tests.evaluation.judging.samples import answer, talked

TEXT = "Leave lasts three years. It can be taken twice, and costs 50 euros. Ask the office."
PASSAGES = ["Leave is three years at most.", "Leave may be taken twice. A fee of 20 euros is due."]
CASE = before("claims", given=answer(TEXT, PASSAGES))
FOUND = said(
    claims=[
        {"claim": "Leave lasts three years.", "quote": "Leave lasts three years"},
        {"claim": "Leave can be taken twice.", "quote": "It can be taken TWICE"},
        {"claim": "Leave costs 50 euros.", "quote": "taking leave costs 50 euros"},
        {"claim": "Leave is granted by the dean.", "quote": "the dean grants it"},
    ]
)
CHECKED = said(
    claim_1=verdict("partial", 1, "three years at most"),
    claim_2=verdict("supported", 2, "Leave may be taken twice."),
    claim_3=verdict("contradicted", 2, "fee of 20 euros"),
    claim_4=verdict("supported"),
)


def test_the_figure_is_the_share_of_fully_supported_claims() -> None:
    asks, results = talked(CASE, FOUND, CHECKED)
    result = results["claim_support"]
    # 2 of 4 supported; with the partial one counted half 2.5 of 4
    assert (result.value, result.detail["with_partial"]) == (0.5, 0.625)
    assert {word: result.detail[word] for word in ("supported", "partial", "contradicted")} == {
        "supported": 2,
        "partial": 1,
        "contradicted": 1,
    }
    assert [ask.step for ask in asks] == ["extract", "verify"]


def test_every_claim_is_a_finding_with_its_places_in_answer_and_passage() -> None:
    _, results = talked(CASE, FOUND, CHECKED)
    first, second, third, fourth = results["claim_support"].findings
    assert (TEXT[first.start : first.end], first.approximate) == ("Leave lasts three years", False)
    assert (TEXT[second.start : second.end], second.approximate) == ("It can be taken twice", False)  # case folded
    # "taking leave costs 50 euros" stands nowhere: of its words leave, costs, 50, euros (taking is another word)
    # the second sentence holds 50, euros and costs
    assert (TEXT[third.start : third.end], third.approximate) == ("It can be taken twice, and costs 50 euros.", True)
    assert (fourth.start, fourth.end, fourth.context) == (None, None, None)
    assert (second.context, second.quote) == (1, "Leave may be taken twice.")
    assert PASSAGES[1][third.quote_start : third.quote_end] == "fee of 20 euros"
    assert PASSAGES[0][first.quote_start : first.quote_end] == "three years at most"


def test_the_passages_are_not_shown_while_claims_are_sought_nor_the_answer_while_they_are_checked() -> None:
    asks, _ = talked(CASE, FOUND, CHECKED)
    assert list(asks[0].blocks) == ["question", "answer"]
    assert list(asks[1].blocks) == ["question", "claims", "contexts"]
    assert asks[1].blocks["contexts"][1] == {"number": 2, "text": PASSAGES[1]}


def test_without_claims_there_is_nothing_to_support() -> None:
    asks, results = talked(CASE, said(claims=[]))
    assert (results["claim_support"].status, results["claim_support"].reason) == (Status.NOT_APPLICABLE, "no_claims")
    assert len(asks) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The handbook does not mention parental leave.", "admits_ignorance"),
        ("해당 내용은 문서에 나와 있지 않습니다.", "admits_ignorance"),
        ("Certainly, with pleasure.", "no_claims"),
    ],
)
def test_the_rule_tells_an_admission_from_an_answer_that_only_the_judge_found_empty(text: str, reason: str) -> None:
    _, results = talked(before("claims", given=answer(text, PASSAGES)), said(claims=[]))
    assert results["claim_support"].reason == reason


def test_where_nothing_was_retrieved_no_claim_is_supported_and_nobody_is_asked() -> None:
    asks, results = talked(before("claims", given=answer(TEXT, [])), FOUND)
    assert results["claim_support"].value == 0.0
    assert {finding.verdict for finding in results["claim_support"].findings} == {"unsupported"}
    assert len(asks) == 1


def test_many_claims_are_checked_in_batches_of_25() -> None:
    many = said(claims=[{"claim": f"Fact {n}.", "quote": ""} for n in range(1, 27)])
    first = said(**{f"claim_{n}": verdict("supported", 1) for n in range(1, 26)})
    asks, results = talked(CASE, many, first, said(claim_26=verdict("unsupported")))
    assert len(asks) == 3
    assert results["claim_support"].value == pytest.approx(25 / 26)


@pytest.mark.parametrize(
    "reply",
    [
        said(claim_1=verdict("supported"), claim_2=verdict("supported"), claim_3=verdict("supported")),
        said(**{f"claim_{n}": verdict("maybe") for n in range(1, 5)}),
        said(**{f"claim_{n}": verdict("supported", 3) for n in range(1, 5)}),  # there is no third passage
        said(**{f"claim_{n}": verdict("supported", True) for n in range(1, 5)}),
        said(**{f"claim_{n}": verdict("supported") for n in range(1, 6)}),  # nor a fifth claim
        said(claims=[]),
    ],
)
def test_a_check_that_is_not_whole_fails_the_figure(reply: JudgeReply) -> None:
    _, results = talked(CASE, FOUND, reply)
    assert (results["claim_support"].status, results["claim_support"].reason) == (Status.FAILED, "parse")


@pytest.mark.parametrize("at", [0, 1])
def test_a_call_that_fails_fails_the_figure_with_its_reason(at: int) -> None:
    replies = [*[FOUND, CHECKED][:at], JudgeReply(Outcome.TIMEOUT)]
    _, results = talked(CASE, *replies)
    assert (results["claim_support"].status, results["claim_support"].reason) == (Status.FAILED, "timeout")


def test_equal_claims_stand_one_after_the_other() -> None:
    text = "It is free. Ask. It is free. It is free."
    again = {"claim": "It is free.", "quote": "It is free."}
    case = before("claims", given=answer(text, PASSAGES))
    _, results = talked(
        case, said(claims=[again] * 4), said(**{f"claim_{i}": verdict("supported") for i in range(1, 5)})
    )
    # the fourth has no place left behind the third, and takes the first again
    assert [part.start for part in results["claim_support"].findings] == [0, 17, 29, 0]
