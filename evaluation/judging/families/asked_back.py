"""Family ``asked_back`` (source 001): questions an answer would be a reply to, compared with the one that was asked.

The comparison needs embeddings. Where none are configured the metric is not applicable, and nothing is asked: another
measure under the same name would be worse than none.
"""

from __future__ import annotations

from evaluation.judging.asking import Case, Family, Judging
from evaluation.registry import Bilingual, Kind, MetricSpec
from evaluation.samples import Result
from evaluation.scales import Scale, ScaleKind

NAME = "asked_back"

METRICS = (
    MetricSpec(
        name="answer_relevance",
        version=1,
        kind=Kind.JUDGE,
        scale=Scale(ScaleKind.REAL, 0, 100),
        title=Bilingual("Answer relevance", "답변 관련성"),
        formula=Bilingual(
            "mean cosine between the question and 3 questions a judge writes from the answer, below 0 as 0, x 100; "
            "0 for an answer that commits to nothing; not applicable without embeddings",
            "질문과, 판정관이 답변을 보고 쓴 질문 3개의 임베딩 코사인 평균(음수는 0) x 100. "
            "아무것도 말하지 않는 답변은 0, 임베딩이 없으면 해당 없음",
        ),
        source="001",
        rubric_family=NAME,
    ),
)


def judge(case: Case) -> Judging:
    """Not applicable: no embeddings are configured."""
    yield from ()
    return {name: Result.not_applicable("no_embeddings") for name in case.metrics}


FAMILY = Family(NAME, METRICS, judge)
