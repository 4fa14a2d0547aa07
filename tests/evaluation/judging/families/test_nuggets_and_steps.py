"""Nuggets, next steps, and answer relevance without embeddings."""

from __future__ import annotations

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import Nugget, Status
from tests.evaluation.judging.families.scripted import make_case, make_reply
from tests.evaluation.judging.samples import answer, question, run_dialog

NUGGETS = (
    Nugget(name="three years"),
    Nugget(name="may be split", alternatives=("can be divided",)),
    Nugget(name="fee", vital=False),
    Nugget(name="form 7", vital=False),
)
TEXT = "Leave is three years. You can divide it in two."


def assignments(*words: str, quotes: tuple[str, ...] = ("", "", "", "")) -> object:
    return make_reply(
        **{
            f"nugget_{n}": {"reason": "r", "verdict": word, "quote": quote}
            for n, (word, quote) in enumerate(zip(words, quotes, strict=False), start=1)
        }
    )


def test_nugget_support_counts_full_support_and_details_the_variants() -> None:
    case = make_case("nuggets", question(nuggets=NUGGETS), answer(TEXT))
    reply = assignments("supported", "partial", "supported", "unsupported", quotes=("three years", "divide it", "", ""))
    requests, results = run_dialog(case, reply)  # type: ignore[arg-type]
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
    assert requests[0].blocks["nuggets"]["nugget_2"] == ["may be split", "can be divided"]


def test_nuggets_of_the_profile_are_used_if_the_question_has_none() -> None:
    case = make_case("nuggets", answer_spec=answer(TEXT), settings=RuleSettings(nuggets=NUGGETS[:1]))
    _, results = run_dialog(case, assignments("supported"))  # type: ignore[arg-type]
    assert results["nugget_support"].value == 1.0


def test_next_steps_are_reported_as_coming_from_the_judge() -> None:
    reply = make_reply(suggested_queries=["Where?", ""], action_items=["Call"], urgency="high")
    _, results = run_dialog(make_case("proposals"), reply)
    result = results["next_steps_by_judge"]
    assert (result.label, result.value) == ("high", None)
    assert result.detail == {"suggested_queries": ["Where?"], "action_items": ["Call"], "by": "judge"}
    assert [(f.text, f.verdict) for f in result.findings] == [("Where?", "suggestion"), ("Call", "action")]


def test_relevance_is_not_applicable_without_embeddings_and_makes_no_call() -> None:
    requests, results = run_dialog(make_case("asked_back"))
    assert requests == []
    assert (results["answer_relevance"].status, results["answer_relevance"].reason) == (
        Status.NOT_APPLICABLE,
        "no_embeddings",
    )
