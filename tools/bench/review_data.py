"""Fill a database for the benches of the queue and of the pages: ``python -m tools.bench.review_data ANSWERS SIZES``.

20 scores for each answer: four judged runs of one answer set, five metrics each, on the metrics' own scales. With
``--rated N`` every metric of the first N answers has an imported expert rating, as a uniform sample. Scores, ratings
and passages are inserted by the database itself. Prints the queues by size, the runs, the lead's session and each
reviewer's token and session, as JSON."""

# ruff: noqa: E402 -- the imports need Django set up
from __future__ import annotations

import argparse
import hashlib
import json
import os
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection, transaction
from django.utils import timezone

from evaluation.judges.shipped import definitions
from evaluation.models import (
    Answer,
    AnswerSet,
    ApiToken,
    ProfileVersion,
    QuestionSet,
    RoleGrant,
    Run,
    System,
    SystemVersion,
    User,
)
from tests.factories import make_profile, make_question_set, make_queue, make_scored_run, question_spec

REVIEWERS, RUNS = 8, 4
METRICS = ("correctness", "faithfulness", "completeness", "answer_relevancy", "context_precision")
RATED_METRICS = METRICS[:2]
ANSWER_TEXT = (
    "The river rises in the north and reaches the sea after three hundred kilometres of hills and fields. " * 4
)
CATEGORIES = 8
SCORES = """
INSERT INTO evaluation_score (created_at, run_id, answer_id, metric_id, origin, round, repeat, judge_version_id,
  rubric_version_id, author, status, value, reason, detail)
SELECT a.created_at, %s, a.id, %s, 'bench ' || %s || ' ' || a.id, 0, 1, %s, %s, '', 'scored',
  %s + %s * ((a.id * 7 + %s * 3 + a.id / 11 + %s) %% 5) / 4.0,
  'Both claims are in the passages; the date is missing.', '{}'
FROM evaluation_answer a
"""
RATINGS = """
INSERT INTO review_rating (created_at, answer_id, metric_id, author, source, phase, blind, seq, value, cannot_judge,
  reason_code, comment, sampling, probability, idempotency_key)
SELECT a.created_at, a.id, %s, 'expert', 'import', 'initial', %s, 1,
  %s + %s * ((a.id * 7 + %s * 3 + a.id / 11 + a.id / 6) %% 5) / 4.0,
  %s, '', '', 'uniform', %s, 'bench ' || a.id || ' ' || %s
FROM evaluation_answer a WHERE a.id <= (SELECT MIN(id) FROM evaluation_answer) + %s - 1
"""
PASSAGES = """
INSERT INTO evaluation_context (created_at, answer_id, position, chunk_id, text, source, metadata)
SELECT created_at, id, %s, 'c' || %s, text, 'atlas', '{}' FROM evaluation_answer
"""


def make_answers(questions: QuestionSet) -> AnswerSet:
    """An answer to each question, with three passages."""
    system = System.objects.create(project=questions.project, name="bench")
    version = SystemVersion.objects.create(system=system, version=1, content_hash="0" * 64)
    answer_set = AnswerSet.objects.create(
        project=questions.project, question_set=questions, system_version=version, content_hash="0" * 64
    )
    rows = (
        Answer(answer_set=answer_set, question_id=pk, status="ok", text=ANSWER_TEXT, text_hash="0" * 64, retrieves=True)
        for pk in questions.questions.values_list("pk", flat=True)
    )
    Answer.objects.bulk_create(rows, batch_size=2_000)
    with connection.cursor() as cursor:
        for position in range(3):
            cursor.execute(PASSAGES, [position, position])
    return answer_set


def make_judged_run(answers: AnswerSet, profile: ProfileVersion, number: int) -> Run:
    """A completed run over the answers, with a score for each of the metrics."""
    run = make_scored_run(answers, metrics=(), profile=profile)
    judge = run.judges.get()
    with connection.cursor() as cursor:
        for pk, low, width in _scales():
            judge_ids = [judge.judge_version_id, judge.rubric_version_id]
            cursor.execute(SCORES, [run.pk, pk, run.pk, *judge_ids, low, width, pk, number])
    assert run.scores.count() == len(METRICS) * answers.answers.count()
    return run


def _scales() -> list[tuple[int, float, float]]:
    """Each metric with the low end and the width of its scale."""
    return [
        (definition.pk, definition.read_scale().low, definition.read_scale().width)
        for definition in definitions(METRICS).values()
    ]


def insert_ratings(count: int) -> int:
    """Insert an expert's blind rating of every metric of the first answers, as a uniform sample; return how many
    ratings."""
    with connection.cursor() as cursor:
        sampling_rate = count / Answer.objects.count()
        for pk, low, width in _scales():
            cursor.execute(RATINGS, [pk, True, low, width, pk, False, sampling_rate, pk, count])
    return count * len(METRICS)


def make_user_with_keys(run: Run, role: str, number: int) -> tuple[User, dict[str, str]]:
    """Create a user with a role, an API token and a session."""
    user = User.objects.create_user(f"{role}-{number}")
    RoleGrant.objects.create(user=user, project=run.project, role=role)
    ApiToken.objects.create(
        user=user,
        made_by=user,
        project=run.project,
        name="bench",
        scope="write",
        sha256=hashlib.sha256(f"{role}-token-{number}".encode()).hexdigest(),
        expires_at=timezone.now() + timedelta(days=1),
    )
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return user, {"token": f"{role}-token-{number}", "session": str(session.session_key)}


@transaction.atomic
def main(answers: int, sizes: list[int], ratings: int) -> dict[str, object]:
    """Create all rows in one transaction."""
    specs = [question_spec(n, category=f"category {n % CATEGORIES}") for n in range(1, answers + 1)]
    answer_set = make_answers(make_question_set(specs=specs))
    components = [{"metric": name, "weight": 1 / len(METRICS)} for name in METRICS]
    profile = make_profile(
        answer_set.project, {"name": "bench", "title": {"en": "Bench", "ko": "Bench"}, "parts": components}
    )
    runs = [make_judged_run(answer_set, profile, number) for number in range(RUNS)]
    reviewers = [make_user_with_keys(runs[0], "reviewer", number) for number in range(REVIEWERS)]
    _lead, keys = make_user_with_keys(runs[0], "lead", 0)
    queues = {
        size: make_queue(
            runs[0],
            [user for user, _ in reviewers],
            metrics=RATED_METRICS,
            reviews_needed=2,
            strategy="uniform",
            size=size,
        ).pk
        for size in sizes
    }
    return {
        "queues": queues,
        "people": [reviewer_keys for _, reviewer_keys in reviewers],
        "lead": keys,
        "runs": [run.pk for run in runs],
        "scores": len(METRICS) * RUNS * answers,
        "ratings": insert_ratings(ratings) if ratings else 0,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.bench.review_data", description=__doc__)
    parser.add_argument("answers", type=int)
    parser.add_argument("sizes", type=int, nargs="*")
    parser.add_argument("--rated", type=int, default=0)
    options = parser.parse_args()
    print(json.dumps(main(options.answers, options.sizes, options.rated)))
