"""Family ``asked_back`` of RAGAS: compare the question with questions that a judge writes from the answer.

The judge also says whether the answer is noncommittal. A later step of the run embeds and compares the questions.
Without embeddings the metric is not applicable and no call is made, because another measure would not be comparable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import Result
from evaluation.core.scales import PERCENT
from evaluation.judging.calls import (
    Family,
    JudgeCase,
    JudgeReply,
    JudgeRequest,
    Judging,
    ResponseFormat,
    failed_results,
)
from evaluation.judging.prechecks import worst_result
from evaluation.judging.prompt import parse_reply
from evaluation.judging.rubric import TEXT, YES_NO, list_schema, object_schema
from evaluation.network.outcomes import Outcome

NAME = "asked_back"

SPEC = judged_spec(
    name="answer_relevance",
    scale=PERCENT,
    title=Bilingual("Answer relevance", "답변 관련성"),
    formula=Bilingual(
        "mean cosine between the question and 3 questions that a judge writes from the answer, negative values as 0, "
        "x 100; 0 for a noncommittal answer; not applicable without embeddings",
        "질문과, 판정관이 답변을 보고 쓴 질문 3개의 임베딩 코사인 평균(음수는 0) x 100. "
        "아무것도 말하지 않는 답변은 0, 임베딩이 없으면 해당 없음",
    ),
    source="ragas",
    inputs=("embeddings",),
    rubric_family=NAME,
)


METRIC = SPEC.name
MAX_QUESTIONS = 3
_SCHEMA = object_schema({"questions": list_schema(TEXT), "noncommittal": YES_NO})


class WrittenQuestions(NamedTuple):
    """Questions that a judge wrote (at most three), and whether the answer is noncommittal."""

    questions: tuple[str, ...]
    noncommittal: bool


def judge(case: JudgeCase) -> Judging:
    """Make one call. Returns only results that need no embeddings: a failure, 0 for a noncommittal answer, or not
    applicable. Otherwise the questions stay in the reply."""
    if not case.settings.embeds:
        return {METRIC: Result.not_applicable("no_embeddings")}
    # The judge sees only the answer, so that it cannot repeat the question.
    reply = yield JudgeRequest({"answer": case.answer.text}, _SCHEMA, (), "write", all_parts_required=True)
    if reply.failure:
        return failed_results(case, reply)
    generated = _written_questions(reply.parts)
    if generated.noncommittal:
        return {METRIC: Result.scored(0.0, detail={"noncommittal": True, "questions": list(generated.questions)})}
    return {} if generated.questions else {METRIC: Result.failed("no_questions")}


def parse_written(raw: str) -> WrittenQuestions | None:
    """Questions of a successful reply; ``None`` if it does not parse."""
    request, reply = JudgeRequest({}, _SCHEMA, all_parts_required=True), JudgeReply(Outcome.OK, raw=raw)
    parsed = [
        attempt
        for response_format in (ResponseFormat.JSON_SCHEMA, ResponseFormat.TEXT)
        if not (attempt := parse_reply(reply, request, response_format)).failure
    ]
    return _written_questions(parsed[0].parts) if parsed else None


def _written_questions(parts: Mapping[str, Any]) -> WrittenQuestions:
    questions = tuple(text for text in parts["questions"] if text)[:MAX_QUESTIONS]
    return WrittenQuestions(questions, parts["noncommittal"])


FAMILY = Family(NAME, (SPEC,), judge, floor=worst_result)
