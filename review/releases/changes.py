"""Questions that two runs answered, and the answers that changed between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evaluation.models import Answer, Run
from evaluation.profiles.spec import FailureRule
from review.evidence.answers import RunAnswer, run_answers
from review.evidence.carried import passage_digests
from review.reports.inputs import ReportInputs

# Answers in one query.
BATCH = 10_000


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question with the answers of the old and the new run that differ; both are empty if it is unchanged.

    Equal answers cancel out if both runs have equally many samples. ``samples`` counts the answers of the old and the
    new run."""

    question_id: str
    old: tuple[RunAnswer, ...]
    new: tuple[RunAnswer, ...]
    samples: tuple[int, int]

    @property
    def changed(self) -> bool:
        return bool(self.old or self.new)

    @property
    def answers(self) -> tuple[RunAnswer, ...]:
        """Changed answers that the systems gave."""
        return tuple(answer for answer in (*self.old, *self.new) if not answer.failed)


def same_questions(current: ReportInputs, baseline: ReportInputs) -> bool:
    """Return whether two runs have different answers to one version of a question set."""
    sets = [basis.run.answer_set for basis in (current, baseline)]
    return sets[0].pk != sets[1].pk and sets[0].question_set_id == sets[1].question_set_id


def answered_questions(current: ReportInputs, baseline: ReportInputs) -> list[AnsweredQuestion]:
    """Questions that both runs answered, in the order of the question set. One query, and one for each 10,000 answers
    with equal texts.

    Answers are equal if they have the same text and the same passages in the same order, or if both failed. Questions
    with an excluded answer are left out, and those with a failed one if the profile leaves failures out."""
    bases = (baseline, current)
    left_out = {answer.question_id for basis in bases for answer in basis.evidence.excluded}
    if current.profile.on_failure is not FailureRule.ZERO:
        left_out |= {
            answer.question_id for basis in bases for answer in basis.evidence.answers.values() if answer.failed
        }
    old, new = (basis.evidence.answers.values() for basis in bases)
    questions = _pair_answers(current.run, baseline.run, new, old)
    return [question for question in questions if question.question_id not in left_out]


@dataclass(frozen=True, slots=True)
class PreviousRelease:
    """The newest earlier run of the same system over the same questions, and the number of them whose answers
    changed."""

    run_id: int
    questions: int
    changed: int


def find_previous_release(run: Run) -> PreviousRelease | None:
    """Previous release of a run; ``None`` without one. One query, and a few more if there is one."""
    answers = run.answer_set
    previous = (
        Run.objects.filter(
            project=run.project_id,
            answer_set__question_set=answers.question_set_id,
            answer_set__system_version__system=answers.system_version.system_id,
            answer_set__lt=answers.pk,
            state__in=Run.ENDED,
        )
        .order_by("-pk")
        .first()
    )
    if previous is None:
        return None
    questions = _pair_answers(run, previous, run_answers(run), run_answers(previous))
    return PreviousRelease(previous.pk, len(questions), sum(question.changed for question in questions))


def _pair_answers(
    current: Run, baseline: Run, new: Iterable[RunAnswer], old: Iterable[RunAnswer]
) -> list[AnsweredQuestion]:
    old_answers, new_answers = _by_question(old), _by_question(new)
    question_of = {
        answer.answer_id: answer.question_id
        for answers in (*old_answers.values(), *new_answers.values())
        for answer in answers
    }
    content = _contents([baseline.answer_set_id, current.answer_set_id], question_of)
    return [
        _question(question_id, old_answers[question_id], answers, content)
        for question_id, answers in new_answers.items()
        if question_id in old_answers
    ]


def _by_question(answers: Iterable[RunAnswer]) -> dict[str, list[RunAnswer]]:
    by_question: dict[str, list[RunAnswer]] = {}
    for answer in answers:
        by_question.setdefault(answer.question_id, []).append(answer)
    return by_question


def _contents(answer_sets: Sequence[int], question_of: Mapping[int, str]) -> dict[int, Hashable]:
    """Content of each answer; equal contents mean equal answers. Passages are read only where texts are equal."""
    columns = ("pk", "status", "text_hash", "retrieves", "retrieved_ids")
    rows = Answer.objects.filter(answer_set__in=answer_sets).values_list(*columns)
    texts: dict[int, Hashable] = {
        pk: status if status == "failed" else (text_hash, retrieves, repr(retrieved_ids))
        for pk, status, text_hash, retrieves, retrieved_ids in rows.iterator()
        if pk in question_of
    }
    counts = Counter((question_of[pk], text) for pk, text in texts.items())
    alike = [pk for pk, text in texts.items() if counts[question_of[pk], text] > 1]
    passages: dict[int, str] = {}
    for start in range(0, len(alike), BATCH):
        passages |= passage_digests(alike[start : start + BATCH])
    return {pk: (text, passages.get(pk)) for pk, text in texts.items()}


def _question(
    question_id: str, old: Sequence[RunAnswer], new: Sequence[RunAnswer], content: Mapping[int, Hashable]
) -> AnsweredQuestion:
    samples = len(old), len(new)
    if len(old) != len(new):
        return AnsweredQuestion(question_id, tuple(old), tuple(new), samples)
    return AnsweredQuestion(question_id, _without(old, new, content), _without(new, old, content), samples)


def _without(
    answers: Sequence[RunAnswer], others: Sequence[RunAnswer], content: Mapping[int, Hashable]
) -> tuple[RunAnswer, ...]:
    """Answers without an equal one among the others, each of which cancels one answer."""
    left = Counter(content[answer.answer_id] for answer in others)
    remaining = []
    for answer in answers:
        if left[content[answer.answer_id]]:
            left[content[answer.answer_id]] -= 1
        else:
            remaining.append(answer)
    return tuple(remaining)
