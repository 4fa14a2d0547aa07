"""What goes to a lead, and what a decision does: authoritative, blind where it can be, never about an own rating."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from evaluation.core.errors import DomainError
from evaluation.models import QuestionSet, RubricVersion, Run, User
from review.decisions import cases
from review.decisions.adjudication import adjudicate, amend_question, amend_rubric, rule_on
from review.decisions.cases import CaseReason, load_case, open_cases
from review.evidence.answers import record_exposure
from review.evidence.effective import ValueSource, effective_values
from review.evidence.rating_input import RatingInput
from review.models import Assignment, ItemEvent, Override, Rating, ReviewItem, ReviewQueue
from review.queues.creation import close_queue, reopen_queue
from review.queues.reassignment import set_item_reviewers
from review.ratings.leases import load_assignment, next_assignment
from review.ratings.submitting import escalate, flag, skip, submit, undo
from review.reports.as_json import summary_json
from review.reports.as_markdown import markdown_summary
from tests.concurrency import WAITS, together
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user
from tests.pages.markup import compact
from tests.review.builders import make_report

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def queue_of(*people: User, **fields: Any) -> ReviewQueue:
    rules = {"metrics": ["correctness"], "reveal": "never", "reviews_needed": 2}
    return make_queue(make_scored_run(values=[3]), list(people) or 2, **(rules | fields))


def rate(queue: ReviewQueue, item: ReviewItem, user: User, value: float) -> None:
    """Walk to the item and rate it, skipping nothing: everything before it gets the same value."""
    while True:
        assignment = next_assignment(queue, user)
        assert assignment is not None
        mine = value if assignment.item_id == item.pk else 3
        submit(assignment, {"correctness": RatingInput(value=mine)}, idempotency_key="k", by=user)
        if assignment.item_id == item.pk:
            return


def disputed(one: float = 1, other: float = 5) -> tuple[ReviewQueue, ReviewItem]:
    queue = queue_of()
    item = queue.items.first()
    assert item is not None
    for member, value in zip(queue.members.order_by("pk"), (one, other), strict=True):
        rate(queue, item, member.reviewer, value)
    return queue, item


def lead_of(queue: ReviewQueue) -> User:
    return make_user("lead", queue.project)


def test_ratings_two_levels_apart_are_a_case_and_one_level_is_not() -> None:
    queue, item = disputed(2, 4)
    (case,) = open_cases(queue.items.all())
    assert (case.item, case.why, case.max_distance) == (item, (CaseReason.DIFFERENCE,), 2.0)
    other, _ = disputed(3, 4)
    assert open_cases(other.items.all()) == []


def test_the_amount_is_the_queues_own_and_none_switches_it_off() -> None:
    queue, item = disputed(3, 4)
    ReviewQueue.objects.filter(pk=queue.pk).update(adjudicate_from=1)
    assert [case.item for case in open_cases(queue.items.all())] == [item]
    ReviewQueue.objects.filter(pk=queue.pk).update(adjudicate_from=0)
    assert open_cases(queue.items.all()) == []


def test_flags_and_escalations_come_first_and_everybody_passing_on_counts() -> None:
    queue = queue_of()
    first, second = (member.reviewer for member in queue.members.order_by("pk"))
    flagged, escalated = next_assignment(queue, first), next_assignment(queue, second)
    assert flagged
    assert escalated
    flag(flagged, "bad_reference", "out of date")
    escalate(escalated, "please decide")
    assert {case.why[0] for case in open_cases(queue.items.all())} <= {CaseReason.FLAG, CaseReason.ESCALATION}
    assert open_cases(queue.items.all())[0].why[0] is CaseReason.ESCALATION
    other = queue_of(reviews_needed=1)
    for member in other.members.all():
        taken = next_assignment(other, member.reviewer)
        assert taken
        item = taken.item
        skip(taken)
    for member in other.members.all():  # both pass the first one's item on
        while (taken := next_assignment(other, member.reviewer)) is not None and taken.item_id != item.pk:
            skip(taken)
        if taken:
            skip(taken)
    assert CaseReason.PASSED_ON in {reason for case in open_cases(other.items.all()) for reason in case.why}


def test_an_adjudication_counts_above_the_ratings_which_stay() -> None:
    queue, item = disputed()
    metric = queue.metrics.get().metric
    run: Run = item.run
    assert effective_values(run).values[metric.pk][item.answer_id].value == 3.0  # (1 + 5) / 2
    made = adjudicate(item.answer, metric, value=4, reason="The fee is right.", seen=0, by=lead_of(queue))
    now = effective_values(run).values[metric.pk][item.answer_id]
    assert (now.value, now.source) == (4.0, ValueSource.OVERRIDE)
    assert (made.kind, made.judge_seen) == (Override.Kind.ADJUDICATION, False)
    assert sorted(Rating.objects.filter(answer=item.answer).values_list("value", flat=True)) == [1.0, 5.0]
    assert not load_case(item).is_open


def test_a_rating_stays_once_a_lead_has_decided() -> None:
    queue = make_queue(make_scored_run(values=[3]), reveal="never")
    (me,) = [member.reviewer for member in queue.members.all()]
    held = next_assignment(queue, me)
    assert held
    submit(held, {name: RatingInput(value=3) for name in ("correctness", "faithfulness")}, idempotency_key="k", by=me)
    metric = queue.metrics.get(metric__name="correctness").metric
    adjudicate(held.item.answer, metric, value=4, reason="The fee is right.", seen=0, by=lead_of(queue))
    with pytest.raises(DomainError) as refused:
        undo(load_assignment(held.pk), by=me)
    assert refused.value.code == "adjudicated_already"


def test_a_lead_who_saw_the_judge_decides_but_not_as_gold() -> None:
    queue, item = disputed()
    lead = lead_of(queue)
    record_exposure(lead, item.answer, "answer")
    made = adjudicate(item.answer, queue.metrics.get().metric, value=4, reason="r", seen=0, by=lead)
    assert made.judge_seen is True


def test_nobody_adjudicates_an_own_rating_or_flag_or_without_being_a_lead() -> None:
    run = make_scored_run(values=[3])
    lead = make_user("lead", run.project)
    queue = make_queue(run, [lead, make_user("reviewer", run.project)], metrics=["correctness"], reveal="never")
    assignment = next_assignment(queue, lead)
    assert assignment
    metric, answer = queue.metrics.get().metric, assignment.item.answer
    submit(assignment, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=lead)
    flag(assignment, "unsafe")
    with pytest.raises(DomainError) as refused:
        adjudicate(answer, metric, value=4, reason="mine", seen=0, by=lead)
    assert refused.value.code == "own_rating"
    with pytest.raises(DomainError) as refused:
        rule_on(ItemEvent.objects.get(verb="flag"), upheld=True, reason="mine", by=lead)
    assert refused.value.code == "own_flag"
    for role in ("viewer", "reviewer", "evaluator"):
        with pytest.raises(PermissionDenied):
            adjudicate(answer, metric, value=4, reason="r", seen=0, by=make_user(role, run.project))


def test_of_two_leads_who_decide_one_wins_and_the_other_is_told() -> None:
    queue, item = disputed()
    metric = queue.metrics.get().metric
    adjudicate(item.answer, metric, value=4, reason="first", seen=0, by=lead_of(queue))
    with pytest.raises(DomainError) as refused:
        adjudicate(item.answer, metric, value=2, reason="second", seen=0, by=lead_of(queue))
    assert refused.value.code == "changed_meanwhile"
    assert Override.objects.get().value == 4


@WAITS
@pytest.mark.django_db(transaction=True)
def test_at_the_same_moment_too() -> None:
    queue, item = disputed()
    metric = queue.metrics.get().metric
    leads = [lead_of(queue), lead_of(queue)]
    results = together(
        *(
            lambda lead=lead: adjudicate(item.answer, metric, value=4, reason="r", seen=0, by=lead)  # type: ignore[misc]
            for lead in leads
        )
    )
    assert Override.objects.count() == 1
    assert sorted(type(one).__name__ for one in results) == ["DomainError", "Override"]


@WAITS
@pytest.mark.django_db(transaction=True)
def test_deciding_and_steering_the_queue_at_the_same_moment_never_wait_for_each_other() -> None:
    """Each of them locks items and writes to the audit log; in another order than the others it would be a deadlock."""
    queue, item = disputed()
    metric, leads = queue.metrics.get().metric, [lead_of(queue), lead_of(queue)]
    people = [member.reviewer for member in queue.members.order_by("pk")]
    steps: list[Callable[[], object]] = [
        lambda: set_item_reviewers(queue, [item.pk], people, by=leads[1]),
        lambda: close_queue(queue, by=leads[1]),
        lambda: reopen_queue(queue, by=leads[1]),
    ]
    for turn in range(30):
        value = 1 + turn % 5
        results = together(
            lambda value=value: adjudicate(item.answer, metric, value=value, reason="r", seen=None, by=leads[0]),  # type: ignore[misc]
            steps[turn % 3],
        )
        assert not [one for one in results if isinstance(one, Exception)]


def test_an_upheld_flag_of_a_bad_reference_takes_the_answer_out_of_all_means() -> None:
    queue = queue_of()
    person = queue.members.order_by("pk")[0].reviewer
    assignment = next_assignment(queue, person)
    assert assignment
    flag(assignment, "bad_reference", "the rule was repealed")
    item, metric = assignment.item, queue.metrics.get().metric
    assert item.answer_id in effective_values(item.run).values[metric.pk]  # until a lead confirms it the value stands
    rule_on(ItemEvent.objects.get(verb="flag"), upheld=True, reason="It was.", by=lead_of(queue))
    assert item.answer_id not in effective_values(item.run).values.get(metric.pk, {})
    item.refresh_from_db()
    assert item.state == ReviewItem.State.WITHDRAWN
    # and says so wherever the figures without it stand
    question = item.answer.question.external_id
    report = make_report(item.run)
    assert summary_json(report)["removed"] == [{"id": question, "answer_id": item.answer_id, "sample": 1}]
    assert item.answer_id not in {line.answer.answer_id for line in report.answers}
    assert f"upheld a flag: {question}" in markdown_summary(report, None)
    client = Client()
    client.force_login(lead_of(queue))
    page = compact(client.get(reverse("run", args=[item.run_id])).content.decode())
    assert "because a lead upheld a flag" in page
    assert f">{question}</a></div>" in page
    with pytest.raises(DomainError) as refused:
        rule_on(ItemEvent.objects.get(verb="flag"), upheld=False, reason="No.", by=lead_of(queue))
    assert refused.value.code == "ruled_already"


@pytest.mark.parametrize(("kind", "upheld"), [("bad_reference", False), ("unreadable", True)])
def test_a_dismissed_flag_and_one_of_another_kind_leave_the_answer_where_it_was(kind: str, upheld: bool) -> None:
    queue = queue_of()
    assignment = next_assignment(queue, queue.members.order_by("pk")[0].reviewer)
    assert assignment
    flag(assignment, kind, "the rule was repealed")
    rule_on(ItemEvent.objects.get(verb="flag"), upheld=upheld, reason="So it is.", by=lead_of(queue))
    item, metric = ReviewItem.objects.get(pk=assignment.item_id), queue.metrics.get().metric
    assert item.state == ReviewItem.State.OPEN
    assert item.answer_id in effective_values(item.run).values[metric.pk]


def test_a_dismissed_escalation_opens_the_item_again() -> None:
    queue = queue_of()
    assignment = next_assignment(queue, queue.members.order_by("pk")[0].reviewer)
    assert assignment
    escalate(assignment)
    item = assignment.item
    item.refresh_from_db()
    assert item.state == ReviewItem.State.DISPUTED
    rule_on(ItemEvent.objects.get(verb="escalate"), upheld=False, reason="It is clear.", by=lead_of(queue))
    item.refresh_from_db()
    assert item.state == ReviewItem.State.OPEN


def one_item_queue(people: int, needed: int) -> ReviewQueue:
    run = make_scored_run(make_answer_set(make_question_set(specs=1)), values=[3], metrics=["correctness"])
    return make_queue(run, people, metrics=["correctness"], reveal="never", reviews_needed=needed)


def taken(queue: ReviewQueue, place: int) -> Assignment:
    """The item in the hands of the person in that place."""
    found = next_assignment(queue, queue.members.order_by("pk")[place].reviewer)
    assert found
    return found


def test_an_item_that_some_rated_and_all_others_passed_on_is_a_leads_matter_too() -> None:
    queue = one_item_queue(people=3, needed=2)
    rated = taken(queue, 0)
    submit(rated, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=rated.reviewer)
    skip(taken(queue, 1))
    assert open_cases(queue.items.all()) == []
    skip(taken(queue, 2))
    (case,) = open_cases(queue.items.all())
    assert (case.why, case.item.state) == ((CaseReason.PASSED_ON,), ReviewItem.State.DISPUTED)
    metric = queue.metrics.get().metric
    adjudicate(case.item.answer, metric, value=3, reason="Nobody is left.", seen=0, by=lead_of(queue))
    assert open_cases(queue.items.all()) == []
    assert queue.items.get().state == ReviewItem.State.DONE


def test_nobody_is_left_once_all_for_whom_an_item_is_kept_passed_it_on() -> None:
    queue = one_item_queue(people=4, needed=1)
    item, kept = queue.items.get(), [member.reviewer for member in queue.members.order_by("pk")[:2]]
    set_item_reviewers(queue, [item.pk], kept, by=None)
    skip(taken(queue, 0))
    assert queue.items.get().state == ReviewItem.State.OPEN
    skip(taken(queue, 1))
    assert [case.why for case in open_cases(queue.items.all())] == [(CaseReason.PASSED_ON,)]


def test_an_item_that_needs_fewer_ratings_than_its_queue_is_done_after_a_ruling() -> None:
    queue = one_item_queue(people=2, needed=2)
    queue.items.update(reviews_needed=1)
    rated = taken(queue, 0)
    submit(rated, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=rated.reviewer)
    escalate(rated)
    rule_on(ItemEvent.objects.get(verb="escalate"), upheld=False, reason="It is clear.", by=lead_of(queue))
    assert queue.items.get().state == ReviewItem.State.DONE


def test_an_escalation_that_was_ruled_on_does_not_hold_the_item_later() -> None:
    queue = one_item_queue(people=4, needed=1)
    escalate(taken(queue, 0))
    rule_on(ItemEvent.objects.get(verb="escalate"), upheld=False, reason="It is clear.", by=lead_of(queue))
    skip(taken(queue, 1))
    skip(last := taken(queue, 2))
    assert queue.items.get().state == ReviewItem.State.DISPUTED  # three have passed it on
    again = undo(load_assignment(last.pk), by=last.reviewer)
    assert queue.items.get().state == ReviewItem.State.OPEN
    submit(again, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=last.reviewer)
    assert queue.items.get().state == ReviewItem.State.DONE


def test_amending_the_question_makes_the_next_version_of_the_set_and_leaves_the_answers() -> None:
    queue, item = disputed()
    question = item.answer.question
    made = amend_question(question, text=question.text, references=["A better reference."], by=lead_of(queue))
    assert made.created
    assert (made.question_set.version, QuestionSet.objects.count()) == (2, 2)
    amended = made.question_set.questions.get(external_id=question.external_id)
    assert amended.read().references == ("A better reference.",)
    item.answer.refresh_from_db()
    assert item.answer.question == question
    assert made.question_set.questions.count() == question.question_set.questions.count()


def test_amending_the_rubric_makes_a_version_and_old_ratings_keep_theirs() -> None:
    queue, _ = disputed()
    pinned = queue.metrics.get().rubric_version
    assert pinned is not None
    words: dict[str, Any] = {"question": "Is it right?", "texts": {"5": "Nothing is wrong."}, "by": lead_of(queue)}
    words["project"] = queue.project
    made = amend_rubric(pinned, "correctness", **words)
    assert made.created
    assert made.version.version == pinned.version + 1
    assert made.version.project == queue.project
    assert RubricVersion.objects.get(pk=pinned.pk).spec == pinned.spec
    assert set(Rating.objects.values_list("rubric_version", flat=True)) == {pinned.pk}
    same = amend_rubric(pinned, "correctness", **words)
    assert (same.created, same.version) == (False, made.version)


def rated_by_two(queue: ReviewQueue, apart: ReviewItem) -> None:
    """Both reviewers rate everything and differ about one item alone."""
    for member, value in zip(queue.members.order_by("pk"), (2, 5), strict=True):
        while (taken := next_assignment(queue, member.reviewer)) is not None:
            given = RatingInput(value=value if taken.item_id == apart.pk else 3)
            submit(taken, {"correctness": given}, idempotency_key="k", by=member.reviewer)


def test_an_old_difference_is_not_hidden_by_many_items_that_people_agree_on(
    django_assert_max_num_queries: DjangoAssertNumQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "BATCH_SIZE", 2)
    queue = queue_of()
    oldest = queue.items.order_by("pk")[0]
    rated_by_two(queue, oldest)
    assert queue.items.count() == 6
    with django_assert_max_num_queries(8):  # seals, who may be one, the items, and what was said of them
        assert [case.item for case in open_cases(queue.items.all(), limit=1)] == [oldest]


def test_what_somebody_said_something_about_is_looked_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "BATCH_SIZE", 1)
    queue = queue_of()
    oldest, newest = queue.items.order_by("pk")[0], queue.items.order_by("-pk")[0]
    rated_by_two(queue, newest)
    ItemEvent.objects.create(assignment=oldest.assignments.order_by("pk")[0], verb="escalate")
    assert [case.item for case in open_cases(queue.items.all(), limit=1)] == [oldest]
    assert [case.item for case in open_cases(queue.items.all())] == [oldest, newest]
