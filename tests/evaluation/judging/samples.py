"""Questions, answers and calls that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec, Result
from evaluation.judging.baseline import judge_offline
from evaluation.judging.calls import JudgeCall, JudgeCase, JudgeDialog, JudgeReply, JudgeRequest, ParsedReply
from evaluation.judging.catalogue import family_named
from evaluation.judging.formulas import read_scores, scores_request
from evaluation.judging.prompt import data_blocks, declared_inputs, judge_call, parse_reply
from evaluation.judging.rubric import Rubric, shipped_rubric
from evaluation.network.outcomes import Outcome

KO = shipped_rubric("answer_quality", "ko")
EN = shipped_rubric("answer_quality", "en")
ALL = ("correctness", "faithfulness", "completeness")


def question(text: str = "How long is leave?", **fields: Any) -> QuestionSpec:
    defaults: dict[str, Any] = {"id": "q1", "category": "single_hop", "references": ("Three years.",)}
    return QuestionSpec(**{**defaults, **fields, "text": text})


def answer(
    text: str = "Three years.", contexts: Sequence[str] | None = ("Leave is three years at most.",)
) -> AnswerSpec:
    passages = None if contexts is None else tuple(ContextSpec(context) for context in contexts)
    return AnswerSpec(text=text, contexts=passages)


def case(
    asked: QuestionSpec | None = None,
    given: AnswerSpec | None = None,
    metrics: Sequence[str] = ALL,
    rubric: Rubric = EN,
    settings: RuleSettings | None = None,
) -> JudgeCase:
    """The named metrics of the rubric's family before a judge."""
    family = family_named(rubric.family)
    specs = tuple(spec for spec in family.produced_metrics if spec.name in metrics)
    return JudgeCase(rubric, asked or question(), given or answer(), specs, settings or RuleSettings())


def scoring(
    asked: QuestionSpec | None = None,
    given: AnswerSpec | None = None,
    metrics: Sequence[str] = ALL,
    rubric: Rubric = EN,
) -> JudgeRequest:
    """The request of a plain family for the scores of the named metrics."""
    one = case(asked, given, metrics, rubric)
    return scores_request(rubric, metrics, data_blocks(one.question, one.answer, declared_inputs(one)))


def call(
    asked: QuestionSpec | None = None,
    given: AnswerSpec | None = None,
    metrics: Sequence[str] = ALL,
    rubric: Rubric = EN,
    **parameters: Any,
) -> JudgeCall:
    settings = {"temperature": 0, **parameters}
    ask = scoring(asked, given, metrics, rubric)
    return judge_call(rubric, asked or question(), given or answer(), ask, model="judge-1", parameters=settings)


def delivered(raw: str) -> JudgeReply:
    return JudgeReply(Outcome.OK, raw=raw)


def heard(reply: JudgeReply, metrics: Sequence[str] = ALL) -> ParsedReply:
    """What a reply to the plain family holds."""
    return parse_reply(reply, scoring(metrics=metrics))


def read_reply(reply: JudgeReply, rubric: Rubric = EN, metrics: Sequence[str] = ALL) -> dict[str, Result]:
    """The results that a reply to the plain family gives."""
    one = case(metrics=metrics, rubric=rubric)
    return read_scores(one, parse_reply(reply, scoring(metrics=metrics, rubric=rubric)))


def talked(one: JudgeCase, *replies: JudgeReply) -> tuple[list[JudgeRequest], dict[str, Result]]:
    """What a family asks about a case when it hears these replies in turn, and its results at the end."""
    talk, asks, left = JudgeDialog(family_named(one.rubric.family).judge(one)), [], list(replies)
    while talk.request is not None:
        asks.append(talk.request)
        talk.advance(parse_reply(left.pop(0), talk.request))
    assert not left
    return asks, talk.results


def by_baseline(one: JudgeCase) -> dict[str, Result]:
    """The results of a case before the offline baseline."""
    talk = JudgeDialog(family_named(one.rubric.family).judge(one))
    while talk.request is not None:
        made = judge_call(one.rubric, one.question, one.answer, talk.request, model="baseline", parameters={})
        talk.advance(parse_reply(judge_offline(made), talk.request))
    return talk.results
