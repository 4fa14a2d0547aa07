"""Runs of two systems that retrieve from ten passages a question, of which the first is known to be relevant."""

from __future__ import annotations

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
RIGHT = {0, 1, 5}  # of each question: the first is labelled


def two_runs(questions: int = QUESTIONS, *, ids: bool = True) -> tuple[Run, Run]:
    """A and B over the same questions."""
    asked = make_question_set(
        specs=[question_spec(n, category="c", ground_truth_chunk_ids=(f"q{n}-0",)) for n in range(1, questions + 1)]
    )
    a, b = (run_over(asked, name, ranking, ids=ids) for name, ranking in zip("AB", RANKINGS, strict=True))
    return a, b


def run_over(asked: QuestionSet, name: str, ranking: Sequence[int], *, ids: bool = True) -> Run:
    """A system that retrieves the same places for each question."""
    system = System.objects.create(project=asked.project, name=f"System {name}")
    version = SystemVersion.objects.create(system=system, version=1, content_hash=name)
    made = AnswerSet.objects.create(
        project=asked.project, question_set=asked, system_version=version, content_hash="0" * 64
    )
    given = {"status": "ok", "text": "Something.", "text_hash": "0" * 64, "retrieves": True}
    answers = [Answer(answer_set=made, question=question, **given) for question in asked.questions.all()]
    Context.objects.bulk_create(
        _context(answer, at, f"{answer.question.external_id}-{one}", ids=ids)
        for answer in Answer.objects.bulk_create(answers)
        for at, one in enumerate(ranking)
    )
    return make_scored_run(made, metrics=("context_precision",), family="passages", values=(50,))


def _context(answer: Answer, position: int, name: str, *, ids: bool) -> Context:
    return Context(answer=answer, position=position, chunk_id=name if ids else "", text=f"Passage {name}.")


def repair(size: int = 40, people: int = 1, **fields: object) -> RetrievalRepair:
    """A repair of both runs at k = 5."""
    runs = two_runs()
    reviewers = [make_user(Role.REVIEWER, runs[0].project) for _ in range(people)]
    given = {"name": "first", "reviewers": reviewers, "size": size, "k": 5, "seed": 3} | fields
    return make_repair(runs, **given)  # type: ignore[arg-type]


def members(found: RetrievalRepair) -> list[User]:
    """In the order they were named."""
    return [one.reviewer for one in found.members.order_by("pk").select_related("reviewer")]


def grade_of(chunk: str) -> str:
    """What an expert who knows says of it."""
    return "relevant" if int(chunk.rpartition("-")[2]) in RIGHT else "not"


def rate_all(found: RetrievalRepair, person: User, most: int = 1000) -> int:
    """Rate what is left for the person, as one who knows does."""
    for done in range(most):
        card = next_card(found, person)
        if card is None:
            return done
        rate_passage(found, card.passage, person, grade_of(card.passage.text.rstrip(".")))
    return most


def verdict(run: Run, chunk: str, said: str) -> None:
    """A judge's verdict on a passage of an answer of the run."""
    context = Context.objects.get(answer__answer_set=run.answer_set_id, chunk_id=chunk)
    score = Score.objects.get(run=run, answer=context.answer_id)
    place = score.findings.count()
    Finding.objects.create(
        score=score, kind="context", position=place, text=chunk, verdict=said, context=context.position
    )
