"""The answers a run is about, and those taken out of its means.

The answers a run is about, as far as figures need them: where they belong, not what they say.

Answers that a lead took out of all means by upholding a flag of a bad question or reference.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from evaluation.models import Answer, Run
from evaluation.work.lifecycle import RunConfig
from review.evidence.rating_input import FlagKind
from review.models import EventRuling


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """One answer of a run. ``group`` names answers that are not independent: the question's group, else the question
    itself, so that several answers to one question belong together. ``failed``: the system gave no answer."""

    answer_id: int
    question_pk: int
    question_id: str
    question: str
    category: str
    difficulty: str
    group: str
    sample: int
    failed: bool
    latency_seconds: float | None


_FIELDS = (
    "id",
    "question_id",
    "question__external_id",
    "question__text",
    "question__category",
    "question__difficulty",
    "question__group",
    "sample",
    "status",
    "latency_seconds",
)


def run_answers(run: Run, answer_ids: Collection[int] | None = None) -> list[RunAnswer]:
    """The newest answer to each question and sample of the run, in the order of the question set; or those of them
    with the given keys. One query."""
    wanted = RunConfig.model_validate(run.config).question_ids
    answers = Answer.objects.filter(answer_set_id=run.answer_set_id)
    if wanted:
        answers = answers.filter(question__external_id__in=wanted)
    rows = answers.order_by("question__position", "sample", "round").values_list(*_FIELDS)
    newest = {(row[1], row[7]): row for row in rows}
    return [
        RunAnswer(
            answer_id=pk,
            question_pk=question_pk,
            question_id=external_id,
            question=text,
            category=category,
            difficulty=difficulty,
            group=f"group:{group}" if group else f"question:{external_id}",
            sample=sample,
            failed=status == "failed",
            latency_seconds=latency,
        )
        for pk, question_pk, external_id, text, category, difficulty, group, sample, status, latency in newest.values()
        if answer_ids is None or pk in answer_ids
    ]


REMOVING = frozenset({FlagKind.BAD_QUESTION.value, FlagKind.BAD_REFERENCE.value})


def removed_answers(answer_set_id: int) -> frozenset[int]:
    """The answers of the set with an upheld flag of these kinds. One query."""
    newer = EventRuling.objects.filter(event=OuterRef("event"), seq__gt=OuterRef("seq"))
    upheld = EventRuling.objects.filter(
        ~Exists(newer),
        upheld=True,
        event__verb="flag",
        event__kind__in=REMOVING,
        event__assignment__item__answer__answer_set_id=answer_set_id,
    )
    return frozenset(upheld.values_list("event__assignment__item__answer_id", flat=True))
