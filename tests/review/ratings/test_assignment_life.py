"""Property test: overlap, leases and blindness hold for any order of actions."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from evaluation.core.errors import DomainError
from review.evidence.answers import record_exposure
from review.evidence.rating_input import RatingInput, RatingUpdate
from review.models import Assignment, Draft, Exposure, Rating, ReviewItem
from review.ratings.item_state import PASSED, RATED
from review.ratings.leases import extend_lease, load_assignment, next_assignment
from review.ratings.reveals import finalise, reveal
from review.ratings.submitting import escalate, flag, release, save_draft, skip, submit, undo
from tests.examples import max_examples
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run

pytestmark = pytest.mark.both_databases

PEOPLE, NEEDED, ITEMS = 3, 2, 3
picks = st.integers(0, 999)
State = Assignment.State


def assert_code(error: DomainError, *codes: str) -> None:
    """Allow only these refusal codes."""
    assert error.code in codes


class AssignmentLife(RuleBasedStateMachine):
    """Three people, three items of two metrics, two ratings needed each; the judge gave 5 everywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.example = transaction.atomic()
        self.example.__enter__()
        run = make_scored_run(make_answer_set(make_question_set(specs=ITEMS)), values=[5])
        self.queue = make_queue(run, reviewers=PEOPLE, reviews_needed=NEEDED, reveal_share=0.3)
        self.reviewers = [member.reviewer for member in self.queue.members.select_related("reviewer")]
        self.forms = 0
        self.stored_ratings: dict[
            int, tuple[float | None, bool]
        ] = {}  # rating id -> value and blindness, once and for all

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.example.__exit__(None, None, None)

    def any_assignment(self, pick: int) -> Assignment | None:
        rows = list(Assignment.objects.order_by("pk").values_list("pk", flat=True))
        return load_assignment(rows[pick % len(rows)]) if rows else None

    @rule(pick=picks)
    def next(self, pick: int) -> None:
        reviewer = self.reviewers[pick % PEOPLE]
        had_lease = Assignment.objects.filter(
            reviewer=reviewer, state=State.LEASED, item__state=ReviewItem.State.OPEN
        ).exists()
        assignment = next_assignment(self.queue, reviewer)
        if had_lease:
            assert assignment is not None, "an open lease is always given back to its holder"
        if assignment:
            assert (assignment.reviewer, assignment.state) == (reviewer, State.LEASED)
            assert assignment.item.state == ReviewItem.State.OPEN

    @precondition(lambda self: Assignment.objects.exists())
    @rule(pick=picks, value=st.integers(1, 5), again=st.booleans())
    def submit(self, pick: int, value: int, again: bool) -> None:
        assignment = self.any_assignment(pick)
        assert assignment
        self.forms += 1
        values = {"correctness": RatingInput(value), "faithfulness": RatingInput(cannot_judge=True)}
        try:
            first = submit(assignment, values, idempotency_key=f"form {self.forms}", by=assignment.reviewer)
        except DomainError as error:
            assert_code(error, "already_rated", "not_held", "slot_taken")
            if error.code == "slot_taken":
                assert Draft.objects.get(assignment=assignment).payload["values"]["correctness"]["value"] == value
            return
        assert not first.repeated
        if again:
            count = Rating.objects.count()
            second = submit(
                load_assignment(assignment.pk), values, idempotency_key=f"form {self.forms}", by=assignment.reviewer
            )
            assert (second.repeated, second.reveal, Rating.objects.count()) == (True, first.reveal, count)

    @precondition(lambda self: Assignment.objects.exists())
    @rule(pick=picks, change=st.booleans())
    def reveal_and_finalise(self, pick: int, change: bool) -> None:
        assignment = self.any_assignment(pick)
        assert assignment
        changes = {"correctness": RatingUpdate(4, reason_code="policy")} if change else {}
        try:
            reveal(assignment)
            finalise(load_assignment(assignment.pk), changes, by=assignment.reviewer)
        except DomainError as error:
            assert_code(error, "not_rated_yet", "not_revealed", "already_final")

    @precondition(lambda self: Assignment.objects.exists())
    @rule(pick=picks)
    def undo(self, pick: int) -> None:
        assignment = self.any_assignment(pick)
        assert assignment
        try:
            reopened = undo(assignment, by=assignment.reviewer)
        except DomainError as error:
            assert_code(error, "judge_already_seen", "not_the_last", "nothing_to_undo", "slot_taken")
        else:
            assert (reopened.state, reopened.revealed_at) == (State.LEASED, None)

    @precondition(lambda self: Assignment.objects.exists())
    @rule(pick=picks, how=st.sampled_from(["release", "skip", "flag", "escalate", "extend", "draft"]))
    def change_lease(self, pick: int, how: str) -> None:
        assignment = self.any_assignment(pick)
        assert assignment
        try:
            match how:
                case "release":
                    release(assignment)
                case "skip":
                    skip(assignment)
                case "flag":
                    flag(assignment, "bad_question")
                case "escalate":
                    escalate(assignment)
                case "extend":
                    extend_lease(assignment)
                case "draft":
                    save_draft(assignment, {"values": {}, "comment": "so far"})
        except DomainError as error:
            assert_code(error, "not_held", "slot_taken", "already_rated")

    @rule()
    def expire_all_leases(self) -> None:
        Assignment.objects.filter(state=State.LEASED).update(lease_until=Now() - timedelta(seconds=1))

    @rule(person=st.integers(0, PEOPLE - 1), item=st.integers(0, ITEMS - 1))
    def view_answer_page(self, person: int, item: int) -> None:
        record_exposure(self.reviewers[person], self.queue.items.order_by("pk")[item].answer, "answer page")

    @invariant()
    def no_item_has_more_live_slots_than_reviews_needed(self) -> None:
        live = Assignment.objects.exclude(state__in=[State.SKIPPED, State.EXPIRED, State.FLAGGED]).values_list(
            "item", "slot"
        )
        assert all(count == 1 for count in Counter(live).values())
        assert all(slot <= NEEDED for _, slot in live)

    @invariant()
    def item_is_done_exactly_when_it_has_its_ratings(self) -> None:
        for item in ReviewItem.objects.prefetch_related("assignments", "assignments__events"):
            rows = list(item.assignments.all())
            rated_count, passed_count = sum(a.state in RATED for a in rows), sum(a.state in PASSED for a in rows)
            escalated = any(e.verb == "escalate" for a in rows for e in a.events.all())
            stuck = passed_count >= 3 or (passed_count and rated_count + passed_count == PEOPLE)
            expected = "disputed" if escalated else "done" if rated_count >= NEEDED else "disputed" if stuck else "open"
            assert item.state == expected

    @invariant()
    def rated_assignments_have_all_ratings_without_gaps(self) -> None:
        for assignment in Assignment.objects.all():
            seqs = sorted(Rating.objects.filter(assignment=assignment, phase="initial").values_list("metric", "seq"))
            rounds = max((seq for _, seq in seqs), default=0)
            assert Counter(seq for _, seq in seqs) == Counter(dict.fromkeys(range(1, rounds + 1), 2))
            assert rounds or assignment.state not in RATED

    @invariant()
    def blind_ratings_precede_and_final_ratings_follow_an_exposure(self) -> None:
        for rating in Rating.objects.select_related("assignment"):
            assert rating.assignment
            if rating.phase == "final":
                assert rating.assignment.revealed_at is not None
                assert not rating.blind
            elif rating.blind:
                looks = Exposure.objects.filter(user=rating.reviewer, object_id=rating.answer_id, scope="answer")
                assert not looks.filter(created_at__lt=rating.created_at).exists()

    @invariant()
    def stored_ratings_never_change(self) -> None:
        current_ratings = {row.pk: (row.value, row.blind) for row in Rating.objects.all()}
        assert {pk: current_ratings.get(pk) for pk in self.stored_ratings} == self.stored_ratings
        self.stored_ratings = current_ratings


@pytest.mark.django_db
def test_the_rules_hold_in_any_order_of_events() -> None:
    run_state_machine_as_test(
        AssignmentLife,
        settings=settings(
            max_examples=max_examples(15),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
