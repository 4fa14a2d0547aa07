"""Two answers to one question, word by word, with what was said of each."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.core.registry import Bilingual, Scale
from evaluation.models import Answer, Run
from review.evidence.answers import RunAnswer, run_answers
from review.evidence.effective import values_from
from review.evidence.run_evidence import said_of
from review.evidence.scorers import title_of
from review.statistics.paired_tests.text_difference import Stretch, text_difference


@dataclass(frozen=True, slots=True)
class Said:
    """A metric of both answers: what judge or rule said and what counts after review; ``None`` without a value."""

    title: Bilingual
    scale: Scale
    baseline: float | str | None
    ours: float | str | None
    baseline_counts: float | str | None
    ours_counts: float | str | None


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """The answers of two runs to one question (of one sample each), the baseline's first."""

    baseline: RunAnswer
    ours: RunAnswer
    stretches: tuple[Stretch, ...]
    metrics: tuple[Said, ...]


def answer_pairs(ours: Run, baseline: Run, question_id: str) -> list[AnswerPair]:
    """The answers to the question by sample; empty where one of the runs has none."""
    mine, theirs = ({a.sample: a for a in run_answers(run) if a.question_id == question_id} for run in (ours, baseline))
    shared = sorted(set(mine) & set(theirs))
    keys = [one[sample].answer_id for one in (mine, theirs) for sample in shared]
    texts = dict(Answer.objects.filter(pk__in=keys).values_list("pk", "text"))
    values = _values(ours, [mine[sample].answer_id for sample in shared])
    before = _values(baseline, [theirs[sample].answer_id for sample in shared])
    return [
        AnswerPair(
            baseline=theirs[sample],
            ours=mine[sample],
            stretches=text_difference(texts[theirs[sample].answer_id], texts[mine[sample].answer_id]),
            metrics=_said(before.get(theirs[sample].answer_id, {}), values.get(mine[sample].answer_id, {})),
        )
        for sample in shared
    ]


_Value = tuple[Bilingual, Scale, float | str | None, float | str | None]


def _values(run: Run, answer_ids: list[int]) -> dict[int, dict[str, _Value]]:
    """Answer -> metric -> title, scale, what was said, what counts."""
    said = said_of(run, answer_ids)
    found: dict[int, dict[str, _Value]] = {}
    for (answer_id, metric_id), value in values_from(said).values.items():
        metric = said.metrics[metric_id]
        counts = value.label if value.value is None else value.value
        judged = value.judged.answer if value.judged else None
        found.setdefault(answer_id, {})[metric.name] = (title_of(metric), metric.read_scale(), judged, counts)
    return found


def _said(baseline: dict[str, _Value], ours: dict[str, _Value]) -> tuple[Said, ...]:
    found = []
    for name in dict.fromkeys([*baseline, *ours]):
        title, scale, *_ = baseline.get(name) or ours[name]
        before, now = baseline.get(name, (title, scale, None, None)), ours.get(name, (title, scale, None, None))
        found.append(Said(title, scale, before[2], now[2], before[3], now[3]))
    return tuple(found)
