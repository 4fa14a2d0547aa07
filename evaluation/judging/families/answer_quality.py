"""Family ``answer_quality``: correctness, faithfulness and completeness from 1 to 5, in one call."""

from __future__ import annotations

from functools import partial

from evaluation.core.registry import Bilingual, Kind, MetricSpec
from evaluation.core.scales import Scale
from evaluation.judging.asking import Family
from evaluation.judging.formulas import scored_in_one_call
from evaluation.judging.gates import bottom

NAME = "answer_quality"
_spec = partial(MetricSpec, kind=Kind.JUDGE, scale=Scale.parse("levels 1..5"), source="000", rubric_family=NAME)

METRICS = (
    _spec(
        name="correctness",
        title=Bilingual("Correctness", "정확성"),
        formula=Bilingual(
            "A judge's level from 1 to 5: does the answer agree in fact with the expected answer, or with the "
            "expected keywords as required points?",
            "판정관이 매긴 1~5 단계: 답변이 기대 답변(없으면 기대 키워드)과 사실에서 일치하는가?",
        ),
        inputs=("reference",),
    ),
    _spec(
        name="faithfulness",
        title=Bilingual("Faithfulness", "충실성"),
        formula=Bilingual(
            "A judge's level from 1 to 5: is every factual claim supported by the retrieved passages?",
            "판정관이 매긴 1~5 단계: 사실 주장이 모두 검색된 문단에 근거하는가?",
        ),
        inputs=("contexts",),
    ),
    _spec(
        name="completeness",
        title=Bilingual("Completeness", "완전성"),
        formula=Bilingual(
            "A judge's level from 1 to 5: does the answer cover all that the question asks for?",
            "판정관이 매긴 1~5 단계: 질문이 요구한 것을 모두 다루는가?",
        ),
        inputs=("reference",),
    ),
)

FAMILY = Family(NAME, METRICS, scored_in_one_call, floor=bottom)
