"""Ratings before the judge is seen: one decision per item, blind unless the judge was seen, taken back once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluation.core.errors import DomainError
from evaluation.models import User
from review.evidence.answers import record_exposure
from review.evidence.rating_input import RatingInput
from review.models import Assignment, Draft, Rating, ReviewItem, ReviewQueue
from review.queues.creation import close_queue
from review.queues.progress import own_progress, undoable_assignment
from review.ratings.leases import load_assignment, next_assignment
from review.ratings.reveals import reveal
from review.ratings.submitting import SubmitResult, escalate, queue_metrics, skip, submit, undo
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user

pytestmark = pytest.mark.django_db

GOOD = {"correctness": RatingInput(3), "faithfulness": RatingInput(3)}


def people(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("pk")]


def held_by(queue: ReviewQueue, user: User) -> Assignment:
    held = next_assignment(queue, user)
    assert held
    return held


def rate(
    assignment: Assignment, values: Mapping[str, RatingInput] = GOOD, key: str = "k", **fields: object
) -> SubmitResult:
    return submit(assignment, values, idempotency_key=key, by=assignment.reviewer, **fields)


def one_item_queue(judge: float = 3, **fields: object) -> ReviewQueue:
    run = make_scored_run(make_answer_set(make_question_set(specs=1)), values=[judge])
    return make_queue(run, **fields)


def lapse(assignment: Assignment) -> None:
    Assignment.objects.filter(pk=assignment.pk).update(lease_until=Now() - timedelta(seconds=1))


def code_of(refused: pytest.ExceptionInfo[DomainError]) -> str:
    return refused.value.code


def test_a_submit_stores_every_metric_blind_and_finishes_the_item() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    done = rate(
        held,
        {"correctness": RatingInput(2, comment="own"), "faithfulness": RatingInput(cannot_judge=True)},
        comment="all",
    )
    assert (done.item_done, done.reveal, done.repeated) == (True, False, False)
    rows = {row.metric.name: row for row in Rating.objects.select_related("metric")}
    assert (rows["correctness"].value, rows["correctness"].comment, rows["correctness"].blind) == (2, "own", True)
    assert (rows["faithfulness"].cannot_judge, rows["faithfulness"].comment) == (True, "all")
    assert {row.rubric_version_id for row in rows.values()} == {queue.metrics.first().rubric_version_id}
    assert Assignment.objects.get().state == Assignment.State.FINISHED
    assert ReviewItem.objects.get().state == ReviewItem.State.DONE


def test_an_item_is_done_only_when_enough_people_rated_it() -> None:
    queue = one_item_queue(reviewers=2, reviews_needed=2)
    first, second = people(queue)
    assert not rate(held_by(queue, first)).item_done
    assert rate(held_by(queue, second)).item_done


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"correctness": RatingInput(3)}, "metrics_missing"),
        (GOOD | {"style": RatingInput(3)}, "metrics_unknown"),
        (GOOD | {"correctness": RatingInput(6)}, "off_scale"),
        (GOOD | {"correctness": RatingInput(2.5)}, "off_scale"),
        (GOOD | {"correctness": RatingInput(float("nan"))}, "off_scale"),
        (GOOD | {"correctness": RatingInput(label="good")}, "off_scale"),
        (GOOD | {"correctness": RatingInput()}, "one_value"),
        (GOOD | {"correctness": RatingInput(3, cannot_judge=True)}, "one_value"),
        (GOOD | {"correctness": RatingInput(3, comment="x" * 10_001)}, "comment_too_long"),
    ],
)
def test_what_is_not_a_complete_rating_on_the_scale_is_refused(values: dict[str, RatingInput], code: str) -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    with pytest.raises(DomainError) as refused:
        rate(held, values)
    assert code_of(refused) == code
    assert not Rating.objects.exists()


def test_nobody_submits_for_somebody_else() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    with pytest.raises(DomainError) as refused:
        submit(held, GOOD, idempotency_key="k", by=make_user("lead", queue.project))
    assert code_of(refused) == "not_yours"


def test_the_same_form_twice_is_one_decision_and_another_form_is_refused() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    rate(held, key="one")
    assert rate(held, key="one").repeated
    with pytest.raises(DomainError) as refused:
        rate(held, {"correctness": RatingInput(1), "faithfulness": RatingInput(1)}, key="two")
    assert code_of(refused) == "already_rated"
    assert list(Rating.objects.values_list("value", flat=True)) == [3, 3]


def test_a_late_submit_counts_when_nobody_took_the_slot() -> None:
    queue = one_item_queue(reviewers=2)
    held = held_by(queue, people(queue)[0])
    lapse(held)
    assert rate(held).item_done


def test_a_late_submit_counts_after_the_slot_was_lost_and_became_free_again() -> None:
    queue = one_item_queue(reviewers=2)
    slow, quick = people(queue)
    held = held_by(queue, slow)
    lapse(held)
    skip(held_by(queue, quick))
    assert Assignment.objects.get(pk=held.pk).state == Assignment.State.EXPIRED
    assert rate(load_assignment(held.pk)).item_done


def test_a_late_submit_is_refused_when_the_slot_is_taken_and_what_was_entered_is_kept() -> None:
    queue = one_item_queue(reviewers=2)
    slow, quick = people(queue)
    held = held_by(queue, slow)
    lapse(held)
    held_by(queue, quick)
    with pytest.raises(DomainError) as refused:
        rate(held, comment="my long comment")
    assert code_of(refused) == "slot_taken"
    draft = Draft.objects.get(assignment=held).payload
    assert (draft["comment"], draft["values"]["correctness"]["value"]) == ("my long comment", 3)
    assert not Rating.objects.exists()


def test_a_closed_queue_takes_no_rating_and_keeps_the_draft() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    close_queue(queue, by=None)
    with pytest.raises(DomainError) as refused:
        rate(held)
    assert code_of(refused) == "queue_closed"
    assert Draft.objects.filter(assignment=held).exists()
    assert Assignment.objects.get(pk=held.pk).state == Assignment.State.LEASED


def test_a_rating_of_an_item_that_was_withdrawn_meanwhile_is_kept_and_marked() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    ReviewItem.objects.update(state=ReviewItem.State.WITHDRAWN)
    assert rate(load_assignment(held.pk)).stale
    assert Rating.objects.count() == 2
    assert ReviewItem.objects.get().state == ReviewItem.State.WITHDRAWN


def test_who_has_seen_the_judge_elsewhere_rates_not_blind() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    record_exposure(held.reviewer, held.item.answer, "answer page")
    rate(held)
    assert set(Rating.objects.values_list("blind", flat=True)) == {False}


def test_an_export_of_any_run_over_the_answers_counts_as_seeing_them() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    record_exposure(held.reviewer, make_scored_run(held.item.answer.answer_set), "export")
    rate(held)
    assert set(Rating.objects.values_list("blind", flat=True)) == {False}


def test_what_another_person_saw_does_not_matter() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = people(queue)
    held = held_by(queue, first)
    record_exposure(second, held.item.answer, "answer page")
    rate(held)
    assert set(Rating.objects.values_list("blind", flat=True)) == {True}


def test_an_assisted_rating_is_never_blind() -> None:
    queue = one_item_queue(mode="assisted", judge=5)
    done = rate(held_by(queue, people(queue)[0]), {"correctness": RatingInput(1), "faithfulness": RatingInput(1)})
    assert not done.reveal
    assert set(Rating.objects.values_list("blind", flat=True)) == {False}


def test_undo_reopens_the_last_item_and_the_next_submit_supersedes_by_number() -> None:
    queue = make_queue(make_scored_run(values=[3]), reveal="never")
    (user,) = people(queue)
    first = held_by(queue, user)
    rate(first)
    following = held_by(queue, user)
    again = undo(load_assignment(first.pk), by=user)
    assert (again.state, again.submitted_at, again.item.state) == ("leased", None, ReviewItem.State.OPEN)
    assert Draft.objects.get(assignment=first).payload["values"]["correctness"]["value"] == 3
    assert next_assignment(queue, user) == first
    rate(again, {"correctness": RatingInput(5), "faithfulness": RatingInput(5)}, key="second form")
    rows = Rating.objects.filter(metric__name="correctness").order_by("seq").values_list("seq", "value", "phase")
    assert list(rows) == [(1, 3, "initial"), (2, 5, "initial")]
    assert next_assignment(queue, user) == following


def test_an_item_that_went_to_a_lead_is_not_offered_back_nor_is_one_before_it() -> None:
    queue = make_queue(make_scored_run(values=[3]), reveal="never")
    (user,) = people(queue)
    assert undoable_assignment(queue, user, own_progress(queue, user)) is None
    skip(skipped := held_by(queue, user))
    assert undoable_assignment(queue, user, own_progress(queue, user)) == skipped.pk
    escalate(held_by(queue, user))
    assert undoable_assignment(queue, user, own_progress(queue, user)) is None
    rate(rated := held_by(queue, user))
    assert undoable_assignment(queue, user, own_progress(queue, user)) == rated.pk


def test_only_the_last_rating_can_be_taken_back() -> None:
    queue = make_queue(make_scored_run(values=[3]), reveal="never")
    (user,) = people(queue)
    first = held_by(queue, user)
    rate(first)
    rate(held_by(queue, user))
    with pytest.raises(DomainError) as refused:
        undo(load_assignment(first.pk), by=user)
    assert code_of(refused) == "not_the_last"


def test_after_the_judge_was_shown_the_first_rating_stays() -> None:
    queue = one_item_queue(judge=5)
    held = held_by(queue, people(queue)[0])
    assert rate(held, {"correctness": RatingInput(1), "faithfulness": RatingInput(1)}).reveal
    reveal(held)
    with pytest.raises(DomainError) as refused:
        undo(load_assignment(held.pk), by=held.reviewer)
    assert code_of(refused) == "judge_already_seen"


def test_after_a_look_at_the_answer_page_the_first_rating_stays() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    rate(held)
    record_exposure(held.reviewer, held.item.answer, "answer page")
    with pytest.raises(DomainError) as refused:
        undo(load_assignment(held.pk), by=held.reviewer)
    assert code_of(refused) == "judge_already_seen"


def test_in_an_assisted_queue_the_judge_was_seen_before_and_the_last_rating_is_still_taken_back() -> None:
    queue = one_item_queue(mode="assisted")
    held = held_by(queue, people(queue)[0])
    rate(held)
    assert undo(load_assignment(held.pk), by=held.reviewer).state == Assignment.State.LEASED


def test_in_a_closed_queue_nothing_is_taken_back() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    rate(held)
    close_queue(queue, by=None)
    with pytest.raises(DomainError) as refused:
        undo(load_assignment(held.pk), by=held.reviewer)
    assert code_of(refused) == "queue_closed"
    assert load_assignment(held.pk).state == Assignment.State.FINISHED


def test_an_item_that_was_never_submitted_cannot_be_taken_back() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    with pytest.raises(DomainError) as refused:
        undo(held, by=held.reviewer)
    assert code_of(refused) == "nothing_to_undo"


def test_a_form_key_cannot_be_used_again_after_undo() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    rate(held, key="one")
    again = undo(load_assignment(held.pk), by=held.reviewer)
    with pytest.raises(DomainError) as refused:
        rate(again, key="one")
    assert code_of(refused) == "bad_key"


def test_a_skip_can_be_taken_back_while_nobody_has_the_item() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    skip(held)
    assert ReviewItem.objects.get().state == ReviewItem.State.DISPUTED  # nobody else is left to rate it
    assert undo(load_assignment(held.pk), by=held.reviewer).state == Assignment.State.LEASED
    assert ReviewItem.objects.get().state == ReviewItem.State.OPEN


def test_a_skip_cannot_be_taken_back_once_somebody_has_the_item() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = people(queue)
    held = held_by(queue, first)
    skip(held)
    held_by(queue, second)
    with pytest.raises(DomainError) as refused:
        undo(load_assignment(held.pk), by=first)
    assert code_of(refused) == "slot_taken"


def test_three_skips_by_different_people_are_a_leads_matter() -> None:
    queue = one_item_queue(reviewers=4)
    for number, user in enumerate(people(queue)[:3], start=1):
        assert ReviewItem.objects.get().state == ReviewItem.State.OPEN
        skip(held_by(queue, user))
        assert ReviewItem.objects.get().state == ("disputed" if number == 3 else "open")
    assert next_assignment(queue, people(queue)[3]) is None


def test_an_item_that_nobody_is_left_to_rate_is_a_leads_matter() -> None:
    queue = one_item_queue(reviewers=2, reviews_needed=2)
    first, second = people(queue)
    skip(held_by(queue, first))
    rate(held_by(queue, second))
    assert ReviewItem.objects.get().state == ReviewItem.State.DISPUTED


def test_escalating_after_the_rating_puts_the_item_in_dispute_and_keeps_the_rating() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    rate(held)
    escalate(held, "the reference contradicts itself")
    assert ReviewItem.objects.get().state == ReviewItem.State.DISPUTED
    assert Assignment.objects.get().state == Assignment.State.FINISHED


def test_an_escalation_outlives_ratings_and_undo() -> None:
    queue = one_item_queue(reviewers=2, reviews_needed=2)
    first, second = people(queue)
    held, other = held_by(queue, first), held_by(queue, second)
    rate(held)
    escalate(held)
    rate(other)
    assert ReviewItem.objects.get().state == ReviewItem.State.DISPUTED
    undo(load_assignment(other.pk), by=second)
    assert ReviewItem.objects.get().state == ReviewItem.State.DISPUTED


def test_the_database_itself_refuses_a_second_reviewer_in_a_slot() -> None:
    queue = one_item_queue(reviewers=2)
    held = held_by(queue, people(queue)[0])
    with pytest.raises(IntegrityError), transaction.atomic():
        Assignment.objects.create(
            item=held.item, queue=queue, reviewer=people(queue)[1], slot=held.slot, lease_until=Now()
        )


def test_the_database_itself_refuses_a_reveal_before_the_rating() -> None:
    queue = one_item_queue()
    held = held_by(queue, people(queue)[0])
    with pytest.raises(IntegrityError), transaction.atomic():
        Assignment.objects.filter(pk=held.pk).update(revealed_at=Now())


def test_a_submit_costs_a_fixed_number_of_queries(django_assert_num_queries: object) -> None:
    queue = make_queue(make_scored_run(values=[3]))
    (user,) = people(queue)
    queue_metrics(queue)  # kept between requests
    for number in range(3):
        held = load_assignment(held_by(queue, user).pk)
        held.reviewer  # noqa: B018  # as review.queues.access fetches it
        with django_assert_num_queries(10):  # type: ignore[operator]
            rate(held, key=f"k{number}")
