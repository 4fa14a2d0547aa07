"""Families scored in one call: ``answer_quality`` (correctness, faithfulness and completeness from 1 to 5), and
``generation_faithfulness`` and ``answer_relevancy`` of generation evaluation (0 to 1). For relevancy the judge sees
neither passages nor reference."""

from __future__ import annotations

from functools import partial

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.scales import Scale
from evaluation.judging.calls import Family
from evaluation.judging.formulas import score_in_one_call
from evaluation.judging.prechecks import worst_result

_quality = partial(judged_spec, scale=Scale.parse("levels 1..5"), source="graphrag", rubric_family="answer_quality")

_QUALITY = (
    _quality(
        name="correctness",
        title=Bilingual("Correctness", "정확성"),
        formula=Bilingual(
            "A judge's level from 1 to 5: do the facts of the answer agree with the expected answer or, without one, "
            "with the expected keywords?",
            "판정관이 매긴 1~5 단계: 답변이 기대 답변(없으면 기대 키워드)과 사실에서 일치하는가?",
        ),
        inputs=("reference",),
    ),
    _quality(
        name="faithfulness",
        title=Bilingual("Faithfulness", "충실성"),
        formula=Bilingual(
            "A judge's level from 1 to 5: is every factual claim supported by the retrieved passages?",
            "판정관이 매긴 1~5 단계: 사실 주장이 모두 검색된 문단에 근거하는가?",
        ),
        inputs=("contexts",),
    ),
    _quality(
        name="completeness",
        title=Bilingual("Completeness", "완전성"),
        formula=Bilingual(
            "A judge's level from 1 to 5: does the answer cover everything that the question asks?",
            "판정관이 매긴 1~5 단계: 질문이 요구한 것을 모두 다루는가?",
        ),
        inputs=("reference",),
    ),
)

_FAITHFULNESS = judged_spec(
    name="generation_faithfulness",
    title=Bilingual("Faithfulness of generation", "생성 충실도"),
    formula=Bilingual(
        "a judge's number from 0 to 1: how far the retrieved passages support the answer",
        "판정관이 매긴 0~1 값: 답변이 검색된 문단에 근거하는 정도",
    ),
    source="generation",
    inputs=("contexts",),
    rubric_family="generation_faithfulness",
)

_RELEVANCY = judged_spec(
    name="answer_relevancy",
    title=Bilingual("Answer relevancy", "답변 적합도"),
    formula=Bilingual(
        "a judge's number from 0 to 1: how far the answer responds to the question, true or not",
        "판정관이 매긴 0~1 값: 사실 여부와 별개로 답변이 질문에 응답하는 정도",
    ),
    source="generation",
    rubric_family="answer_relevancy",
)

ANSWER_QUALITY = Family("answer_quality", _QUALITY, score_in_one_call, floor=worst_result)
GENERATION_FAITHFULNESS = Family("generation_faithfulness", (_FAITHFULNESS,), score_in_one_call, floor=worst_result)
ANSWER_RELEVANCY = Family("answer_relevancy", (_RELEVANCY,), score_in_one_call, floor=worst_result)
