"""Family ``regulation_quality`` of regulation evaluation: four scores from 0 to 1 in one call, with issues and
strengths."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import Finding, Result, Status
from evaluation.judging.calls import Family, JudgeCase, Judging
from evaluation.judging.formulas import read_scores, scores_request
from evaluation.judging.prechecks import worst_result
from evaluation.judging.prompt import data_blocks, declared_inputs
from evaluation.judging.rubric import TEXT, list_schema

NAME = "regulation_quality"
# Member of the reply -> kind of finding.
LISTS = {"issues": "issue", "strengths": "strength"}
_EVERYWHERE = ("passages", "persona", "history", "clarification_ok")
_spec = partial(judged_spec, source="regulation", rubric_family=NAME)

METRICS = (
    _spec(
        name="accuracy",
        title=Bilingual("Accuracy", "정확도"),
        formula=Bilingual(
            "a judge's number from 0 to 1: is the answer correct and free of inventions? It is 0 if a phone number or "
            "institution is not in the sources, and at most 0.3 if the answer is evasive without helping",
            "판정관이 매긴 0~1 값: 답변이 사실에 맞고 지어낸 것이 없는가? 출처에 없는 전화번호나 다른 기관이 있으면 0, "
            "도움 없는 회피이면 최대 0.3",
        ),
        inputs=("evidence",),
        optional_inputs=("reference", *_EVERYWHERE),
    ),
    _spec(
        name="answer_completeness",
        title=Bilingual("Completeness of the answer", "답변 완전성"),
        formula=Bilingual(
            "a judge's number from 0 to 1: does the answer contain the required information?",
            "판정관이 매긴 0~1 값: 필요한 정보를 모두 담았는가?",
        ),
        inputs=("points",),
        optional_inputs=("reference", "required_info", *_EVERYWHERE),
    ),
    _spec(
        name="citations",
        title=Bilingual("Citations", "인용"),
        formula=Bilingual(
            "a judge's number from 0 to 1: are regulations and articles cited exactly and in proper form?",
            "판정관이 매긴 0~1 값: 규정과 조문을 정확하고 올바른 형식으로 인용했는가?",
        ),
        optional_inputs=_EVERYWHERE,
    ),
    _spec(
        name="context_relevance",
        title=Bilingual("Context relevance", "문단 관련성"),
        formula=Bilingual(
            "a judge's number from 0 to 1: are the retrieved passages about the question? 0 if nothing was retrieved",
            "판정관이 매긴 0~1 값: 검색된 문단이 질문과 관련되는가? 검색된 것이 없으면 0",
        ),
        inputs=("contexts",),
        optional_inputs=_EVERYWHERE,
    ),
)


def judge(case: JudgeCase) -> Judging:
    """Request all scores at once. Issues and strengths become findings of the first scored metric."""
    unretrieved = "context_relevance" if case.answer.contexts == () else ""
    requested = tuple(name for name in case.metrics if name != unretrieved)
    blocks = data_blocks(case.question, case.answer, declared_inputs(case))
    reply = yield scores_request(case.rubric, requested, blocks, {name: list_schema(TEXT) for name in LISTS})
    results = read_scores(case, reply)
    if unretrieved in case.metrics:
        results[unretrieved] = Result.scored(0.0, detail={"contexts": 0})
    findings = tuple(
        Finding(kind, text) for member, kind in LISTS.items() for text in reply.parts.get(member, ()) if text
    )
    first = next((name for name in requested if results[name].status is Status.SCORED), "")
    if first and findings:
        results[first] = replace(results[first], findings=findings)
    return results


FAMILY = Family(NAME, METRICS, judge, floor=worst_result)
