"""Changes by SQL to what figures rest on are found by ``verify_audit``, before and after the rows are sealed."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from evaluation.accounts import audit, erasure
from evaluation.core.roles import Role
from evaluation.datasets.importing import import_question_set
from evaluation.formats.streaming import MemorySource, read_question_set
from evaluation.models import Answer, Attempt, AuditEvent, Question, Reply, Score, WorkUnit
from review.decisions.overrides import override
from review.evidence.answers import record_exposure
from review.evidence.rating_input import RatingInput
from review.models import FrameMember, Rating, ReviewQueue
from review.ratings.leases import next_assignment
from review.ratings.submitting import flag, submit, undo
from tests.factories import make_project, make_queue, make_scored_run, make_units, make_user
from tests.tampering import execute, flaw_codes, flaws_of_changes

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
GOOD = {"correctness": RatingInput(3), "faithfulness": RatingInput(3)}


@pytest.fixture
def queue() -> ReviewQueue:
    """A queue with a rating, a flag, an exposure, an override and a reply of a judge; nothing is sealed."""
    run = make_scored_run()
    queue = make_queue(run, strategy="uniform", size=4)
    reviewer = queue.members.get().reviewer
    first = next_assignment(queue, reviewer)
    assert first is not None
    submit(first, GOOD, idempotency_key="k", by=reviewer, comment="clear", suggestion="my answer")
    second = next_assignment(queue, reviewer)
    assert second is not None
    flag(second, "unsafe", "look at it")
    record_exposure(reviewer, second.item.answer, "page")
    score = Score.objects.filter(run=run).order_by("pk").first()
    assert score is not None
    override(score.answer, score.metric, value=2, reason="wrong", by=make_user(Role.LEAD, run.project))
    (unit,) = make_units(run, 1)
    attempt = Attempt.objects.create(unit=unit, number=1, fence=1, round=0)
    Reply.objects.create(attempt=attempt, outcome="ok", raw="{}", request_hash="h", cost=1)
    return queue


def first(table: str, change: str, condition: str = "") -> str:
    where = f"WHERE {condition}" if condition else ""
    return f"UPDATE {table} SET {change} WHERE id = (SELECT MIN(id) FROM {table} {where})"


#: Statements that each change one row.
TAMPERINGS = {
    "text of a question": first("evaluation_question", "text = 'another'"),
    "reference of a question": first("evaluation_question", "spec = '{}'"),
    "text of an answer": first("evaluation_answer", "text = 'another'"),
    "text of an answer and its hash": first("evaluation_answer", "text = 'another', text_hash = 'another'"),
    "retrieved passage": first("evaluation_context", "text = 'another'"),
    "k of an answer set": first("evaluation_answerset", "k = 9"),
    "configuration of a run": first("evaluation_run", "config = '{}'"),
    "answers of a run": first("evaluation_run", "config_hash = 'another'"),
    "profile of a run": first("evaluation_profileversion", "spec = '{}'"),
    "judge prompt": first("evaluation_rubricversion", "spec = '{}'"),
    "judge of a run": first("evaluation_runjudge", "repeat_count = 3"),
    "text, erasable: reply": first("evaluation_reply", "raw = 'another'"),
    "cost of a reply": first("evaluation_reply", "cost = 2"),
    "deleted reply": "DELETE FROM evaluation_reply",
    "score": first("evaluation_score", "value = 4"),
    "reason of a score": first("evaluation_score", "reason = 'another'"),
    "deleted exposure": "DELETE FROM review_exposure",
    "exposure of another answer": first("review_exposure", "object_id = 0"),
    "sampling probability": first("review_framemember", "probability = 0.9"),
    "sampled member": first("review_framemember", "sampled = NOT sampled"),
    "seed of a draw": first("review_draw", "seed = 77"),
    "item event": first("review_itemevent", "kind = 'bad_question'"),
    "deleted item event": "DELETE FROM review_itemevent",
    "text, erasable: comment of an item event": first("review_itemevent", "comment = 'another'"),
    "text, erasable: comment of a rating": first("review_rating", "comment = 'another'"),
    "blindness of a rating": first("review_rating", "blind = NOT blind"),
    "text, erasable: suggested answer": first("review_suggestedanswer", "text = 'another'"),
    "value of an override": first("review_override", "value = 3"),
    "reviewer of an assignment": first("review_assignment", "reviewer_id = (SELECT MAX(id) FROM evaluation_user)"),
    "blindness of a queue": first("review_reviewqueue", "hide_system = NOT hide_system"),
    "metric of a queue": first("review_queuemetric", "rubric_version_id = NULL"),
}


@pytest.mark.slow
def test_changes_of_sealed_rows_are_found(queue: ReviewQueue) -> None:
    audit.seal_rows()
    codes = {name: "texts_differ" if name.startswith("text, erasable") else "rows_differ" for name in TAMPERINGS}
    assert flaws_of_changes(TAMPERINGS) == {name: {code} for name, code in codes.items()}
    execute(TAMPERINGS["text of an answer and its hash"])
    assert flaw_codes() == {"rows_differ"}


#: Changes that hashes or other tables show before any seal.
UNSEALED = (
    "text of a question",
    "reference of a question",
    "text of an answer",
    "configuration of a run",
    "answers of a run",
)


def test_changes_that_contradict_a_hash_are_found_before_sealing(queue: ReviewQueue) -> None:
    changes = {name: TAMPERINGS[name] for name in UNSEALED}
    assert flaws_of_changes(changes) == {name: {"row_unsupported"} for name in UNSEALED}
    execute(TAMPERINGS["text of an answer"])
    audit.seal_rows()
    assert flaw_codes() == {"row_unsupported"}


def copied(row: Any, **changes: Any) -> str:
    """Statement that inserts a copy of a row."""
    table, columns = row._meta.db_table, [field.column for field in row._meta.concrete_fields if field.name != "id"]
    quoted = [f'"{column}"' for column in columns]
    values = [changes.get(column, quoted_column) for column, quoted_column in zip(columns, quoted, strict=True)]
    return f"INSERT INTO {table} ({', '.join(quoted)}) SELECT {', '.join(values)} FROM {table} WHERE id = {row.pk}"


def test_added_rating_is_found_before_and_after_sealing(queue: ReviewQueue) -> None:
    rating = Rating.objects.order_by("pk").first()
    assert rating is not None
    execute(copied(rating, seq="2", idempotency_key="'other'", value="1"))
    assert flaw_codes() == {"row_unsupported"}
    audit.seal_rows()
    assert flaw_codes() == {"row_unsupported"}


def test_rating_moved_to_another_answer_is_found_before_sealing(queue: ReviewQueue) -> None:
    execute(first("review_rating", "answer_id = (SELECT MAX(a.id) FROM evaluation_answer a WHERE a.id <> answer_id)"))
    assert flaw_codes() == {"row_unsupported"}


def test_undone_and_repeated_ratings_are_supported(queue: ReviewQueue) -> None:
    assignment = Rating.objects.order_by("pk")[0].assignment
    assert assignment is not None
    reviewer = assignment.reviewer
    third = next_assignment(queue, reviewer)
    assert third is not None
    submit(third, GOOD, idempotency_key="k3", by=reviewer)
    undo(third, by=reviewer)
    assert flaw_codes() == set()
    submit(third, GOOD, idempotency_key="k4", by=reviewer)
    audit.seal_rows()
    assert flaw_codes() == set()


def test_added_member_of_a_frame_is_found_before_and_after_sealing(queue: ReviewQueue) -> None:
    other = make_scored_run()
    member = FrameMember.objects.order_by("pk").first()
    answer = Answer.objects.filter(answer_set=other.answer_set).first()
    assert member is not None
    assert answer is not None
    execute(copied(member, answer_id=str(answer.pk)))
    assert flaw_codes() == {"row_unsupported"}
    audit.seal_rows()
    assert flaw_codes() == {"row_unsupported"}


def test_added_score_of_a_unit_is_found(queue: ReviewQueue) -> None:
    unit, score = WorkUnit.objects.get(), Score.objects.order_by("pk")[0]
    execute(copied(score, unit_id=str(unit.pk), origin="'another'"))
    assert flaw_codes() == {"row_unsupported"}


def test_added_question_is_found_long_after_its_set_was_sealed() -> None:
    content = json.dumps([{"id": f"q{n}", "question": f"Question {n}?", "category": "c"} for n in range(3)]).encode()
    file = read_question_set(MemorySource(content), "set.json")
    import_question_set(make_project(), "set", file, by=None)
    audit.seal_rows()
    assert flaw_codes() == set()
    execute(copied(Question.objects.order_by("pk")[0], external_id="'q9'", position="9"))
    assert flaw_codes() == {"row_unsupported"}
    audit.seal_rows()
    assert flaw_codes() == {"row_unsupported"}


def test_erasure_reseals_intact_texts_only(queue: ReviewQueue) -> None:
    audit.seal_rows()
    reviewer = queue.members.get().reviewer
    erasure.erase_person(reviewer, by=None)
    assert flaw_codes() == set()
    assert AuditEvent.objects.filter(verb=audit.TEXTS_ERASED).count() == 3
    execute(first("evaluation_reply", "raw = 'another'"))
    erasure.purge_replies(timezone.now() + timedelta(days=1), by=None)
    assert flaw_codes() == {"texts_differ"}


def test_purged_calls_leave_the_seals_intact(queue: ReviewQueue) -> None:
    attempt = Attempt.objects.create(unit=WorkUnit.objects.get(), number=2, fence=1, round=0)
    Reply.objects.create(attempt=attempt, outcome="not_sent", cost=0)
    audit.seal_rows()
    assert erasure.purge_unsent(timezone.now() + timedelta(days=1), by=None) == 1
    assert erasure.purge_replies(timezone.now() + timedelta(days=1), by=None) == 1
    assert flaw_codes() == set()
