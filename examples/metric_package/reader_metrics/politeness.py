"""Judge family: how politely an answer addresses its reader. The judge gives a level in one call."""

from __future__ import annotations

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.scales import Scale
from evaluation.judging.calls import Family
from evaluation.judging.formulas import score_in_one_call
from evaluation.judging.prechecks import worst_result

SPEC = judged_spec(
    name="politeness",
    scale=Scale.parse("levels 1..3"),
    title=Bilingual("Politeness", "공손함"),
    formula=Bilingual(
        "a judge's level from 1 to 3: how politely the answer addresses the reader",
        "판정관이 매긴 1~3 단계: 답변이 독자를 대하는 공손함",
    ),
    source="",
    rubric_family="reader_tone",
)
FAMILY = Family("reader_tone", (SPEC,), score_in_one_call, floor=worst_result)
