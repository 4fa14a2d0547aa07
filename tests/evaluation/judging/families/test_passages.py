from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.samples import Finding, Status
from evaluation.judging.calls import JudgeReply
from evaluation.judging.formulas import context_average_precision, context_precision
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.families.scripted import make_case, make_reply
from tests.evaluation.judging.samples import answer, question, run_dialog


def relevance_reply(relevant: set[int], numbers: range) -> JudgeReply:
    words = {True: "relevant", False: "irrelevant"}
    return make_reply(**{f"context_{n}": {"reason": "r", "verdict": words[n in relevant]} for n in numbers})


def test_worked_example_of_the_source_follows_its_formulas() -> None:
    """Sixteen passages, the second and the seventh relevant; the source's own table prints NaN and 0 for them."""
    case = make_case("passages", answer_spec=answer("Cornish heath", [f"passage {n}" for n in range(16)]))
    requests, results = run_dialog(case, relevance_reply({2, 7}, range(1, 17)))
    # 2 / 16 = 12.5%; (1/2 + 2/7) / 2 = 0.392857
    assert results["context_precision"].value == 12.5
    assert results["context_average_precision"].value == pytest.approx(39.285714)
    assert len(requests) == 1  # one call for both figures
    assert [f.verdict for f in results["context_precision"].findings].count("relevant") == 2
    assert results["context_precision"].findings[6].context == 6


def test_empty_retrieval_scores_0_without_a_call() -> None:
    requests, results = run_dialog(make_case("passages", answer_spec=answer("x", [])))
    assert requests == []
    assert {result.value for result in results.values()} == {0.0}


def test_long_rankings_are_rated_in_batches_of_20() -> None:
    case = make_case("passages", answer_spec=answer("x", ["p"] * 21))
    requests, results = run_dialog(case, relevance_reply({1}, range(1, 21)), relevance_reply(set(), range(21, 22)))
    assert [len(request.blocks["contexts"]) for request in requests] == [20, 1]
    assert results["context_precision"].value == pytest.approx(100 / 21)
    assert results["context_average_precision"].value == 100.0


def test_missing_passage_fails_both_metrics() -> None:
    _, results = run_dialog(
        make_case("passages", answer_spec=answer("x", ["p", "q"])), relevance_reply({1}, range(1, 2))
    )
    assert {(r.status, r.reason) for r in results.values()} == {(Status.FAILED, "parse")}
    _, results = run_dialog(make_case("passages", answer_spec=answer("x", ["p"])), JudgeReply(Outcome.REFUSED))
    assert {r.reason for r in results.values()} == {"refused"}


def test_reference_is_shown_if_present() -> None:
    without_reference = question(references=(), keywords=())
    requests, _ = run_dialog(
        make_case("passages", without_reference, answer("x", ["p"])), relevance_reply({1}, range(1, 2))
    )
    assert list(requests[0].blocks) == ["question", "contexts"]
    requests, _ = run_dialog(make_case("passages", question(), answer("x", ["p"])), relevance_reply({1}, range(1, 2)))
    assert list(requests[0].blocks) == ["question", "reference", "contexts"]


@given(st.lists(st.booleans(), max_size=12))
def test_average_precision_is_100_only_for_a_perfect_ranking(relevant: list[bool]) -> None:
    parts = [Finding("context", "p", "relevant" if yes else "irrelevant") for yes in relevant]
    average_precision, precision = context_average_precision(parts).value, context_precision(parts).value
    assert average_precision is not None
    assert precision is not None
    assert 0 <= average_precision <= 100 + 1e-9
    assert (average_precision > 100 - 1e-9) == (any(relevant) and relevant == sorted(relevant, reverse=True))
    assert precision == pytest.approx(100 * sum(relevant) / len(relevant) if relevant else 0)
