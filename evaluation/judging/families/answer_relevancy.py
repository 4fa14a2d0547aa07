"""Family ``answer_relevancy`` (source 002): how far an answer responds to the question, from 0 to 1. The judge sees
neither passages nor reference."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec
from evaluation.core.scales import UNIT
from evaluation.judging.asking import Family
from evaluation.judging.formulas import scored_in_one_call
from evaluation.judging.gates import bottom

NAME = "answer_relevancy"

METRICS = (
    MetricSpec(
        name=NAME,
        kind=Kind.JUDGE,
        scale=UNIT,
        title=Bilingual("Answer relevancy", "답변 적합도"),
        formula=Bilingual(
            "a judge's number from 0 to 1: how far the answer responds to the question, whatever its truth",
            "판정관이 매긴 0~1 값: 사실 여부와 별개로 답변이 질문에 응답하는 정도",
        ),
        source="002",
        rubric_family=NAME,
    ),
)
FAMILY = Family(NAME, METRICS, scored_in_one_call, floor=bottom)
