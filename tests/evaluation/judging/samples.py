"""Questions, answers and calls shared by the tests of judging."""

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
    question_spec: QuestionSpec | None = None,
    answer_spec: AnswerSpec | None = None,
    metrics: Sequence[str] = ALL,
    rubric: Rubric = EN,
    settings: RuleSettings | None = None,
) -> JudgeCase:
    """A case with the named metrics of the rubric's family."""
    family = family_named(rubric.family)
    specs = tuple(spec for spec in family.produced_metrics if spec.name in metrics)
    return JudgeCase(rubric, question_spec or question(), answer_spec or answer(), specs, settings or RuleSettings())


def make_scores_request(
    question_spec: QuestionSpec | None = None,
    answer_spec: AnswerSpec | None = None,
    metrics: Sequence[str] = ALL,
    rubric: Rubric = EN,
) -> JudgeRequest:
    """The request for scores of the named metrics."""
    judge_case = case(question_spec, answer_spec, metrics, rubric)
    return scores_request(
        rubric, metrics, data_blocks(judge_case.question, judge_case.answer, declared_inputs(judge_case))
    )


def call(
    question_spec: QuestionSpec | None = None,
    answer_spec: AnswerSpec | None = None,
    metrics: Sequence[str] = ALL,
    rubric: Rubric = EN,
    **parameters: Any,
) -> JudgeCall:
    settings = {"temperature": 0, **parameters}
    request = make_scores_request(question_spec, answer_spec, metrics, rubric)
    return judge_call(
        rubric, question_spec or question(), answer_spec or answer(), request, model="judge-1", parameters=settings
    )


def ok_reply(raw: str) -> JudgeReply:
    return JudgeReply(Outcome.OK, raw=raw)


def parse_scores_reply(reply: JudgeReply, metrics: Sequence[str] = ALL) -> ParsedReply:
    """Parse a reply to a scores request."""
    return parse_reply(reply, make_scores_request(metrics=metrics))


def read_reply(reply: JudgeReply, rubric: Rubric = EN, metrics: Sequence[str] = ALL) -> dict[str, Result]:
    """Results by metric from a reply to a scores request."""
    judge_case = case(metrics=metrics, rubric=rubric)
    return read_scores(judge_case, parse_reply(reply, make_scores_request(metrics=metrics, rubric=rubric)))


def run_dialog(judge_case: JudgeCase, *replies: JudgeReply) -> tuple[list[JudgeRequest], dict[str, Result]]:
    """Run a family on a case with scripted replies; return its requests and results."""
    dialog, requests, remaining_replies = (
        JudgeDialog(family_named(judge_case.rubric.family).judge(judge_case)),
        [],
        list(replies),
    )
    while dialog.request is not None:
        requests.append(dialog.request)
        dialog.advance(parse_reply(remaining_replies.pop(0), dialog.request))
    assert not remaining_replies
    return requests, dialog.results


def run_baseline(judge_case: JudgeCase) -> dict[str, Result]:
    """Results of the offline baseline by metric."""
    dialog = JudgeDialog(family_named(judge_case.rubric.family).judge(judge_case))
    while dialog.request is not None:
        baseline_call = judge_call(
            judge_case.rubric, judge_case.question, judge_case.answer, dialog.request, model="baseline", parameters={}
        )
        dialog.advance(parse_reply(judge_offline(baseline_call), dialog.request))
    return dialog.results
