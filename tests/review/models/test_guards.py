"""What the database refuses by itself: each rule is broken by raw SQL, and by nothing else."""

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
from tests.concurrency import WAITS, together
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
NOW = "2026-01-01 00:00:00+00"


class World:
    """A queue of three answers that two of three people rate each; Anna holds the first."""

    def __init__(self, **fields: Any) -> None:
        self.run = make_scored_run(make_answer_set(make_question_set(specs=3)), metrics=["correctness"], values=[3])
        made = {"reviewers": 3, "reviews_needed": 2, "metrics": ["correctness"], "reveal": "always"} | fields
        self.queue = make_queue(self.run, **made)
        self.people = [one.reviewer for one in self.queue.members.select_related("reviewer").order_by("pk")]
        self.held = self.next(0)

    def next(self, person: int) -> Assignment:
        held = next_assignment(self.queue, self.people[person])
        assert held
        return held

    def rated(self) -> Assignment:
        values = {"correctness": RatingInput(value=5.0)}
        return submit(self.held, values, idempotency_key="first", by=self.people[0]).assignment

    def lease(self, person: int, slot: int, **fields: Any) -> str:
        """SQL that leases Anna's item to a person."""
        row = {
            "state": "leased",
            "fence": 1,
            "submitted_at": None,
            "item_id": self.held.item_id,
            "queue_id": self.queue.pk,
        } | fields
        return insert(
            "review_assignment",
            {"reviewer_id": self.people[person].pk, "slot": slot, "lease_until": NOW, "created_at": NOW} | row,
        )

    def rating(self, **fields: Any) -> str:
        """SQL that rates Anna's item."""
        row = {
            **{"answer_id": self.held.item.answer_id, "metric_id": self.queue.metrics.get().metric_id},
            **{"assignment_id": self.held.pk, "reviewer_id": self.people[0].pk, "author": "", "source": "review"},
            **{"phase": "initial", "blind": False, "seq": 1, "value": 3.0, "cannot_judge": False, "reason_code": ""},
            **{"comment": "", "sampling": "", "idempotency_key": "raw", "created_at": NOW},
        }
        return insert("review_rating", row | fields)


def insert(table: str, row: dict[str, Any]) -> str:
    def said(value: Any) -> str:
        if value is None or isinstance(value, bool):
            return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
        return f"'{value}'" if isinstance(value, str) else str(value)

    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(map(said, row.values()))})"


def move(assignment: Assignment, what: str) -> str:
    return f"UPDATE review_assignment SET {what} WHERE id = {assignment.pk}"


def execute(sql: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


def refused(sql: str, says: str) -> None:
    with pytest.raises(IntegrityError, match=says):
        execute(sql)


@pytest.fixture
def world() -> World:
    return World()


# Overlap


def test_an_item_takes_no_more_people_than_it_needs(world: World) -> None:
    execute(world.lease(1, 2))
    refused(world.lease(2, 3), "more live assignments")


def test_a_place_beyond_what_is_needed_does_not_exist(world: World) -> None:
    refused(world.lease(1, 3), "more live assignments")
    execute(world.lease(1, 2))
    refused(f"UPDATE review_assignment SET slot = 3 WHERE item_id = {world.held.item_id} AND slot = 2", "more live")


def test_a_place_is_one_persons(world: World) -> None:
    refused(world.lease(1, 1), "one_reviewer_per_slot|UNIQUE")


def test_a_lost_lease_is_not_taken_up_beside_two_others(world: World) -> None:
    release(world.held)
    execute(world.lease(1, 1))
    execute(world.lease(2, 2))
    refused(move(world.held, "state = 'leased', fence = 2, slot = 3"), "more live assignments")


def test_an_item_cannot_need_fewer_than_it_has(world: World) -> None:
    execute(world.lease(1, 2))
    refused(f"UPDATE review_reviewitem SET reviews_needed = 1 WHERE id = {world.held.item_id}", "more live")
    execute(f"UPDATE review_reviewitem SET reviews_needed = 3 WHERE id = {world.held.item_id}")
    execute(world.lease(2, 3))


def test_a_person_has_an_item_once(world: World) -> None:
    refused(world.lease(0, 2), "one_assignment_per_reviewer|UNIQUE")
    release(world.held)
    refused(world.lease(0, 2), "one_assignment_per_reviewer|UNIQUE")


@WAITS
@pytest.mark.django_db(transaction=True)
def test_of_two_at_the_same_moment_one_is_too_many() -> None:
    world = World(reviewers=4, reviews_needed=3)
    release(world.held)
    execute(world.lease(1, 3))
    ReviewItem.objects.filter(pk=world.held.item_id).update(reviews_needed=2)  # the third place is held, and counts

    def lease(person: int, slot: int) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(world.lease(person, slot))
            time.sleep(0.3)

    found = together(lambda: lease(2, 1), lambda: lease(3, 2))
    assert [type(one) for one in found if one] == [IntegrityError]
    assert world.held.item.assignments.filter(state="leased").count() == 2


# Leases


@pytest.mark.parametrize("fields", [{"state": "finished", "submitted_at": NOW}, {"state": "expired"}, {"fence": 2}])
def test_an_assignment_begins_as_a_lease(world: World, fields: dict[str, Any]) -> None:
    refused(world.lease(1, 2, **fields), "begins as a lease")


@pytest.mark.parametrize("left", ["expired", "skipped", "flagged"])
def test_what_is_not_leased_cannot_be_submitted(world: World, left: str) -> None:
    execute(move(world.held, f"state = '{left}'"))
    for into in ("submitted", "finished"):
        refused(move(world.held, f"state = '{into}', submitted_at = '{NOW}'"), "live lease")


def test_the_states_come_one_after_the_other(world: World) -> None:
    refused(move(world.held, f"state = 'revealed', submitted_at = '{NOW}', revealed_at = '{NOW}'"), "live lease|judge")
    refused(move(world.held, "state = 'gone'"), "live lease|rated_when_submitted")
    execute(move(world.held, "state = 'flagged'"))
    refused(move(world.held, "state = 'leased', fence = 2"), "live lease")


def test_rated_means_submitted_and_the_other_way_round(world: World) -> None:
    refused(move(world.held, "state = 'finished'"), "rated_when_submitted")
    refused(move(world.held, f"submitted_at = '{NOW}'"), "rated_when_submitted")


def test_the_fence_rises_with_each_lease_and_never_else(world: World) -> None:
    refused(move(world.held, "fence = 2"), "fence")
    execute(move(world.held, "state = 'expired'"))
    refused(move(world.held, "state = 'leased'"), "fence")
    refused(move(world.held, "state = 'leased', fence = 3"), "fence")
    execute(move(world.held, "state = 'leased', fence = 2"))


def test_an_assignment_keeps_its_item_its_queue_and_its_reviewer(world: World) -> None:
    refused(move(world.held, f"reviewer_id = {world.people[1].pk}"), "keeps its item, its queue and its reviewer")
    other = world.queue.items.exclude(pk=world.held.item_id).first()
    refused(move(world.held, f"item_id = {other.pk}"), "keeps its item, its queue and its reviewer")
    queue = make_queue(world.run, reviewers=world.people)
    refused(move(world.held, f"queue_id = {queue.pk}"), "keeps its item, its queue and its reviewer")


def test_an_assignment_is_of_its_items_queue(world: World) -> None:
    other = make_queue(world.run, reviewers=world.people)
    refused(world.lease(1, 2, queue_id=other.pk), "only members of an open queue get")


def test_a_lease_takes_one_decision(world: World) -> None:
    world.rated()
    refused(world.rating(idempotency_key="second"), "one_rating_per_turn|UNIQUE")
    refused(world.rating(seq=2, idempotency_key="second"), "one first rating")
    undo(load_assignment(world.held.pk), by=world.people[0])
    refused(world.rating(seq=2, idempotency_key="second"), "one first rating")  # it is in hand again, not submitted
    execute(move(world.held, f"state = 'finished', submitted_at = '{NOW}'"))
    execute(world.rating(seq=2, idempotency_key="second"))


# Blindness


def test_the_judge_is_shown_after_the_rating_once_and_for_all(world: World) -> None:
    execute(move(world.held, f"state = 'submitted', submitted_at = '{NOW}'"))
    refused(move(world.held, f"state = 'revealed', revealed_at = '{NOW}'"), "not shown before a rating")
    execute(world.rating())
    refused(move(world.held, f"revealed_at = '{NOW}'"), "revealed_when_shown")
    execute(move(world.held, f"state = 'revealed', revealed_at = '{NOW}'"))
    refused(world.rating(seq=2, idempotency_key="after"), "before the judge was seen")
    refused(move(world.held, "state = 'leased', revealed_at = NULL, submitted_at = NULL, fence = 2"), "lease|seen it")
    execute(move(world.held, "state = 'finished'"))
    refused(move(world.held, "revealed_at = NULL"), "seen it")
    refused(move(world.held, "revealed_at = '2026-01-02 00:00:00+00'"), "seen it")
    refused(move(world.held, "state = 'leased', submitted_at = NULL, fence = 2"), "live lease|revealed_when_shown")


def test_no_first_rating_follows_a_look_at_the_judge_even_on_a_lease_that_has_none(world: World) -> None:
    execute(move(world.held, f"state = 'submitted', submitted_at = '{NOW}'"))
    execute(world.rating())
    execute(move(world.held, "state = 'leased', submitted_at = NULL, fence = 2"))
    execute(move(world.held, f"state = 'submitted', submitted_at = '{NOW}'"))
    execute(move(world.held, f"state = 'revealed', revealed_at = '{NOW}'"))
    execute(move(world.held, "state = 'finished'"))
    refused(world.rating(seq=2, idempotency_key="after"), "before the judge was seen")


@pytest.mark.parametrize("scope", ["answer", "run"])
def test_who_has_seen_the_judge_does_not_rate_blind(world: World, scope: str) -> None:
    execute(move(world.held, f"state = 'finished', submitted_at = '{NOW}'"))
    seen = {"answer": world.held.item.answer_id, "run": world.run.pk}[scope]
    row = {"user_id": world.people[0].pk, "scope": scope, "object_id": seen, "via": "test", "created_at": NOW}
    execute(insert("review_exposure", row))
    refused(world.rating(blind=True), "not blind")
    execute(world.rating(blind=False))


def test_what_others_saw_and_other_answers_leave_a_rating_blind(world: World) -> None:
    execute(move(world.held, f"state = 'finished', submitted_at = '{NOW}'"))
    row = {"scope": "answer", "via": "test", "created_at": NOW}
    execute(insert("review_exposure", row | {"user_id": world.people[1].pk, "object_id": world.held.item.answer_id}))
    other = Answer.objects.exclude(pk=world.held.item.answer_id).first()
    execute(insert("review_exposure", row | {"user_id": world.people[0].pk, "object_id": other.pk}))
    execute(world.rating(blind=True))


def test_an_assisted_rating_is_never_blind_whatever_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "record_item_exposure", lambda *_: None)
    world = World(mode="assisted")
    execute(move(world.held, f"state = 'finished', submitted_at = '{NOW}'"))
    refused(world.rating(blind=True), "not blind")


def test_a_queue_under_way_stays_blind_and_asks_for_the_same(world: World) -> None:
    refused(f"UPDATE review_reviewqueue SET mode = 'assisted' WHERE id = {world.queue.pk}", "stays blind or assisted")
    project = make_project()
    refused(f"UPDATE review_reviewqueue SET project_id = {project.pk} WHERE id = {world.queue.pk}", "keeps its project")
    asked = world.queue.metrics.get()
    refused(f"UPDATE review_queuemetric SET position = 4 WHERE id = {asked.pk}", "never changes")
    more = make_scored_run(metrics=["faithfulness"]).scores.first().metric
    row = {"queue_id": world.queue.pk, "metric_id": more.pk, "position": 2, "created_at": NOW}
    refused(insert("review_queuemetric", row), "asks for nothing else")


# Scope


def test_only_members_get_an_item(world: World) -> None:
    world.people.append(make_user("reviewer", world.queue.project))
    refused(world.lease(3, 2), "only members of an open queue get")


def test_an_item_that_is_kept_for_others_is_not_leased(world: World) -> None:
    ReviewItem.objects.filter(pk=world.held.item_id).update(reserved=True)
    refused(world.lease(1, 2), "only those kept for them")
    Reservation.objects.create(item=world.held.item, reviewer=world.people[1])
    execute(world.lease(1, 2))
    execute(move(world.held, "state = 'expired'"))
    refused(move(world.held, "state = 'leased', fence = 2"), "only those kept for them")


def test_a_closed_queue_and_an_item_that_is_done_are_not_leased(world: World) -> None:
    ReviewItem.objects.filter(pk=world.held.item_id).update(state="done")
    refused(world.lease(1, 2), "given to nobody else")
    ReviewItem.objects.filter(pk=world.held.item_id).update(state="open")
    ReviewQueue.objects.filter(pk=world.queue.pk).update(state="closed")
    refused(world.lease(1, 2), "members of an open queue")
    execute(move(world.held, "state = 'expired'"))
    refused(move(world.held, "state = 'leased', fence = 2"), "open queue")


def test_members_have_a_role_in_the_project(world: World) -> None:
    row = {"queue_id": world.queue.pk, "offset": 0, "served": 0, "created_at": NOW}
    quoted = {f'"{name}"': value for name, value in row.items()}
    refused(insert("review_queuemember", quoted | {"reviewer_id": make_user("reviewer").pk}), "role in its project")
    execute(insert("review_queuemember", quoted | {"reviewer_id": make_user(is_superuser=True).pk}))


def test_items_are_kept_for_members(world: World) -> None:
    row = {"item_id": world.held.item_id, "reviewer_id": make_user().pk, "after": 0, "created_at": NOW}
    refused(insert("review_reservation", row), "kept for members")


def test_an_item_is_an_answer_of_its_run_in_the_queues_project(world: World) -> None:
    elsewhere = make_scored_run(metrics=["correctness"])
    row = {"queue_id": world.queue.pk, "occasion": 1, "reviews_needed": 1, "reserved": False, "shuffle_key": 1}
    row |= {"state": "open", "created_at": NOW}
    strange = elsewhere.answer_set.answers.first()
    for run, answer in ((world.run, strange), (elsewhere, strange), (elsewhere, world.held.item.answer)):
        refused(insert("review_reviewitem", row | {"run_id": run.pk, "answer_id": answer.pk}), "answer of its run")
    refused(f"UPDATE review_reviewitem SET run_id = {elsewhere.pk} WHERE id = {world.held.item_id}", "keeps its queue")


def test_a_rating_is_by_who_holds_the_item_of_its_answer_for_a_metric_of_the_queue(world: World) -> None:
    execute(move(world.held, f"state = 'finished', submitted_at = '{NOW}'"))
    other = Answer.objects.exclude(pk=world.held.item.answer_id).first()
    more = make_scored_run(metrics=["faithfulness"]).scores.first().metric
    strange = [{"reviewer_id": world.people[1].pk}, {"answer_id": other.pk}, {"metric_id": more.pk}]
    for fields in strange:
        refused(world.rating(**fields), "by who holds the item")
    execute(world.rating())


def test_a_final_rating_follows_a_first_one(world: World) -> None:
    execute(move(world.held, f"state = 'finished', submitted_at = '{NOW}'"))
    refused(world.rating(phase="final", idempotency_key="final"), "follows a first one")
    execute(world.rating())
    execute(world.rating(phase="final", idempotency_key="final"))


def test_a_final_rating_ends_the_item(world: World) -> None:
    execute(move(world.held, f"state = 'submitted', submitted_at = '{NOW}'"))
    execute(world.rating())
    refused(world.rating(phase="final", idempotency_key="final"), "follows a first one")


def test_nothing_of_it_stands_in_the_way_of_reviewing(world: World) -> None:
    rated = world.rated()
    assert reveal(rated)
    finalise(load_assignment(rated.pk), by=world.people[0])
    assert Rating.objects.filter(assignment=rated).count() == 2
    assert QueueMember.objects.get(queue=world.queue, reviewer=world.people[0]).served == 1


# The guards themselves


def test_every_guard_is_there_and_each_has_its_own_name() -> None:
    assert guards.missing_guards() == []
    assert len({guard.name for guard in guards.guards()}) == len(guards.guards()) == len(GUARDED)


def test_a_lost_guard_is_told_by_check_and_health_until_it_is_back() -> None:
    on = " ON review_assignment" if connection.vendor == "postgresql" else ""
    execute(f"DROP TRIGGER guard_overlap_of_new{on}")
    found = check_guards(databases=["default"])
    assert [type(one) for one in found] == [Error]
    assert "overlap_of_new" in found[0].msg
    assert "guard overlap_of_new is missing" in [found.text for found in find_issues()]
    guards.install()
    assert check_guards(databases=["default"]) == []


@pytest.fixture
def rebuilt() -> Iterator[Callable[[], None]]:
    """Rebuilds a table that guards of other tables name, as a migration does."""

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
def test_tables_are_rebuilt_while_guards_are_away_and_they_come_back(rebuilt: Callable[[], None]) -> None:
    guards.remove()
    rebuilt()
    assert "guard overlap_of_new is missing" in [found.text for found in find_issues()]
    call_command("migrate", verbosity=0)
    assert guards.missing_guards() == []
    world = World()
    execute(world.lease(1, 2))
    refused(world.lease(2, 3), "more live assignments")


@pytest.mark.django_db(transaction=True)
def test_migrations_meet_no_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def left(database: object) -> bool:
        return len(seen) > 0

    monkeypatch.setattr(guards, "_is_migrated", left)
    with guards.suspended(connection):
        seen.append([name for name, _ in guards._installed_triggers(connection)])
        assert guards.missing_guards() == []
    assert seen == [[]]
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
