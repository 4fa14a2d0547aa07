"""Family ``asked_back`` (source 001): questions an answer would be a reply to, compared with the one that was asked.

The judge writes the questions, and says whether the answer commits to anything; the comparison needs embeddings, which
another step of the run makes of what was written. Where none are configured the metric is not applicable and nothing is
asked: another measure under the same name would be worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import Result
from evaluation.core.scales import PERCENT
from evaluation.judging.calls import Ask, Case, Family, JudgeReply, Judging, Rung, failed
from evaluation.judging.gates import bottom
from evaluation.judging.prompt import hear
from evaluation.judging.rubric import TEXT, YES_NO, closed, list_of
from evaluation.network.outcomes import Outcome

NAME = "asked_back"

SPEC = judged_spec(
    name="answer_relevance",
    scale=PERCENT,
    title=Bilingual("Answer relevance", "답변 관련성"),
    formula=Bilingual(
        "mean cosine between the question and 3 questions a judge writes from the answer, below 0 as 0, x 100; "
        "0 for an answer that commits to nothing; not applicable without embeddings",
        "질문과, 판정관이 답변을 보고 쓴 질문 3개의 임베딩 코사인 평균(음수는 0) x 100. "
        "아무것도 말하지 않는 답변은 0, 임베딩이 없으면 해당 없음",
    ),
    source="001",
    inputs=("embeddings",),
    rubric_family=NAME,
)


METRIC = SPEC.name
MOST_QUESTIONS = 3
_SCHEMA = closed({"questions": list_of(TEXT), "noncommittal": YES_NO})


class Written(NamedTuple):
    """What a judge wrote: at most three questions, and whether the answer commits to nothing."""

    questions: tuple[str, ...]
    noncommittal: bool


def judge(case: Case) -> Judging:
    """One call. Only what needs no embeddings is a result: a failure, 0 for an answer that commits to nothing, and not
    applicable where there are no embeddings; otherwise the questions wait in the reply."""
    if not case.settings.embeds:
        return {METRIC: Result.not_applicable("no_embeddings")}
    # The judge is shown the answer alone, so that it cannot repeat the question.
    heard = yield Ask({"answer": case.answer.text}, _SCHEMA, (), "write", whole=True)
    if heard.failure:
        return failed(case, heard)
    written = _written(heard.parts)
    if written.noncommittal:
        return {METRIC: Result.scored(0.0, detail={"noncommittal": True, "questions": list(written.questions)})}
    return {} if written.questions else {METRIC: Result.failed("no_questions")}


def written_in(raw: str) -> Written | None:
    """What a good reply of the judge holds; ``None`` where it is none."""
    ask, reply = Ask({}, _SCHEMA, whole=True), JudgeReply(Outcome.OK, raw=raw)
    heard = [one for rung in (Rung.JSON_SCHEMA, Rung.TEXT) if not (one := hear(reply, ask, rung)).failure]
    return _written(heard[0].parts) if heard else None


def _written(parts: Mapping[str, Any]) -> Written:
    questions = tuple(text for text in parts["questions"] if text)[:MOST_QUESTIONS]
    return Written(questions, parts["noncommittal"])


FAMILY = Family(NAME, (SPEC,), judge, floor=bottom)
