"""Adjudication cases, and the effect of a decision: authoritative, blind where possible, never on one's own rating."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from evaluation.accounts import audit
from evaluation.core.errors import DomainError
from evaluation.models import QuestionSet, RubricVersion, Run, User
from review.decisions import cases
from review.decisions.adjudication import adjudicate, amend_question, amend_rubric, rule_on
from review.decisions.cases import CaseReason, load_case, open_cases
from review.evidence.answers import record_exposure
from review.evidence.effective import ValueSource, effective_values
from review.evidence.rating_input import RatingInput
from review.models import Assignment, EventRuling, ItemEvent, Override, Rating, ReviewItem, ReviewQueue
from review.queues.creation import close_queue, reopen_queue
from review.queues.reassignment import set_item_reviewers
from review.ratings.leases import load_assignment, next_assignment
from review.ratings.submitting import escalate, flag, skip, submit, undo
from review.reports.as_json import summary_json
from review.reports.as_markdown import markdown_summary
from tests.concurrency import WAITS, run_concurrently
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user
from tests.pages.markup import compact
from tests.review.builders import make_report

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def make_adjudication_queue(*people: User, **fields: Any) -> ReviewQueue:
    rules = {"metrics": ["correctness"], "reveal": "never", "reviews_needed": 2}
    return make_queue(make_scored_run(values=[3]), list(people) or 2, **(rules | fields))


def rate_item(queue: ReviewQueue, item: ReviewItem, user: User, value: float) -> None:
    """Rate every item up to this one; earlier items get the value 3."""
    while True:
        assignment = next_assignment(queue, user)
        assert assignment is not None
        given_value = value if assignment.item_id == item.pk else 3
        submit(assignment, {"correctness": RatingInput(value=given_value)}, idempotency_key="k", by=user)
        if assignment.item_id == item.pk:
            return


def disputed_item(first_value: float = 1, second_value: float = 5) -> tuple[ReviewQueue, ReviewItem]:
    queue = make_adjudication_queue()
    item = queue.items.first()
    assert item is not None
    for member, value in zip(queue.members.order_by("pk"), (first_value, second_value), strict=True):
        rate_item(queue, item, member.reviewer, value)
    return queue, item


def make_lead(queue: ReviewQueue) -> User:
    return make_user("lead", queue.project)


def test_ratings_two_levels_apart_are_a_case_and_one_level_is_not() -> None:
    queue, item = disputed_item(2, 4)
    (case,) = open_cases(queue.items.all())
    assert (case.item, case.why, case.max_distance) == (item, (CaseReason.DIFFERENCE,), 2.0)
    other_queue, _ = disputed_item(3, 4)
    assert open_cases(other_queue.items.all()) == []


def test_queue_sets_the_case_distance_and_zero_disables_it() -> None:
    queue, item = disputed_item(3, 4)
    ReviewQueue.objects.filter(pk=queue.pk).update(adjudicate_from=1)
    assert [case.item for case in open_cases(queue.items.all())] == [item]
    ReviewQueue.objects.filter(pk=queue.pk).update(adjudicate_from=0)
    assert open_cases(queue.items.all()) == []


def test_flags_and_escalations_come_first_and_skips_by_all_are_a_case() -> None:
    queue = make_adjudication_queue()
    first, second = (member.reviewer for member in queue.members.order_by("pk"))
    flagged, escalated = next_assignment(queue, first), next_assignment(queue, second)
    assert flagged
    assert escalated
    flag(flagged, "bad_reference", "out of date")
    escalate(escalated, "please decide")
    assert {case.why[0] for case in open_cases(queue.items.all())} <= {CaseReason.FLAG, CaseReason.ESCALATION}
    assert open_cases(queue.items.all())[0].why[0] is CaseReason.ESCALATION
    single_review_queue = make_adjudication_queue(reviews_needed=1)
    for member in single_review_queue.members.all():
        assignment = next_assignment(single_review_queue, member.reviewer)
        assert assignment
        item = assignment.item
        skip(assignment)
    for member in single_review_queue.members.all():  # both pass the first one's item on
        while (
            assignment := next_assignment(single_review_queue, member.reviewer)
        ) is not None and assignment.item_id != item.pk:
            skip(assignment)
        if assignment:
            skip(assignment)
    assert CaseReason.PASSED_ON in {
        reason for case in open_cases(single_review_queue.items.all()) for reason in case.why
    }


def test_adjudication_overrides_ratings_without_changing_them() -> None:
    queue, item = disputed_item()
    metric = queue.metrics.get().metric
    run: Run = item.run
    assert effective_values(run).values[metric.pk][item.answer_id].value == 3.0  # (1 + 5) / 2
    decision = adjudicate(item.answer, metric, value=4, reason="The fee is right.", seen=0, by=make_lead(queue))
    effective = effective_values(run).values[metric.pk][item.answer_id]
    assert (effective.value, effective.source) == (4.0, ValueSource.OVERRIDE)
    assert (decision.kind, decision.judge_seen) == (Override.Kind.ADJUDICATION, False)
    assert sorted(Rating.objects.filter(answer=item.answer).values_list("value", flat=True)) == [1.0, 5.0]
    assert not load_case(item).is_open


def test_rating_cannot_be_undone_after_a_lead_decided() -> None:
    queue = make_queue(make_scored_run(values=[3]), reveal="never")
    (reviewer,) = [member.reviewer for member in queue.members.all()]
    assignment = next_assignment(queue, reviewer)
    assert assignment
    submit(
        assignment,
        {name: RatingInput(value=3) for name in ("correctness", "faithfulness")},
        idempotency_key="k",
        by=reviewer,
    )
    metric = queue.metrics.get(metric__name="correctness").metric
    adjudicate(assignment.item.answer, metric, value=4, reason="The fee is right.", seen=0, by=make_lead(queue))
    with pytest.raises(DomainError) as error_info:
        undo(load_assignment(assignment.pk), by=reviewer)
    assert error_info.value.code == "adjudicated_already"


def test_decision_records_that_the_lead_saw_the_judge() -> None:
    queue, item = disputed_item()
    lead = make_lead(queue)
    record_exposure(lead, item.answer, "answer")
    decision = adjudicate(item.answer, queue.metrics.get().metric, value=4, reason="r", seen=0, by=lead)
    assert decision.judge_seen is True


def test_ruling_is_not_stored_without_its_audit_event(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_scored_run(values=[3])
    reviewer, lead = make_user("reviewer", run.project), make_user("lead", run.project)
    queue = make_queue(run, [reviewer], metrics=["correctness"], reveal="never")
    assignment = next_assignment(queue, reviewer)
    assert assignment
    flag(assignment, "bad_question")

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(audit, "record", fail)
    with pytest.raises(RuntimeError, match="killed"):
        rule_on(ItemEvent.objects.get(verb="flag"), upheld=True, reason="unclear", by=lead)
    assert not EventRuling.objects.exists()


def test_adjudication_needs_a_lead_and_excludes_own_ratings_and_flags() -> None:
    run = make_scored_run(values=[3])
    lead = make_user("lead", run.project)
    queue = make_queue(run, [lead, make_user("reviewer", run.project)], metrics=["correctness"], reveal="never")
    assignment = next_assignment(queue, lead)
    assert assignment
    metric, answer = queue.metrics.get().metric, assignment.item.answer
    submit(assignment, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=lead)
    flag(assignment, "unsafe")
    with pytest.raises(DomainError) as error_info:
        adjudicate(answer, metric, value=4, reason="mine", seen=0, by=lead)
    assert error_info.value.code == "own_rating"
    with pytest.raises(DomainError) as error_info:
        rule_on(ItemEvent.objects.get(verb="flag"), upheld=True, reason="mine", by=lead)
    assert error_info.value.code == "own_flag"
    for role in ("viewer", "reviewer", "evaluator"):
        with pytest.raises(PermissionDenied):
            adjudicate(answer, metric, value=4, reason="r", seen=0, by=make_user(role, run.project))


def test_second_decision_on_a_changed_case_is_refused() -> None:
    queue, item = disputed_item()
    metric = queue.metrics.get().metric
    adjudicate(item.answer, metric, value=4, reason="first", seen=0, by=make_lead(queue))
    with pytest.raises(DomainError) as error_info:
        adjudicate(item.answer, metric, value=2, reason="second", seen=0, by=make_lead(queue))
    assert error_info.value.code == "changed_meanwhile"
    assert Override.objects.get().value == 4


@WAITS
@pytest.mark.django_db(transaction=True)
def test_simultaneous_decisions_store_only_one() -> None:
    queue, item = disputed_item()
    metric = queue.metrics.get().metric
    leads = [make_lead(queue), make_lead(queue)]
    results = run_concurrently(
        *(
            lambda lead=lead: adjudicate(item.answer, metric, value=4, reason="r", seen=0, by=lead)  # type: ignore[misc]
            for lead in leads
        )
    )
    assert Override.objects.count() == 1
    assert sorted(type(outcome).__name__ for outcome in results) == ["DomainError", "Override"]


@WAITS
@pytest.mark.django_db(transaction=True)
def test_adjudicating_while_managing_the_queue_never_deadlocks() -> None:
    """Both lock items and write to the audit log; a different lock order would deadlock."""
    queue, item = disputed_item()
    metric, leads = queue.metrics.get().metric, [make_lead(queue), make_lead(queue)]
    reviewers = [member.reviewer for member in queue.members.order_by("pk")]
    steps: list[Callable[[], object]] = [
        lambda: set_item_reviewers(queue, [item.pk], reviewers, by=leads[1]),
        lambda: close_queue(queue, by=leads[1]),
        lambda: reopen_queue(queue, by=leads[1]),
    ]
    for step_index in range(30):
        value = 1 + step_index % 5
        results = run_concurrently(
            lambda value=value: adjudicate(item.answer, metric, value=value, reason="r", seen=None, by=leads[0]),  # type: ignore[misc]
            steps[step_index % 3],
        )
        assert not [outcome for outcome in results if isinstance(outcome, Exception)]


def test_upheld_bad_reference_flag_removes_the_answer_from_all_means() -> None:
    queue = make_adjudication_queue()
    person = queue.members.order_by("pk")[0].reviewer
    assignment = next_assignment(queue, person)
    assert assignment
    flag(assignment, "bad_reference", "the rule was repealed")
    item, metric = assignment.item, queue.metrics.get().metric
    assert item.answer_id in effective_values(item.run).values[metric.pk]  # until a lead confirms it the value stands
    rule_on(ItemEvent.objects.get(verb="flag"), upheld=True, reason="It was.", by=make_lead(queue))
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
    client.force_login(make_lead(queue))
    page = compact(client.get(reverse("run", args=[item.run_id])).content.decode())
    assert "because a lead upheld a flag" in page
    assert f">{question}</a></div>" in page
    with pytest.raises(DomainError) as error_info:
        rule_on(ItemEvent.objects.get(verb="flag"), upheld=False, reason="No.", by=make_lead(queue))
    assert error_info.value.code == "ruled_already"


@pytest.mark.parametrize(("kind", "upheld"), [("bad_reference", False), ("unreadable", True)])
def test_dismissed_or_other_flags_leave_the_answer_in_place(kind: str, upheld: bool) -> None:
    queue = make_adjudication_queue()
    assignment = next_assignment(queue, queue.members.order_by("pk")[0].reviewer)
    assert assignment
    flag(assignment, kind, "the rule was repealed")
    rule_on(ItemEvent.objects.get(verb="flag"), upheld=upheld, reason="So it is.", by=make_lead(queue))
    item, metric = ReviewItem.objects.get(pk=assignment.item_id), queue.metrics.get().metric
    assert item.state == ReviewItem.State.OPEN
    assert item.answer_id in effective_values(item.run).values[metric.pk]


def test_dismissed_escalation_reopens_the_item() -> None:
    queue = make_adjudication_queue()
    assignment = next_assignment(queue, queue.members.order_by("pk")[0].reviewer)
    assert assignment
    escalate(assignment)
    item = assignment.item
    item.refresh_from_db()
    assert item.state == ReviewItem.State.DISPUTED
    rule_on(ItemEvent.objects.get(verb="escalate"), upheld=False, reason="It is clear.", by=make_lead(queue))
    item.refresh_from_db()
    assert item.state == ReviewItem.State.OPEN


def single_item_queue(people: int, needed: int) -> ReviewQueue:
    run = make_scored_run(make_answer_set(make_question_set(specs=1)), values=[3], metrics=["correctness"])
    return make_queue(run, people, metrics=["correctness"], reveal="never", reviews_needed=needed)


def take_item(queue: ReviewQueue, position: int) -> Assignment:
    """Take the next item for the member at this position."""
    assignment = next_assignment(queue, queue.members.order_by("pk")[position].reviewer)
    assert assignment
    return assignment


def test_item_rated_by_some_and_skipped_by_all_others_is_a_case() -> None:
    queue = single_item_queue(people=3, needed=2)
    assignment = take_item(queue, 0)
    submit(assignment, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=assignment.reviewer)
    skip(take_item(queue, 1))
    assert open_cases(queue.items.all()) == []
    skip(take_item(queue, 2))
    (case,) = open_cases(queue.items.all())
    assert (case.why, case.item.state) == ((CaseReason.PASSED_ON,), ReviewItem.State.DISPUTED)
    metric = queue.metrics.get().metric
    adjudicate(case.item.answer, metric, value=3, reason="Nobody is left.", seen=0, by=make_lead(queue))
    assert open_cases(queue.items.all()) == []
    assert queue.items.get().state == ReviewItem.State.DONE


def test_item_skipped_by_all_its_assigned_reviewers_is_a_case() -> None:
    queue = single_item_queue(people=4, needed=1)
    item, assigned = queue.items.get(), [member.reviewer for member in queue.members.order_by("pk")[:2]]
    set_item_reviewers(queue, [item.pk], assigned, by=None)
    skip(take_item(queue, 0))
    assert queue.items.get().state == ReviewItem.State.OPEN
    skip(take_item(queue, 1))
    assert [case.why for case in open_cases(queue.items.all())] == [(CaseReason.PASSED_ON,)]


def test_item_with_fewer_required_ratings_is_done_after_a_ruling() -> None:
    queue = single_item_queue(people=2, needed=2)
    queue.items.update(reviews_needed=1)
    assignment = take_item(queue, 0)
    submit(assignment, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=assignment.reviewer)
    escalate(assignment)
    rule_on(ItemEvent.objects.get(verb="escalate"), upheld=False, reason="It is clear.", by=make_lead(queue))
    assert queue.items.get().state == ReviewItem.State.DONE


def test_ruled_escalation_does_not_keep_the_item_disputed() -> None:
    queue = single_item_queue(people=4, needed=1)
    escalate(take_item(queue, 0))
    rule_on(ItemEvent.objects.get(verb="escalate"), upheld=False, reason="It is clear.", by=make_lead(queue))
    skip(take_item(queue, 1))
    skip(last := take_item(queue, 2))
    assert queue.items.get().state == ReviewItem.State.DISPUTED  # three have passed it on
    reopened = undo(load_assignment(last.pk), by=last.reviewer)
    assert queue.items.get().state == ReviewItem.State.OPEN
    submit(reopened, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=last.reviewer)
    assert queue.items.get().state == ReviewItem.State.DONE


def test_amended_question_creates_a_new_set_version_and_keeps_answers() -> None:
    queue, item = disputed_item()
    question = item.answer.question
    amendment = amend_question(question, text=question.text, references=["A better reference."], by=make_lead(queue))
    assert amendment.created
    assert (amendment.question_set.version, QuestionSet.objects.count()) == (2, 2)
    amended = amendment.question_set.questions.get(external_id=question.external_id)
    assert amended.read().references == ("A better reference.",)
    item.answer.refresh_from_db()
    assert item.answer.question == question
    assert amendment.question_set.questions.count() == question.question_set.questions.count()


def test_amended_rubric_creates_a_version_and_old_ratings_keep_theirs() -> None:
    queue, _ = disputed_item()
    pinned = queue.metrics.get().rubric_version
    assert pinned is not None
    words: dict[str, Any] = {"question": "Is it right?", "texts": {"5": "Nothing is wrong."}, "by": make_lead(queue)}
    words["project"] = queue.project
    amendment = amend_rubric(pinned, "correctness", **words)
    assert amendment.created
    assert amendment.version.version == pinned.version + 1
    assert amendment.version.project == queue.project
    assert RubricVersion.objects.get(pk=pinned.pk).spec == pinned.spec
    assert set(Rating.objects.values_list("rubric_version", flat=True)) == {pinned.pk}
    repeated = amend_rubric(pinned, "correctness", **words)
    assert (repeated.created, repeated.version) == (False, amendment.version)


def rate_all_with_dispute(queue: ReviewQueue, disputed: ReviewItem) -> None:
    """Let both reviewers rate everything and differ on one item only."""
    for member, value in zip(queue.members.order_by("pk"), (2, 5), strict=True):
        while (assignment := next_assignment(queue, member.reviewer)) is not None:
            rating = RatingInput(value=value if assignment.item_id == disputed.pk else 3)
            submit(assignment, {"correctness": rating}, idempotency_key="k", by=member.reviewer)


def test_old_difference_is_found_among_many_agreed_items(
    django_assert_max_num_queries: DjangoAssertNumQueries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases, "BATCH_SIZE", 2)
    queue = make_adjudication_queue()
    oldest_item = queue.items.order_by("pk")[0]
    rate_all_with_dispute(queue, oldest_item)
    assert queue.items.count() == 6
    with django_assert_max_num_queries(8):  # seals, who may be one, the items, and what was said of them
        assert [case.item for case in open_cases(queue.items.all(), limit=1)] == [oldest_item]


def test_items_with_events_are_listed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "BATCH_SIZE", 1)
    queue = make_adjudication_queue()
    oldest_item, newest_item = queue.items.order_by("pk")[0], queue.items.order_by("-pk")[0]
    rate_all_with_dispute(queue, newest_item)
    ItemEvent.objects.create(assignment=oldest_item.assignments.order_by("pk")[0], verb="escalate")
    assert [case.item for case in open_cases(queue.items.all(), limit=1)] == [oldest_item]
    assert [case.item for case in open_cases(queue.items.all())] == [oldest_item, newest_item]
