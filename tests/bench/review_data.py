"""Fills a database for the bench of the reviewer's queue: ``python -m tests.bench.review_data ANSWERS SIZES``.

20 scores for each answer: four judged runs of one answer set, five metrics each. Scores and passages are inserted by
the database itself. Prints the queues by size, and each reviewer's token and session, as JSON.
"""

# ruff: noqa: E402 -- the imports need Django set up

from __future__ import annotations

import hashlib
import json
import os
import sys
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection, transaction
from django.utils import timezone

from evaluation.judges.shipping import definitions
from evaluation.models import Answer, AnswerSet, ApiToken, QuestionSet, RoleGrant, Run, System, SystemVersion, User
from tests.factories import make_question_set, make_queue, make_scored_run

PEOPLE, RUNS = 8, 4
METRICS = ("correctness", "faithfulness", "completeness", "answer_relevancy", "context_precision")
ASKED = METRICS[:2]
SAID = "The river rises in the north and reaches the sea after three hundred kilometres of hills and fields. " * 4
SCORES = """
INSERT INTO evaluation_score (created_at, run_id, answer_id, metric_id, origin, round, repeat, judge_version_id,
  rubric_version_id, author, status, value, reason, detail)
SELECT a.created_at, %s, a.id, m.id, 'bench ' || %s || ' ' || a.id, 0, 1, %s, %s, '', 'scored',
  1 + (a.id * 7 + m.id * 3) %% 5, 'Both claims are in the passages; the date is missing.', '{}'
FROM evaluation_answer a JOIN evaluation_metricdefinition m ON m.id IN (%s, %s, %s, %s, %s)
"""
PASSAGES = """
INSERT INTO evaluation_context (created_at, answer_id, position, chunk_id, text, source, metadata)
SELECT created_at, id, %s, 'c' || %s, text, 'atlas', '{}' FROM evaluation_answer
"""


def answered(questions: QuestionSet) -> AnswerSet:
    """An answer to each question, with three passages."""
    system = System.objects.create(project=questions.project, name="bench")
    version = SystemVersion.objects.create(system=system, version=1, content_hash="0" * 64)
    made = AnswerSet.objects.create(
        project=questions.project, question_set=questions, system_version=version, content_hash="0" * 64
    )
    rows = (
        Answer(answer_set=made, question_id=pk, status="ok", text=SAID, text_hash="0" * 64, retrieves=True)
        for pk in questions.questions.values_list("pk", flat=True)
    )
    Answer.objects.bulk_create(rows, batch_size=2_000)
    with connection.cursor() as cursor:
        for place in range(3):
            cursor.execute(PASSAGES, [place, place])
    return made


def judged(answers: AnswerSet) -> Run:
    """A completed run over the answers, with a score for each of the metrics."""
    given = answers.answers.order_by("pk")
    run = make_scored_run(answers, metrics=())
    judge = run.judges.get()
    metrics = [metric.pk for metric in definitions(METRICS).values()]
    with connection.cursor() as cursor:
        cursor.execute(SCORES, [run.pk, run.pk, judge.judge_version_id, judge.rubric_version_id, *metrics])
    assert run.scores.count() == len(METRICS) * given.count()
    return run


def reviewer(run: Run, number: int) -> tuple[User, dict[str, str]]:
    """A reviewer with a token and a session."""
    user = User.objects.create_user(f"reviewer-{number}")
    RoleGrant.objects.create(user=user, project=run.project, role="reviewer")
    ApiToken.objects.create(
        user=user,
        made_by=user,
        project=run.project,
        name="bench",
        scope="write",
        sha256=hashlib.sha256(f"token-{number}".encode()).hexdigest(),
        expires_at=timezone.now() + timedelta(days=1),
    )
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return user, {"token": f"token-{number}", "session": str(session.session_key)}


@transaction.atomic
def main(answers: int, sizes: list[int]) -> dict[str, object]:
    """Everything, in one transaction."""
    made = answered(make_question_set(specs=answers))
    runs = [judged(made) for _ in range(RUNS)]
    people = [reviewer(runs[0], number) for number in range(PEOPLE)]
    queues = {
        size: make_queue(
            runs[0], [user for user, _ in people], metrics=ASKED, reviews_needed=2, strategy="uniform", size=size
        ).pk
        for size in sizes
    }
    return {"queues": queues, "people": [keys for _, keys in people], "scores": len(METRICS) * RUNS * answers}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), [int(size) for size in sys.argv[2:]])))
