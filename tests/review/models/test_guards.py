"""Database guards: each test breaks one rule with raw SQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.checks import Error
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from evaluation.checks import check_guards
from evaluation.models import Answer
from evaluation.storage import guards
from evaluation.worker.health import find_issues
from review.evidence.rating_input import RatingInput
from review.models import Assignment, QueueMember, Rating, Reservation, ReviewItem, ReviewQueue
from review.ratings import leases
from review.ratings.leases import load_assignment, next_assignment
from review.ratings.reveals import finalise, reveal
from review.ratings.submitting import release, submit, undo
from tests.concurrency import WAITS, run_concurrently
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
NOW = "2026-01-01 00:00:00+00"


class World:
    """A queue of three answers, each to be rated by two of three people; Anna holds the first."""

    def __init__(self, **fields: Any) -> None:
        self.run = make_scored_run(make_answer_set(make_question_set(specs=3)), metrics=["correctness"], values=[3])
        settings = {"reviewers": 3, "reviews_needed": 2, "metrics": ["correctness"], "reveal": "always"} | fields
        self.queue = make_queue(self.run, **settings)
        self.reviewers = [member.reviewer for member in self.queue.members.select_related("reviewer").order_by("pk")]
        self.assignment = self.next(0)

    def next(self, person: int) -> Assignment:
        assignment = next_assignment(self.queue, self.reviewers[person])
        assert assignment
        return assignment

    def submit_rating(self) -> Assignment:
        values = {"correctness": RatingInput(value=5.0)}
        return submit(self.assignment, values, idempotency_key="first", by=self.reviewers[0]).assignment

    def lease(self, person: int, slot: int, **fields: Any) -> str:
        """SQL that leases Anna's item to a person."""
        row = {
            "state": "leased",
            "fence": 1,
            "submitted_at": None,
            "item_id": self.assignment.item_id,
            "queue_id": self.queue.pk,
        } | fields
        return insert_sql(
            "review_assignment",
            {"reviewer_id": self.reviewers[person].pk, "slot": slot, "lease_until": NOW, "created_at": NOW} | row,
        )

    def rating(self, **fields: Any) -> str:
        """SQL that rates Anna's item."""
        row = {
            **{"answer_id": self.assignment.item.answer_id, "metric_id": self.queue.metrics.get().metric_id},
            **{
                "assignment_id": self.assignment.pk,
                "reviewer_id": self.reviewers[0].pk,
                "author": "",
                "source": "review",
            },
            **{"phase": "initial", "blind": False, "seq": 1, "value": 3.0, "cannot_judge": False, "reason_code": ""},
            **{"comment": "", "sampling": "", "idempotency_key": "raw", "created_at": NOW},
        }
        return insert_sql("review_rating", row | fields)


def insert_sql(table: str, row: dict[str, Any]) -> str:
    def sql_literal(value: Any) -> str:
        if value is None or isinstance(value, bool):
            return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
        return f"'{value}'" if isinstance(value, str) else str(value)

    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(map(sql_literal, row.values()))})"


def update_sql(assignment: Assignment, changes: str) -> str:
    return f"UPDATE review_assignment SET {changes} WHERE id = {assignment.pk}"


def execute(sql: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


def assert_refused(sql: str, message: str) -> None:
    with pytest.raises(IntegrityError, match=message):
        execute(sql)


@pytest.fixture
def world() -> World:
    return World()


# Overlap


def test_item_takes_no_more_reviewers_than_it_needs(world: World) -> None:
    execute(world.lease(1, 2))
    assert_refused(world.lease(2, 3), "more live assignments")


def test_slot_beyond_the_needed_reviews_is_refused(world: World) -> None:
    assert_refused(world.lease(1, 3), "more live assignments")
    execute(world.lease(1, 2))
    assert_refused(
        f"UPDATE review_assignment SET slot = 3 WHERE item_id = {world.assignment.item_id} AND slot = 2", "more live"
    )


def test_slot_has_one_reviewer(world: World) -> None:
    assert_refused(world.lease(1, 1), "one_reviewer_per_slot|UNIQUE")


def test_expired_lease_is_not_renewed_when_the_item_is_full(world: World) -> None:
    release(world.assignment)
    execute(world.lease(1, 1))
    execute(world.lease(2, 2))
    assert_refused(update_sql(world.assignment, "state = 'leased', fence = 2, slot = 3"), "more live assignments")


def test_an_item_cannot_need_fewer_than_it_has(world: World) -> None:
    execute(world.lease(1, 2))
    assert_refused(
        f"UPDATE review_reviewitem SET reviews_needed = 1 WHERE id = {world.assignment.item_id}", "more live"
    )
    execute(f"UPDATE review_reviewitem SET reviews_needed = 3 WHERE id = {world.assignment.item_id}")
    execute(world.lease(2, 3))


def test_reviewer_has_an_item_once(world: World) -> None:
    assert_refused(world.lease(0, 2), "one_assignment_per_reviewer|UNIQUE")
    release(world.assignment)
    assert_refused(world.lease(0, 2), "one_assignment_per_reviewer|UNIQUE")


@WAITS
@pytest.mark.django_db(transaction=True)
def test_one_of_two_concurrent_leases_is_refused() -> None:
    world = World(reviewers=4, reviews_needed=3)
    release(world.assignment)
    execute(world.lease(1, 3))
    ReviewItem.objects.filter(pk=world.assignment.item_id).update(
        reviews_needed=2
    )  # the third place is held, and counts

    def lease(person: int, slot: int) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(world.lease(person, slot))
            time.sleep(0.3)

    results = run_concurrently(lambda: lease(2, 1), lambda: lease(3, 2))
    assert [type(error) for error in results if error] == [IntegrityError]
    assert world.assignment.item.assignments.filter(state="leased").count() == 2


# Leases


@pytest.mark.parametrize("fields", [{"state": "finished", "submitted_at": NOW}, {"state": "expired"}, {"fence": 2}])
def test_an_assignment_begins_as_a_lease(world: World, fields: dict[str, Any]) -> None:
    assert_refused(world.lease(1, 2, **fields), "begins as a lease")


@pytest.mark.parametrize("initial_state", ["expired", "skipped", "flagged"])
def test_only_a_leased_assignment_can_be_submitted(world: World, initial_state: str) -> None:
    execute(update_sql(world.assignment, f"state = '{initial_state}'"))
    for target_state in ("submitted", "finished"):
        assert_refused(update_sql(world.assignment, f"state = '{target_state}', submitted_at = '{NOW}'"), "live lease")


def test_assignment_states_follow_their_order(world: World) -> None:
    assert_refused(
        update_sql(world.assignment, f"state = 'revealed', submitted_at = '{NOW}', revealed_at = '{NOW}'"),
        "live lease|judge",
    )
    assert_refused(update_sql(world.assignment, "state = 'gone'"), "live lease|rated_when_submitted")
    execute(update_sql(world.assignment, "state = 'flagged'"))
    assert_refused(update_sql(world.assignment, "state = 'leased', fence = 2"), "live lease")


def test_rated_state_requires_submission_and_vice_versa(world: World) -> None:
    assert_refused(update_sql(world.assignment, "state = 'finished'"), "rated_when_submitted")
    assert_refused(update_sql(world.assignment, f"submitted_at = '{NOW}'"), "rated_when_submitted")


def test_fence_rises_with_each_lease_only(world: World) -> None:
    assert_refused(update_sql(world.assignment, "fence = 2"), "fence")
    execute(update_sql(world.assignment, "state = 'expired'"))
    assert_refused(update_sql(world.assignment, "state = 'leased'"), "fence")
    assert_refused(update_sql(world.assignment, "state = 'leased', fence = 3"), "fence")
    execute(update_sql(world.assignment, "state = 'leased', fence = 2"))


def test_an_assignment_keeps_its_item_its_queue_and_its_reviewer(world: World) -> None:
    assert_refused(
        update_sql(world.assignment, f"reviewer_id = {world.reviewers[1].pk}"),
        "keeps its item, its queue and its reviewer",
    )
    other_item = world.queue.items.exclude(pk=world.assignment.item_id).first()
    assert_refused(
        update_sql(world.assignment, f"item_id = {other_item.pk}"), "keeps its item, its queue and its reviewer"
    )
    queue = make_queue(world.run, reviewers=world.reviewers)
    assert_refused(update_sql(world.assignment, f"queue_id = {queue.pk}"), "keeps its item, its queue and its reviewer")


def test_assignment_belongs_to_the_queue_of_its_item(world: World) -> None:
    other_queue = make_queue(world.run, reviewers=world.reviewers)
    assert_refused(world.lease(1, 2, queue_id=other_queue.pk), "only members of an open queue get")


def test_a_lease_takes_one_decision(world: World) -> None:
    world.submit_rating()
    assert_refused(world.rating(idempotency_key="second"), "one_rating_per_turn|UNIQUE")
    assert_refused(world.rating(seq=2, idempotency_key="second"), "one first rating")
    undo(load_assignment(world.assignment.pk), by=world.reviewers[0])
    assert_refused(
        world.rating(seq=2, idempotency_key="second"), "one first rating"
    )  # it is in hand again, not submitted
    execute(update_sql(world.assignment, f"state = 'finished', submitted_at = '{NOW}'"))
    execute(world.rating(seq=2, idempotency_key="second"))


# Blindness


def test_judge_is_revealed_once_and_only_after_the_rating(world: World) -> None:
    execute(update_sql(world.assignment, f"state = 'submitted', submitted_at = '{NOW}'"))
    assert_refused(
        update_sql(world.assignment, f"state = 'revealed', revealed_at = '{NOW}'"), "not shown before a rating"
    )
    execute(world.rating())
    assert_refused(update_sql(world.assignment, f"revealed_at = '{NOW}'"), "revealed_when_shown")
    execute(update_sql(world.assignment, f"state = 'revealed', revealed_at = '{NOW}'"))
    assert_refused(world.rating(seq=2, idempotency_key="after"), "before the judge was seen")
    assert_refused(
        update_sql(world.assignment, "state = 'leased', revealed_at = NULL, submitted_at = NULL, fence = 2"),
        "lease|seen it",
    )
    execute(update_sql(world.assignment, "state = 'finished'"))
    assert_refused(update_sql(world.assignment, "revealed_at = NULL"), "seen it")
    assert_refused(update_sql(world.assignment, "revealed_at = '2026-01-02 00:00:00+00'"), "seen it")
    assert_refused(
        update_sql(world.assignment, "state = 'leased', submitted_at = NULL, fence = 2"),
        "live lease|revealed_when_shown",
    )


def test_no_first_rating_follows_a_reveal_even_on_another_lease(world: World) -> None:
    execute(update_sql(world.assignment, f"state = 'submitted', submitted_at = '{NOW}'"))
    execute(world.rating())
    execute(update_sql(world.assignment, "state = 'leased', submitted_at = NULL, fence = 2"))
    execute(update_sql(world.assignment, f"state = 'submitted', submitted_at = '{NOW}'"))
    execute(update_sql(world.assignment, f"state = 'revealed', revealed_at = '{NOW}'"))
    execute(update_sql(world.assignment, "state = 'finished'"))
    assert_refused(world.rating(seq=2, idempotency_key="after"), "before the judge was seen")


@pytest.mark.parametrize("scope", ["answer", "run"])
def test_rating_is_not_blind_after_the_judge_was_seen(world: World, scope: str) -> None:
    execute(update_sql(world.assignment, f"state = 'finished', submitted_at = '{NOW}'"))
    object_id = {"answer": world.assignment.item.answer_id, "run": world.run.pk}[scope]
    row = {"user_id": world.reviewers[0].pk, "scope": scope, "object_id": object_id, "via": "test", "created_at": NOW}
    execute(insert_sql("review_exposure", row))
    assert_refused(world.rating(blind=True), "not blind")
    execute(world.rating(blind=False))


def test_rating_stays_blind_after_exposures_of_others_or_other_answers(world: World) -> None:
    execute(update_sql(world.assignment, f"state = 'finished', submitted_at = '{NOW}'"))
    row = {"scope": "answer", "via": "test", "created_at": NOW}
    execute(
        insert_sql(
            "review_exposure", row | {"user_id": world.reviewers[1].pk, "object_id": world.assignment.item.answer_id}
        )
    )
    other_answer = Answer.objects.exclude(pk=world.assignment.item.answer_id).first()
    execute(insert_sql("review_exposure", row | {"user_id": world.reviewers[0].pk, "object_id": other_answer.pk}))
    execute(world.rating(blind=True))


def test_assisted_rating_is_never_blind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "record_exposure", lambda *_: None)
    world = World(mode="assisted")
    execute(update_sql(world.assignment, f"state = 'finished', submitted_at = '{NOW}'"))
    assert_refused(world.rating(blind=True), "not blind")


def test_open_queue_keeps_its_mode_project_and_metrics(world: World) -> None:
    assert_refused(
        f"UPDATE review_reviewqueue SET mode = 'assisted' WHERE id = {world.queue.pk}", "stays blind or assisted"
    )
    project = make_project()
    assert_refused(
        f"UPDATE review_reviewqueue SET project_id = {project.pk} WHERE id = {world.queue.pk}", "keeps its project"
    )
    queue_metric = world.queue.metrics.get()
    assert_refused(f"UPDATE review_queuemetric SET position = 4 WHERE id = {queue_metric.pk}", "never changes")
    extra_metric = make_scored_run(metrics=["faithfulness"]).scores.first().metric
    row = {"queue_id": world.queue.pk, "metric_id": extra_metric.pk, "position": 2, "created_at": NOW}
    assert_refused(insert_sql("review_queuemetric", row), "asks for nothing else")


# Scope


def test_only_members_get_an_item(world: World) -> None:
    world.reviewers.append(make_user("reviewer", world.queue.project))
    assert_refused(world.lease(3, 2), "only members of an open queue get")


def test_reserved_item_is_leased_to_its_reviewers_only(world: World) -> None:
    ReviewItem.objects.filter(pk=world.assignment.item_id).update(reserved=True)
    assert_refused(world.lease(1, 2), "only those kept for them")
    Reservation.objects.create(item=world.assignment.item, reviewer=world.reviewers[1])
    execute(world.lease(1, 2))
    execute(update_sql(world.assignment, "state = 'expired'"))
    assert_refused(update_sql(world.assignment, "state = 'leased', fence = 2"), "only those kept for them")


def test_closed_queue_and_done_item_are_not_leased(world: World) -> None:
    ReviewItem.objects.filter(pk=world.assignment.item_id).update(state="done")
    assert_refused(world.lease(1, 2), "given to nobody else")
    ReviewItem.objects.filter(pk=world.assignment.item_id).update(state="open")
    ReviewQueue.objects.filter(pk=world.queue.pk).update(state="closed")
    assert_refused(world.lease(1, 2), "members of an open queue")
    execute(update_sql(world.assignment, "state = 'expired'"))
    assert_refused(update_sql(world.assignment, "state = 'leased', fence = 2"), "open queue")


def test_members_have_a_role_in_the_project(world: World) -> None:
    row = {"queue_id": world.queue.pk, "offset": 0, "served": 0, "created_at": NOW}
    quoted = {f'"{name}"': value for name, value in row.items()}
    assert_refused(
        insert_sql("review_queuemember", quoted | {"reviewer_id": make_user("reviewer").pk}), "role in its project"
    )
    execute(insert_sql("review_queuemember", quoted | {"reviewer_id": make_user(is_superuser=True).pk}))


def test_items_are_reserved_for_members(world: World) -> None:
    row = {"item_id": world.assignment.item_id, "reviewer_id": make_user().pk, "after": 0, "created_at": NOW}
    assert_refused(insert_sql("review_reservation", row), "kept for members")


def test_an_item_is_an_answer_of_its_run_in_the_queues_project(world: World) -> None:
    other_run = make_scored_run(metrics=["correctness"])
    row = {"queue_id": world.queue.pk, "occasion": 1, "reviews_needed": 1, "reserved": False, "shuffle_key": 1}
    row |= {"state": "open", "created_at": NOW}
    foreign_answer = other_run.answer_set.answers.first()
    for run, answer in (
        (world.run, foreign_answer),
        (other_run, foreign_answer),
        (other_run, world.assignment.item.answer),
    ):
        assert_refused(
            insert_sql("review_reviewitem", row | {"run_id": run.pk, "answer_id": answer.pk}), "answer of its run"
        )
    assert_refused(
        f"UPDATE review_reviewitem SET run_id = {other_run.pk} WHERE id = {world.assignment.item_id}", "keeps its queue"
    )


def test_rating_requires_the_lease_the_answer_and_a_metric_of_the_queue(world: World) -> None:
    execute(update_sql(world.assignment, f"state = 'finished', submitted_at = '{NOW}'"))
    other_answer = Answer.objects.exclude(pk=world.assignment.item.answer_id).first()
    extra_metric = make_scored_run(metrics=["faithfulness"]).scores.first().metric
    invalid_fields = [
        {"reviewer_id": world.reviewers[1].pk},
        {"answer_id": other_answer.pk},
        {"metric_id": extra_metric.pk},
    ]
    for fields in invalid_fields:
        assert_refused(world.rating(**fields), "by who holds the item")
    execute(world.rating())


def test_final_rating_requires_a_first_rating(world: World) -> None:
    execute(update_sql(world.assignment, f"state = 'finished', submitted_at = '{NOW}'"))
    assert_refused(world.rating(phase="final", idempotency_key="final"), "follows a first one")
    execute(world.rating())
    execute(world.rating(phase="final", idempotency_key="final"))


def test_final_rating_requires_a_finished_assignment(world: World) -> None:
    execute(update_sql(world.assignment, f"state = 'submitted', submitted_at = '{NOW}'"))
    execute(world.rating())
    assert_refused(world.rating(phase="final", idempotency_key="final"), "follows a first one")


def test_guards_allow_a_normal_review(world: World) -> None:
    assignment = world.submit_rating()
    assert reveal(assignment)
    finalise(load_assignment(assignment.pk), by=world.reviewers[0])
    assert Rating.objects.filter(assignment=assignment).count() == 2
    assert QueueMember.objects.get(queue=world.queue, reviewer=world.reviewers[0]).served == 1


# The guards themselves


def test_every_guard_is_installed_under_its_own_name() -> None:
    assert guards.missing_guards() == []
    assert len({guard.name for guard in guards.guards()}) == len(guards.guards()) == len(GUARDED)


def test_missing_guard_is_reported_by_check_and_health() -> None:
    on = " ON review_assignment" if connection.vendor == "postgresql" else ""
    execute(f"DROP TRIGGER guard_overlap_of_new{on}")
    issues = check_guards(databases=["default"])
    assert [type(message) for message in issues] == [Error]
    assert "overlap_of_new" in issues[0].msg
    assert "guard overlap_of_new is missing" in [issues.text for issues in find_issues()]
    guards.install()
    assert check_guards(databases=["default"]) == []


@pytest.fixture
def rebuild_table() -> Iterator[Callable[[], None]]:
    """Rebuild a table that guards of other tables name, as a migration does."""

    def rebuild() -> None:
        with connection.schema_editor() as editor:
            field = ReviewItem._meta.get_field("state")
            wider = field.clone()
            wider.max_length = 11
            wider.set_attributes_from_name("state")
            editor.alter_field(ReviewItem, field, wider)
            editor.alter_field(ReviewItem, wider, field)

    yield rebuild
    guards.install()


@pytest.mark.django_db(transaction=True)
def test_table_is_rebuilt_without_guards_and_migrate_restores_them(rebuild_table: Callable[[], None]) -> None:
    guards.remove()
    rebuild_table()
    assert "guard overlap_of_new is missing" in [issue.text for issue in find_issues()]
    call_command("migrate", verbosity=0)
    assert guards.missing_guards() == []
    world = World()
    execute(world.lease(1, 2))
    assert_refused(world.lease(2, 3), "more live assignments")


@pytest.mark.django_db(transaction=True)
def test_migrations_run_without_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    trigger_names: list[list[str]] = []

    def is_migrated(database: object) -> bool:
        return len(trigger_names) > 0

    monkeypatch.setattr(guards, "_is_migrated", is_migrated)
    with guards.suspended(connection):
        trigger_names.append([name for name, _ in guards._installed_triggers(connection)])
        assert guards.missing_guards() == []
    assert trigger_names == [[]]
    assert guards.missing_guards() == []


GUARDED = {
    *(
        "lease_begins",
        "lease_is_in_scope",
        "lease_again_is_in_scope",
        "lease_of_an_open_item",
        "overlap_of_new",
        "overlap_of_renewed",
    ),
    *("assignment_stays", "assignment_moves", "fence_counts_leases", "reveal_is_for_good", "reveal_after_rating"),
    *("queue_stays", "queue_asks_the_same", "queue_asks_no_more", "member_of_project", "item_of_project", "item_stays"),
    *("overlap_of_item", "kept_for_member", "rating_is_of_the_item", "rating_on_a_lease", "rating_after_the_first"),
    "rating_is_blind",
}
