"""Who is recorded as having seen the judge: members of an open queue, once per answer or run."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser

from review.evidence.answers import record_answer_exposure, record_exposure, record_item_exposure, was_exposed
from review.models import Exposure
from review.queues.creation import close_queue
from review.ratings.leases import next_assignment, prefetch_assignment
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user

pytestmark = pytest.mark.django_db


def test_a_member_is_recorded_once_with_the_first_way_of_seeing() -> None:
    queue = make_queue()
    person, answer = queue.members.get().reviewer, queue.items.first().answer
    record_exposure(person, answer, "answer page")
    record_exposure(person, answer, "report")
    assert list(Exposure.objects.values_list("user", "scope", "object_id", "via")) == [
        (person.pk, "answer", answer.pk, "answer page")
    ]
    assert was_exposed(person, answer.pk)


def test_people_outside_and_members_of_closed_queues_are_not_recorded() -> None:
    queue = make_queue()
    person, answer = queue.members.get().reviewer, queue.items.first().answer
    record_exposure(make_user("evaluator", queue.project), answer, "answer page")
    record_exposure(AnonymousUser(), answer, "answer page")
    record_exposure(person, make_scored_run().answer_set.answers.first(), "answer page")
    close_queue(queue, by=None)
    record_exposure(person, answer, "answer page")
    assert not Exposure.objects.exists()


def test_an_export_exposes_every_answer_of_the_run_with_one_row() -> None:
    queue = make_queue()
    person = queue.members.get().reviewer
    run = queue.items.first().run
    record_exposure(person, run, "export")
    assert list(Exposure.objects.values_list("scope", "object_id")) == [("run", run.pk)]
    assert all(was_exposed(person, answer.pk) for answer in run.answer_set.answers.all())


def test_a_page_of_several_answers_exposes_those_that_stand_in_the_queue() -> None:
    queue = make_queue(strategy="uniform", size=2)
    person = queue.members.get().reviewer
    everything = list(queue.items.first().run.answer_set.answers.values_list("pk", flat=True))
    record_answer_exposure(person, everything, "run page")
    assert set(Exposure.objects.values_list("object_id", flat=True)) == set(
        queue.items.values_list("answer_id", flat=True)
    )


def test_an_assisted_queue_exposes_with_the_item() -> None:
    queue = make_queue(mode="assisted")
    held = next_assignment(queue, queue.members.get().reviewer)
    assert held
    assert was_exposed(held.reviewer, held.item.answer_id)


def test_an_assisted_queue_exposes_with_the_item_that_is_there_ahead() -> None:
    queue = make_queue(mode="assisted")
    held = next_assignment(queue, queue.members.get().reviewer)
    assert held
    ahead = prefetch_assignment(queue, held.reviewer, held)
    assert ahead
    assert was_exposed(held.reviewer, ahead.item.answer_id)


def test_a_lead_who_may_have_to_decide_is_recorded_too() -> None:
    queue = make_queue()
    lead, answer = make_user("lead", queue.project), queue.items.first().answer
    record_exposure(lead, answer, "answer page")
    assert was_exposed(lead, answer.pk)


def test_an_equal_answer_of_another_set_exposes_too_and_one_in_the_hands_does_not() -> None:
    """Its page tells what experts said of the same text; the second answer is worded otherwise."""
    questions = make_question_set(specs=2)
    earlier, later = (make_scored_run(make_answer_set(questions, texts=["same", text])) for text in ("old", "new"))
    queue = make_queue(later)
    person, (same, other) = queue.members.get().reviewer, later.answer_set.answers.order_by("question__position")
    shown = list(earlier.answer_set.answers.order_by("question__position"))
    record_item_exposure(person, shown[0], "reveal")
    assert not Exposure.objects.exists()
    record_answer_exposure(person, [one.pk for one in shown], "run page")
    assert list(Exposure.objects.values_list("scope", "object_id")) == [("answer", same.pk)]
    assert (was_exposed(person, same.pk), was_exposed(person, other.pk)) == (True, False)


def test_a_whole_run_exposes_equal_answers_of_other_sets_one_by_one() -> None:
    questions = make_question_set(specs=2)
    earlier, later = (make_scored_run(make_answer_set(questions, texts=["same", text])) for text in ("old", "new"))
    person = make_queue(later).members.get().reviewer
    record_exposure(person, earlier, "report")
    first = later.answer_set.answers.order_by("question__position").first()
    assert list(Exposure.objects.values_list("scope", "object_id")) == [("answer", first.pk)]


def test_answers_without_text_are_not_equal() -> None:
    """What a system that only retrieves found is no text that somebody read."""
    questions = make_question_set(specs=1)
    earlier, later = (make_scored_run(make_answer_set(questions, texts=[""])) for _ in range(2))
    person = make_queue(later).members.get().reviewer
    record_answer_exposure(person, list(earlier.answer_set.answers.values_list("pk", flat=True)), "run page")
    assert not Exposure.objects.exists()
