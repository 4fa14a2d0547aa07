"""The offline baseline before a custom criterion: a count of words that its authors named as a stand-in, or nothing.

It cannot read an instruction. Where nobody named a stand-in it has no answer, and says so instead of guessing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evaluation.core.registry import Bilingual, Direction
from evaluation.core.samples import Result
from evaluation.judging.calls import JudgeCall
from evaluation.judging.criteria.terms import Offline
from evaluation.judging.lexical.grades import Grade, completeness, correctness, faithfulness
from evaluation.judging.lexical.scores import responds
from evaluation.judging.lexical.words import reasons_in
from evaluation.judging.rubric import Rubric

STAND_INS: Mapping[Offline, Callable[[JudgeCall], Grade]] = {
    Offline.CORRECTNESS: lambda call: correctness(call.question, call.answer),
    Offline.COMPLETENESS: lambda call: completeness(call.question, call.answer),
    Offline.FAITHFULNESS: lambda call: faithfulness(call.question, call.answer),
    Offline.RELEVANCY: responds,
}
_NOTE = Bilingual(
    "Counted by words ({offline}), not judged by the criterion.",
    "기준으로 판정한 것이 아니라 낱말을 센 값입니다({offline}).",
)


def unanswerable(rubric: Rubric, metrics: Iterable[str]) -> dict[str, Result]:
    """The metrics of the rubric that the baseline has no rule for, with that as their result."""
    if rubric.criterion is None or rubric.criterion.offline is not Offline.NONE:
        return {}
    return {name: Result.not_applicable("baseline_has_no_rule") for name in metrics}


def stand_in(call: JudgeCall) -> dict[str, Any]:
    """The share of words on the criterion's scale, turned round where less is better; between two levels the lower
    of the shares counts, so that a half is no yes."""
    terms = call.rubric.criterion
    if terms is None:
        raise ValueError(f"{call.rubric.family} is no criterion")
    grade = STAND_INS[terms.offline](call)
    (metric,) = call.rubric.metrics
    scale = metric.read_scale()
    share = (grade.level - 1) / 4 if scale.levels else grade.unit
    place = math.ceil(share * scale.width - 0.5) if scale.levels else share * scale.width
    value = scale.low + place if terms.direction is Direction.HIGHER else scale.high - place
    language = reasons_in(call)
    note = _NOTE.in_language(language).replace("{offline}", terms.offline)
    score = int(value) if scale.levels else value
    return {metric.name: {"reason": f"{grade.reason.in_language(language)} {note}", "score": score}}
