"""Submitting ratings: one decision per item, blind unless the judge was seen, and undo."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluation.core.errors import DomainError
from evaluation.models import Run, User
from review.agreement.run_agreement import cached_agreement
from review.evidence.answers import record_exposure
from review.evidence.experts import effective_ratings, ratings_of, read_ratings
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


def reviewers_of(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("pk")]


def lease_next(queue: ReviewQueue, user: User) -> Assignment:
    assignment = next_assignment(queue, user)
    assert assignment
    return assignment


def rate(
    assignment: Assignment, values: Mapping[str, RatingInput] = GOOD, key: str = "k", **fields: object
) -> SubmitResult:
    return submit(assignment, values, idempotency_key=key, by=assignment.reviewer, **fields)


def one_item_queue(judge: float = 3, **fields: object) -> ReviewQueue:
    run = make_scored_run(make_answer_set(make_question_set(specs=1)), values=[judge])
    return make_queue(run, **fields)


def expire_lease(assignment: Assignment) -> None:
    Assignment.objects.filter(pk=assignment.pk).update(lease_until=Now() - timedelta(seconds=1))


def code_of(error: pytest.ExceptionInfo[DomainError]) -> str:
    return error.value.code


def test_submit_stores_every_metric_blind_and_finishes_the_item() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    result = rate(
        assignment,
        {"correctness": RatingInput(2, comment="own"), "faithfulness": RatingInput(cannot_judge=True)},
        comment="all",
    )
    assert (result.item_done, result.reveal, result.repeated) == (True, False, False)
    rows = {row.metric.name: row for row in Rating.objects.select_related("metric")}
    assert (rows["correctness"].value, rows["correctness"].comment, rows["correctness"].blind) == (2, "own", True)
    assert (rows["faithfulness"].cannot_judge, rows["faithfulness"].comment) == (True, "all")
    assert {row.rubric_version_id for row in rows.values()} == {queue.metrics.first().rubric_version_id}
    assert Assignment.objects.get().state == Assignment.State.FINISHED
    assert ReviewItem.objects.get().state == ReviewItem.State.DONE


def test_item_is_done_only_after_enough_ratings() -> None:
    queue = one_item_queue(reviewers=2, reviews_needed=2)
    first, second = reviewers_of(queue)
    assert not rate(lease_next(queue, first)).item_done
    assert rate(lease_next(queue, second)).item_done


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
def test_incomplete_or_off_scale_rating_is_refused(values: dict[str, RatingInput], code: str) -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    with pytest.raises(DomainError) as error:
        rate(assignment, values)
    assert code_of(error) == code
    assert not Rating.objects.exists()


def test_rating_for_another_reviewer_is_refused() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    with pytest.raises(DomainError) as error:
        submit(assignment, GOOD, idempotency_key="k", by=make_user("lead", queue.project))
    assert code_of(error) == "not_yours"


def test_repeated_form_is_one_decision_and_another_form_is_refused() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    rate(assignment, key="one")
    assert rate(assignment, key="one").repeated
    with pytest.raises(DomainError) as error:
        rate(assignment, {"correctness": RatingInput(1), "faithfulness": RatingInput(1)}, key="two")
    assert code_of(error) == "already_rated"
    assert list(Rating.objects.values_list("value", flat=True)) == [3, 3]


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        (GOOD | {"correctness": RatingInput(4)}, {}),
        (GOOD | {"correctness": RatingInput(3, comment="more")}, {}),
        (GOOD | {"faithfulness": RatingInput(cannot_judge=True)}, {}),
        (GOOD, {"comment": "another"}),
        (GOOD, {"suggestion": "another answer"}),
    ],
)
def test_repeated_key_with_other_values_is_refused_and_the_first_rating_stays(
    values: dict[str, RatingInput], fields: dict[str, str]
) -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    first = {"comment": "all", "suggestion": "my answer"}
    rate(assignment, **first)
    stored = list(Rating.objects.order_by("pk").values())
    with pytest.raises(DomainError) as error:
        rate(assignment, values, **first | fields)
    assert code_of(error) == "key_reused"
    assert list(Rating.objects.order_by("pk").values()) == stored
    assert rate(assignment, **first, active_ms=9_000).repeated


def test_late_submit_counts_while_the_slot_is_free() -> None:
    queue = one_item_queue(reviewers=2)
    assignment = lease_next(queue, reviewers_of(queue)[0])
    expire_lease(assignment)
    assert rate(assignment).item_done


def test_late_submit_counts_after_the_slot_became_free_again() -> None:
    queue = one_item_queue(reviewers=2)
    slow, quick = reviewers_of(queue)
    assignment = lease_next(queue, slow)
    expire_lease(assignment)
    skip(lease_next(queue, quick))
    assert Assignment.objects.get(pk=assignment.pk).state == Assignment.State.EXPIRED
    assert rate(load_assignment(assignment.pk)).item_done


def test_late_submit_to_a_taken_slot_is_refused_and_stored_as_a_draft() -> None:
    queue = one_item_queue(reviewers=2)
    slow, quick = reviewers_of(queue)
    assignment = lease_next(queue, slow)
    expire_lease(assignment)
    lease_next(queue, quick)
    with pytest.raises(DomainError) as error:
        rate(assignment, comment="my long comment")
    assert code_of(error) == "slot_taken"
    draft = Draft.objects.get(assignment=assignment).payload
    assert (draft["comment"], draft["values"]["correctness"]["value"]) == ("my long comment", 3)
    assert not Rating.objects.exists()


def test_closed_queue_refuses_a_rating_and_stores_the_draft() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    close_queue(queue, by=None)
    with pytest.raises(DomainError) as error:
        rate(assignment)
    assert code_of(error) == "queue_closed"
    assert Draft.objects.filter(assignment=assignment).exists()
    assert Assignment.objects.get(pk=assignment.pk).state == Assignment.State.LEASED


def test_rating_of_a_withdrawn_item_is_stored_and_marked_stale() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    ReviewItem.objects.update(state=ReviewItem.State.WITHDRAWN)
    assert rate(load_assignment(assignment.pk)).stale
    assert Rating.objects.count() == 2
    assert ReviewItem.objects.get().state == ReviewItem.State.WITHDRAWN


def test_rating_is_not_blind_after_judge_was_seen_elsewhere() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    record_exposure(assignment.reviewer, assignment.item.answer, "answer page")
    rate(assignment)
    assert set(Rating.objects.values_list("blind", flat=True)) == {False}


def test_export_of_any_run_over_the_answers_counts_as_exposure() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    record_exposure(assignment.reviewer, make_scored_run(assignment.item.answer.answer_set), "export")
    rate(assignment)
    assert set(Rating.objects.values_list("blind", flat=True)) == {False}


def test_exposure_of_another_reviewer_does_not_matter() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = reviewers_of(queue)
    assignment = lease_next(queue, first)
    record_exposure(second, assignment.item.answer, "answer page")
    rate(assignment)
    assert set(Rating.objects.values_list("blind", flat=True)) == {True}


def test_an_assisted_rating_is_never_blind() -> None:
    queue = one_item_queue(mode="assisted", judge=5)
    result = rate(
        lease_next(queue, reviewers_of(queue)[0]), {"correctness": RatingInput(1), "faithfulness": RatingInput(1)}
    )
    assert not result.reveal
    assert set(Rating.objects.values_list("blind", flat=True)) == {False}


def test_undo_reopens_the_last_item_and_the_next_submit_supersedes() -> None:
    queue = make_queue(make_scored_run(values=[3]), reveal="never")
    (user,) = reviewers_of(queue)
    first = lease_next(queue, user)
    rate(first)
    following = lease_next(queue, user)
    reopened = undo(load_assignment(first.pk), by=user)
    assert (reopened.state, reopened.submitted_at, reopened.item.state) == ("leased", None, ReviewItem.State.OPEN)
    assert Draft.objects.get(assignment=first).payload["values"]["correctness"]["value"] == 3
    assert next_assignment(queue, user) == first
    rate(reopened, {"correctness": RatingInput(5), "faithfulness": RatingInput(5)}, key="second form")
    rows = Rating.objects.filter(metric__name="correctness").order_by("seq").values_list("seq", "value", "phase")
    assert list(rows) == [(1, 3, "initial"), (2, 5, "initial")]
    assert next_assignment(queue, user) == following


def judge_counts(run: Run) -> list[int]:
    """Number of answers behind the cached agreement of each judge on correctness."""
    judges = cached_agreement(run, resamples=0)["judges"]
    return [metrics["correctness"]["n"] for metrics in judges.values() if "correctness" in metrics]


def test_rating_that_was_taken_back_counts_no_more() -> None:
    run = make_scored_run(values=[3])
    queue = make_queue(run, reveal="never", reviewers=2, strategy="all")
    first_person, second_person = reviewers_of(queue)
    rate(assignment := lease_next(queue, first_person), {"correctness": RatingInput(5), "faithfulness": RatingInput(5)})
    key = assignment.item.answer_id, Rating.objects.filter(metric__name="correctness").get().metric_id
    assert [row.value for row in effective_ratings(read_ratings(ratings_of(run.answer_set_id)))[key]] == [5]
    assert judge_counts(run) == [1]
    skip(undo(load_assignment(assignment.pk), by=first_person))
    assert effective_ratings(read_ratings(ratings_of(run.answer_set_id))) == {}
    assert judge_counts(run) in ([], [0])
    while (other := lease_next(queue, second_person)).item_id != assignment.item_id:
        rate(other)
    rate(other, {"correctness": RatingInput(1), "faithfulness": RatingInput(1)})
    assert [row.value for row in effective_ratings(read_ratings(ratings_of(run.answer_set_id)))[key]] == [1]


def test_item_with_a_lead_blocks_undo() -> None:
    queue = make_queue(make_scored_run(values=[3]), reveal="never")
    (user,) = reviewers_of(queue)
    assert undoable_assignment(queue, user, own_progress(queue, user)) is None
    skip(skipped := lease_next(queue, user))
    assert undoable_assignment(queue, user, own_progress(queue, user)) == skipped.pk
    escalate(lease_next(queue, user))
    assert undoable_assignment(queue, user, own_progress(queue, user)) is None
    rate(assignment := lease_next(queue, user))
    assert undoable_assignment(queue, user, own_progress(queue, user)) == assignment.pk


def test_only_the_last_rating_can_be_undone() -> None:
    queue = make_queue(make_scored_run(values=[3]), reveal="never")
    (user,) = reviewers_of(queue)
    first = lease_next(queue, user)
    rate(first)
    rate(lease_next(queue, user))
    with pytest.raises(DomainError) as error:
        undo(load_assignment(first.pk), by=user)
    assert code_of(error) == "not_the_last"


def test_rating_cannot_be_undone_after_the_reveal() -> None:
    queue = one_item_queue(judge=5)
    assignment = lease_next(queue, reviewers_of(queue)[0])
    assert rate(assignment, {"correctness": RatingInput(1), "faithfulness": RatingInput(1)}).reveal
    reveal(assignment)
    with pytest.raises(DomainError) as error:
        undo(load_assignment(assignment.pk), by=assignment.reviewer)
    assert code_of(error) == "judge_already_seen"


def test_rating_cannot_be_undone_after_the_answer_page_was_viewed() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    rate(assignment)
    record_exposure(assignment.reviewer, assignment.item.answer, "answer page")
    with pytest.raises(DomainError) as error:
        undo(load_assignment(assignment.pk), by=assignment.reviewer)
    assert code_of(error) == "judge_already_seen"


def test_last_rating_of_an_assisted_queue_can_be_undone() -> None:
    queue = one_item_queue(mode="assisted")
    assignment = lease_next(queue, reviewers_of(queue)[0])
    rate(assignment)
    assert undo(load_assignment(assignment.pk), by=assignment.reviewer).state == Assignment.State.LEASED


def test_nothing_can_be_undone_in_a_closed_queue() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    rate(assignment)
    close_queue(queue, by=None)
    with pytest.raises(DomainError) as error:
        undo(load_assignment(assignment.pk), by=assignment.reviewer)
    assert code_of(error) == "queue_closed"
    assert load_assignment(assignment.pk).state == Assignment.State.FINISHED


def test_unsubmitted_item_cannot_be_undone() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    with pytest.raises(DomainError) as error:
        undo(assignment, by=assignment.reviewer)
    assert code_of(error) == "nothing_to_undo"


def test_form_key_cannot_be_reused_after_undo() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    rate(assignment, key="one")
    reopened = undo(load_assignment(assignment.pk), by=assignment.reviewer)
    with pytest.raises(DomainError) as error:
        rate(reopened, key="one")
    assert code_of(error) == "bad_key"


def test_skip_can_be_undone_while_the_item_is_free() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    skip(assignment)
    assert ReviewItem.objects.get().state == ReviewItem.State.DISPUTED  # nobody else is left to rate it
    assert undo(load_assignment(assignment.pk), by=assignment.reviewer).state == Assignment.State.LEASED
    assert ReviewItem.objects.get().state == ReviewItem.State.OPEN


def test_skip_cannot_be_undone_while_another_reviewer_has_the_item() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = reviewers_of(queue)
    assignment = lease_next(queue, first)
    skip(assignment)
    lease_next(queue, second)
    with pytest.raises(DomainError) as error:
        undo(load_assignment(assignment.pk), by=first)
    assert code_of(error) == "slot_taken"


def test_three_skips_send_an_item_to_a_lead() -> None:
    queue = one_item_queue(reviewers=4)
    for number, user in enumerate(reviewers_of(queue)[:3], start=1):
        assert ReviewItem.objects.get().state == ReviewItem.State.OPEN
        skip(lease_next(queue, user))
        assert ReviewItem.objects.get().state == ("disputed" if number == 3 else "open")
    assert next_assignment(queue, reviewers_of(queue)[3]) is None


def test_item_without_remaining_reviewers_goes_to_a_lead() -> None:
    queue = one_item_queue(reviewers=2, reviews_needed=2)
    first, second = reviewers_of(queue)
    skip(lease_next(queue, first))
    rate(lease_next(queue, second))
    assert ReviewItem.objects.get().state == ReviewItem.State.DISPUTED


def test_escalation_after_rating_disputes_the_item_and_keeps_the_rating() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    rate(assignment)
    escalate(assignment, "the reference contradicts itself")
    assert ReviewItem.objects.get().state == ReviewItem.State.DISPUTED
    assert Assignment.objects.get().state == Assignment.State.FINISHED


def test_an_escalation_outlives_ratings_and_undo() -> None:
    queue = one_item_queue(reviewers=2, reviews_needed=2)
    first, second = reviewers_of(queue)
    assignment, other_assignment = lease_next(queue, first), lease_next(queue, second)
    rate(assignment)
    escalate(assignment)
    rate(other_assignment)
    assert ReviewItem.objects.get().state == ReviewItem.State.DISPUTED
    undo(load_assignment(other_assignment.pk), by=second)
    assert ReviewItem.objects.get().state == ReviewItem.State.DISPUTED


def test_database_refuses_a_second_reviewer_in_a_slot() -> None:
    queue = one_item_queue(reviewers=2)
    assignment = lease_next(queue, reviewers_of(queue)[0])
    with pytest.raises(IntegrityError), transaction.atomic():
        Assignment.objects.create(
            item=assignment.item, queue=queue, reviewer=reviewers_of(queue)[1], slot=assignment.slot, lease_until=Now()
        )


def test_database_refuses_a_reveal_before_the_rating() -> None:
    queue = one_item_queue()
    assignment = lease_next(queue, reviewers_of(queue)[0])
    with pytest.raises(IntegrityError), transaction.atomic():
        Assignment.objects.filter(pk=assignment.pk).update(revealed_at=Now())


def test_a_submit_costs_a_fixed_number_of_queries(django_assert_num_queries: object) -> None:
    queue = make_queue(make_scored_run(values=[3]))
    (user,) = reviewers_of(queue)
    queue_metrics(queue)  # kept between requests
    for number in range(3):
        assignment = load_assignment(lease_next(queue, user).pk)
        assignment.reviewer  # noqa: B018  # as review.queues.access fetches it
        with django_assert_num_queries(10):  # type: ignore[operator]
            rate(assignment, key=f"k{number}")
