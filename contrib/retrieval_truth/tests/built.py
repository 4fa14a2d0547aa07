"""Runs of two systems that retrieve from ten passages a question; the first passage is labelled relevant."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from contrib.retrieval_truth.models import RetrievalRepair
from contrib.retrieval_truth.pooling import make_repair
from contrib.retrieval_truth.rating import next_card, rate_passage
from evaluation.core.roles import Role
from evaluation.models import Answer, AnswerSet, Context, Finding, QuestionSet, Run, Score, System, SystemVersion, User
from tests.factories import (
    make_question_set,
    make_scored_run,
    make_user,
    question_spec,
)

QUESTIONS = 10
RANKINGS = ((0, 1, 2, 3, 4), (5, 1, 6, 7, 0))
TEXT_HASH = hashlib.sha256(b"Something.").hexdigest()
RELEVANT = {0, 1, 5}  # of each question: the first is labelled


def two_runs(questions: int = QUESTIONS, *, ids: bool = True) -> tuple[Run, Run]:
    """A and B over the same questions."""
    question_set = make_question_set(
        specs=[question_spec(n, category="c", ground_truth_chunk_ids=(f"q{n}-0",)) for n in range(1, questions + 1)]
    )
    a, b = (run_over(question_set, name, ranking, ids=ids) for name, ranking in zip("AB", RANKINGS, strict=True))
    return a, b


def run_over(question_set: QuestionSet, name: str, ranking: Sequence[int], *, ids: bool = True) -> Run:
    """A system that retrieves the same places for each question."""
    system = System.objects.create(project=question_set.project, name=f"System {name}")
    version = SystemVersion.objects.create(system=system, version=1, content_hash=name)
    answer_set = AnswerSet.objects.create(
        project=question_set.project, question_set=question_set, system_version=version, content_hash="0" * 64
    )
    fields = {"status": "ok", "text": "Something.", "text_hash": TEXT_HASH, "retrieves": True}
    answers = [Answer(answer_set=answer_set, question=question, **fields) for question in question_set.questions.all()]
    Context.objects.bulk_create(
        _context(answer, at, f"{answer.question.external_id}-{passage_number}", ids=ids)
        for answer in Answer.objects.bulk_create(answers)
        for at, passage_number in enumerate(ranking)
    )
    return make_scored_run(answer_set, metrics=("context_precision",), family="passages", values=(50,))


def _context(answer: Answer, position: int, name: str, *, ids: bool) -> Context:
    return Context(answer=answer, position=position, chunk_id=name if ids else "", text=f"Passage {name}.")


def repair(size: int = 40, reviewer_count: int = 1, **fields: object) -> RetrievalRepair:
    """A repair of both runs at k = 5."""
    runs = two_runs()
    reviewers = [make_user(Role.REVIEWER, runs[0].project) for _ in range(reviewer_count)]
    settings = {"name": "first", "reviewers": reviewers, "size": size, "k": 5, "seed": 3} | fields
    return make_repair(runs, **settings)  # type: ignore[arg-type]


def members(label_repair: RetrievalRepair) -> list[User]:
    """Reviewers in the order they were named."""
    return [member.reviewer for member in label_repair.members.order_by("pk").select_related("reviewer")]


def grade_of(chunk: str) -> str:
    """Grade that a knowledgeable expert gives the passage."""
    return "relevant" if int(chunk.rpartition("-")[2]) in RELEVANT else "not"


def rate_all(label_repair: RetrievalRepair, reviewer: User, limit: int = 1000) -> int:
    """Rate the person's passages as a knowledgeable expert, at most ``limit``; return their number."""
    for count in range(limit):
        card = next_card(label_repair, reviewer)
        if card is None:
            return count
        rate_passage(label_repair, card.passage, reviewer, grade_of(card.passage.text.rstrip(".")))
    return limit


def store_verdict(run: Run, chunk: str, verdict_label: str) -> None:
    """Store a judge's verdict on a passage of an answer of the run."""
    context = Context.objects.get(answer__answer_set=run.answer_set_id, chunk_id=chunk)
    score = Score.objects.get(run=run, answer=context.answer_id)
    position = score.findings.count()
    Finding.objects.create(
        score=score, kind="context", position=position, text=chunk, verdict=verdict_label, context=context.position
    )
