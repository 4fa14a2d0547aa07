from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.samples import Finding, Status
from evaluation.judging.calls import JudgeReply
from evaluation.judging.formulas import context_average_precision, context_precision
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.families.scripted import before, said
from tests.evaluation.judging.samples import answer, question, talked


def rated(relevant: set[int], numbers: range) -> JudgeReply:
    words = {True: "relevant", False: "irrelevant"}
    return said(**{f"context_{n}": {"reason": "r", "verdict": words[n in relevant]} for n in numbers})


def test_the_worked_example_of_the_source_gives_what_its_formulas_really_give() -> None:
    """Sixteen passages, the second and the seventh relevant; the source's own table prints NaN and 0 for them."""
    case = before("passages", given=answer("Cornish heath", [f"passage {n}" for n in range(16)]))
    asks, results = talked(case, rated({2, 7}, range(1, 17)))
    # 2 / 16 = 12.5%; (1/2 + 2/7) / 2 = 0.392857
    assert results["context_precision"].value == 12.5
    assert results["context_average_precision"].value == pytest.approx(39.285714)
    assert len(asks) == 1  # one call for both figures
    assert [f.verdict for f in results["context_precision"].findings].count("relevant") == 2
    assert results["context_precision"].findings[6].context == 6


def test_nothing_retrieved_is_0_without_a_question_asked() -> None:
    asks, results = talked(before("passages", given=answer("x", [])))
    assert asks == []
    assert {result.value for result in results.values()} == {0.0}


def test_long_rankings_are_rated_in_batches_of_20() -> None:
    case = before("passages", given=answer("x", ["p"] * 21))
    asks, results = talked(case, rated({1}, range(1, 21)), rated(set(), range(21, 22)))
    assert [len(ask.blocks["contexts"]) for ask in asks] == [20, 1]
    assert results["context_precision"].value == pytest.approx(100 / 21)
    assert results["context_average_precision"].value == 100.0


def test_a_passage_left_out_fails_both_figures() -> None:
    _, results = talked(before("passages", given=answer("x", ["p", "q"])), rated({1}, range(1, 2)))
    assert {(r.status, r.reason) for r in results.values()} == {(Status.FAILED, "parse")}
    _, results = talked(before("passages", given=answer("x", ["p"])), JudgeReply(Outcome.REFUSED))
    assert {r.reason for r in results.values()} == {"refused"}


def test_the_reference_is_shown_where_there_is_one() -> None:
    asked = question(references=(), keywords=())
    asks, _ = talked(before("passages", asked, answer("x", ["p"])), rated({1}, range(1, 2)))
    assert list(asks[0].blocks) == ["question", "contexts"]
    asks, _ = talked(before("passages", question(), answer("x", ["p"])), rated({1}, range(1, 2)))
    assert list(asks[0].blocks) == ["question", "reference", "contexts"]


@given(st.lists(st.booleans(), max_size=12))
def test_average_precision_is_between_0_and_100_and_100_only_for_a_perfect_ranking(relevant: list[bool]) -> None:
    parts = [Finding("context", "p", "relevant" if yes else "irrelevant") for yes in relevant]
    ranked, plain = context_average_precision(parts).value, context_precision(parts).value
    assert ranked is not None
    assert plain is not None
    assert 0 <= ranked <= 100 + 1e-9
    assert (ranked > 100 - 1e-9) == (any(relevant) and relevant == sorted(relevant, reverse=True))
    assert plain == pytest.approx(100 * sum(relevant) / len(relevant) if relevant else 0)
