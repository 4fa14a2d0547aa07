"""Exposure records: members of queues who saw the judge, once per answer or run."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser

from review.evidence.answers import record_answer_exposure, record_exposure, record_item_exposure, was_exposed
from review.evidence.rating_input import RatingInput
from review.models import Exposure, Rating
from review.queues.creation import close_queue, reopen_queue
from review.ratings.leases import next_assignment, prefetch_assignment
from review.ratings.submitting import submit
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user

pytestmark = pytest.mark.django_db


def test_member_is_recorded_once_with_the_first_view() -> None:
    queue = make_queue()
    person, answer = queue.members.get().reviewer, queue.items.first().answer
    record_exposure(person, answer, "answer page")
    record_exposure(person, answer, "report")
    assert list(Exposure.objects.values_list("user", "scope", "object_id", "via")) == [
        (person.pk, "answer", answer.pk, "answer page")
    ]
    assert was_exposed(person, answer.pk)


def test_outsiders_are_not_recorded() -> None:
    queue = make_queue()
    person, answer = queue.members.get().reviewer, queue.items.first().answer
    record_exposure(make_user("evaluator", queue.project), answer, "answer page")
    record_exposure(AnonymousUser(), answer, "answer page")
    record_exposure(person, make_scored_run().answer_set.answers.first(), "answer page")
    assert not Exposure.objects.exists()


def test_rating_after_a_view_while_the_queue_was_closed_is_not_blind() -> None:
    queue = make_queue(metrics=["correctness"])
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    close_queue(queue, by=None)
    record_exposure(assignment.reviewer, assignment.item.answer, "answer page")
    reopen_queue(queue, by=None)
    submit(assignment, {"correctness": RatingInput(2)}, idempotency_key="k", by=assignment.reviewer)
    assert not Rating.objects.get().blind


def test_export_exposes_every_answer_of_the_run_with_one_row() -> None:
    queue = make_queue()
    person = queue.members.get().reviewer
    run = queue.items.first().run
    record_exposure(person, run, "export")
    assert list(Exposure.objects.values_list("scope", "object_id")) == [("run", run.pk)]
    assert all(was_exposed(person, answer.pk) for answer in run.answer_set.answers.all())


def test_page_of_several_answers_exposes_those_in_the_queue() -> None:
    queue = make_queue(strategy="uniform", size=2)
    person = queue.members.get().reviewer
    answer_ids = list(queue.items.first().run.answer_set.answers.values_list("pk", flat=True))
    record_answer_exposure(person, answer_ids, "run page")
    assert set(Exposure.objects.values_list("object_id", flat=True)) == set(
        queue.items.values_list("answer_id", flat=True)
    )


def test_assisted_queue_exposes_the_assigned_item() -> None:
    queue = make_queue(mode="assisted")
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    assert was_exposed(assignment.reviewer, assignment.item.answer_id)


def test_assisted_queue_exposes_the_prefetched_item() -> None:
    queue = make_queue(mode="assisted")
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    prefetched = prefetch_assignment(queue, assignment.reviewer, assignment)
    assert prefetched
    assert was_exposed(assignment.reviewer, prefetched.item.answer_id)


def test_possible_adjudicator_is_recorded() -> None:
    queue = make_queue()
    lead, answer = make_user("lead", queue.project), queue.items.first().answer
    record_exposure(lead, answer, "answer page")
    assert was_exposed(lead, answer.pk)


def test_equal_answer_of_another_set_is_exposed_but_not_an_open_item() -> None:
    """A page shows expert ratings of equal texts; the second answer is worded differently."""
    questions = make_question_set(specs=2)
    earlier_run, later_run = (
        make_scored_run(make_answer_set(questions, texts=["same", text])) for text in ("old", "new")
    )
    queue = make_queue(later_run)
    person, (equal_answer, other_answer) = (
        queue.members.get().reviewer,
        later_run.answer_set.answers.order_by("question__position"),
    )
    earlier_answers = list(earlier_run.answer_set.answers.order_by("question__position"))
    record_item_exposure(person, earlier_answers[0], "reveal")
    assert not Exposure.objects.exists()
    record_answer_exposure(person, [answer.pk for answer in earlier_answers], "run page")
    assert list(Exposure.objects.values_list("scope", "object_id")) == [("answer", equal_answer.pk)]
    assert (was_exposed(person, equal_answer.pk), was_exposed(person, other_answer.pk)) == (True, False)


def test_whole_run_exposes_equal_answers_of_other_sets() -> None:
    questions = make_question_set(specs=2)
    earlier_run, later_run = (
        make_scored_run(make_answer_set(questions, texts=["same", text])) for text in ("old", "new")
    )
    person = make_queue(later_run).members.get().reviewer
    record_exposure(person, earlier_run, "report")
    first = later_run.answer_set.answers.order_by("question__position").first()
    assert list(Exposure.objects.values_list("scope", "object_id")) == [("answer", first.pk)]


def test_answers_without_text_are_not_equal() -> None:
    """Answers that only retrieved have no text to read."""
    questions = make_question_set(specs=1)
    earlier_run, later_run = (make_scored_run(make_answer_set(questions, texts=[""])) for _ in range(2))
    person = make_queue(later_run).members.get().reviewer
    record_answer_exposure(person, list(earlier_run.answer_set.answers.values_list("pk", flat=True)), "run page")
    assert not Exposure.objects.exists()
