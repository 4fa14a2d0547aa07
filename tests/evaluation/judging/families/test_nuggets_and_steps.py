"""Nuggets, next steps, and the relevance that waits for embeddings."""

from __future__ import annotations

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import Nugget, Status
from tests.evaluation.judging.families.scripted import before, said
from tests.evaluation.judging.samples import answer, question, talked

NUGGETS = (
    Nugget(name="three years"),
    Nugget(name="may be split", alternatives=("can be divided",)),
    Nugget(name="fee", vital=False),
    Nugget(name="form 7", vital=False),
)
TEXT = "Leave is three years. You can divide it in two."


def assigned(*words: str, quotes: tuple[str, ...] = ("", "", "", "")) -> object:
    return said(
        **{
            f"nugget_{n}": {"reason": "r", "verdict": word, "quote": quote}
            for n, (word, quote) in enumerate(zip(words, quotes, strict=False), start=1)
        }
    )


def test_full_support_counts_and_the_other_figures_stand_beside_it() -> None:
    case = before("nuggets", question(nuggets=NUGGETS), answer(TEXT))
    reply = assigned("supported", "partial", "supported", "unsupported", quotes=("three years", "divide it", "", ""))
    asks, results = talked(case, reply)  # type: ignore[arg-type]
    result = results["nugget_support"]
    # 2 of 4; with the partial one half 2.5 of 4; of the two vital ones 1 of 2, with the partial one 1.5 of 2
    assert result.value == 0.5
    assert (result.detail["with_partial"], result.detail["vital_strict"], result.detail["vital_with_partial"]) == (
        0.625,
        0.5,
        0.75,
    )
    assert result.detail["vital"] == 2
    assert [TEXT[f.start : f.end] for f in result.findings[:2]] == ["three years", "divide it"]
    assert asks[0].blocks["nuggets"]["nugget_2"] == ["may be split", "can be divided"]


def test_the_profiles_nuggets_stand_in_where_the_question_brings_none() -> None:
    case = before("nuggets", given=answer(TEXT), settings=RuleSettings(nuggets=NUGGETS[:1]))
    _, results = talked(case, assigned("supported"))  # type: ignore[arg-type]
    assert results["nugget_support"].value == 1.0


def test_next_steps_are_reported_and_marked_as_a_judges() -> None:
    reply = said(suggested_queries=["Where?", ""], action_items=["Call"], urgency="high")
    _, results = talked(before("proposals"), reply)
    result = results["next_steps_by_judge"]
    assert (result.label, result.value) == ("high", None)
    assert result.detail == {"suggested_queries": ["Where?"], "action_items": ["Call"], "by": "judge"}
    assert [(f.text, f.verdict) for f in result.findings] == [("Where?", "suggestion"), ("Call", "action")]


def test_relevance_by_questions_is_not_applicable_without_embeddings_and_nobody_is_asked() -> None:
    asks, results = talked(before("asked_back"))
    assert asks == []
    assert (results["answer_relevance"].status, results["answer_relevance"].reason) == (
        Status.NOT_APPLICABLE,
        "no_embeddings",
    )
