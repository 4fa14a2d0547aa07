"""Family ``generation_faithfulness`` (source 002): how far an answer rests on the retrieved passages, from 0 to 1."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec
from evaluation.core.scales import UNIT
from evaluation.judging.asking import Family
from evaluation.judging.formulas import scored_in_one_call
from evaluation.judging.gates import bottom

NAME = "generation_faithfulness"

METRICS = (
    MetricSpec(
        name=NAME,
        kind=Kind.JUDGE,
        scale=UNIT,
        title=Bilingual("Faithfulness of generation", "생성 충실도"),
        formula=Bilingual(
            "a judge's number from 0 to 1: how far the answer rests on the retrieved passages",
            "판정관이 매긴 0~1 값: 답변이 검색된 문단에 근거하는 정도",
        ),
        source="002",
        inputs=("contexts",),
        rubric_family=NAME,
    ),
)
FAMILY = Family(NAME, METRICS, scored_in_one_call, floor=bottom)
