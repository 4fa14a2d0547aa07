"""Planned rounds of a review: queues, the composite score of a run, and gates at each look."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.models import Run, User
from review.comparisons.gates import run_gate
from review.models import Reservation, ReviewQueue
from review.models.queue_spec import QueueSpec
from review.queues.creation import close_queue, make_queue
from review.queues.distribution import NamedReviewers
from review.queues.planning import next_review
from review.queues.rounds import make_next_round, round_plan
from review.reports.as_markdown import markdown_summary
from review.reports.entries import Output
from review.reports.estimates import correction_sheet
from review.reports.figure import Figure, notes
from review.reports.figure_cards import overall_card
from review.reports.gate import GateRequest
from review.reports.inputs import load_inputs
from review.reports.report import build_report
from tests.factories import make_user
from tests.review.builders import answers_to, assignment_of, metric, rate, run_over
from tests.review.clients import Caller
from tests.review.queues.test_outcome import judged_runs, rate_items
from tests.review.sampled import fill, rate_other_parts

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """120 answers judged 5 and 3 by turns."""
    return fill(run_over(answers_to(["a"] * 120)), [5, 3] * 60)


@pytest.fixture
def reviewer(run: Run) -> User:
    return make_user(Role.REVIEWER, run.project)


def open_queue(run: Run, reviewer: User, **settings: object) -> ReviewQueue:
    spec = QueueSpec(**{"size": 30, "strategy": "uniform", "seed": 1} | settings)
    return make_queue(run, spec, metrics=["correctness"], reviewers=[reviewer])


def rate_all(queue: ReviewQueue, reviewer: User) -> None:
    """Rate every item: half of the answers one level below the judge, half as the judge."""
    for item in queue.items.select_related("answer", "run"):
        judged = load_score(item.run, item.answer_id)
        rate(
            assignment_of(queue, item.answer, reviewer, item.run),
            metric("correctness"),
            judged - item.answer_id // 2 % 2,
        )
    queue.items.update(state="done")


def load_score(run: Run, answer_id: int) -> int:
    return int(run.scores.get(answer_id=answer_id, metric=metric("correctness")).value)


def corrected(run: Run) -> Figure:
    return correction_sheet(load_inputs(run)).estimates["correctness"].corrected_this_run


@pytest.mark.both_databases
def test_next_round_follows_the_plan(run: Run, reviewer: User) -> None:
    first = open_queue(run, reviewer, later_size=20, looks=3, guideline="Be fair.")
    plan = round_plan(first)
    assert (plan.number, plan.looks, plan.next_size, plan.waiting) == (1, 3, 20, 30)
    assert plan.confidence == pytest.approx(1 - 0.05 / 3)
    with pytest.raises(DomainError, match="round_not_finished"):
        make_next_round(first, by=None)
    rate_all(first, reviewer)
    second = make_next_round(first, by=None)
    assert (second.first_round, second.round_number, second.looks, second.later_size) == (first, 2, 3, 20)
    assert (second.guideline, second.name) == ("Be fair.", f"{first.name} (2)")
    assert [member.reviewer for member in second.members.all()] == [reviewer]
    draw = second.draws.get()
    assert (draw.planned_after_looking, draw.strategy, draw.params["size"]) == (True, "uniform", 20)
    assert second.items.count() == 20
    close_queue(second, by=None)
    # Any queue of the plan leads to the latest one.
    third = make_next_round(first, by=None)
    assert (third.first_round, third.round_number) == (first, 3)
    assert round_plan(first).next_size is None
    close_queue(third, by=None)
    with pytest.raises(DomainError, match="no_round_left"):
        make_next_round(third, by=None)


def test_queues_that_correct_nothing_plan_one_round(run: Run, reviewer: User) -> None:
    assert open_queue(run, reviewer, strategy="all").looks == 1
    assert open_queue(run, reviewer, mode="assisted").looks == 1


def test_score_combines_planned_rounds(run: Run, reviewer: User) -> None:
    first = open_queue(run, reviewer)
    rate_all(first, reviewer)
    alone = corrected(run)
    assert (alone.looks, alone.is_planned, alone.extra.get("rounds")) == (2, True, None)
    assert any("Round 1 of 2 planned" in note and "97.5%" in note for note in notes(alone))
    rate_other_parts(run)
    plan = next_review(load_inputs(run))
    assert plan is not None
    assert (plan.items, plan.queue_id) == (30, first.pk)
    rate_all(make_next_round(first, by=None), reviewer)
    both = corrected(run)
    assert both.is_planned
    # 120, then 90, then 60 answers are left: (1/90 - 1/120) : (1/60 - 1/90) is 1 : 2.
    assert [entry["weight"] for entry in both.extra["rounds"]] == pytest.approx([1 / 3, 2 / 3])
    assert [entry["labels"] for entry in both.extra["rounds"]] == [30, 30]
    assert both.extra["labels"] == 60
    # As one draw: the margin falls by the root of (1/60 - 1/120) / (1/30 - 1/120), which is .58.
    assert 0.5 < (both.high - both.low) / (alone.high - alone.low) < 0.66
    assert any("2 rounds of review (33%, 67%)" in note for note in notes(both))
    report = build_report(load_inputs(run))
    with override("en"):
        assert "Round 2 of 2 planned" in markdown_summary(report, None)
        assert "Round 2 of 2 planned" in " ".join(overall_card(report, {}, Output.HTML).remarks)


def test_unplanned_queue_has_half_of_the_weight_and_no_verdict(run: Run, reviewer: User) -> None:
    rate_other_parts(run)
    rate_all(open_queue(run, reviewer), reviewer)
    gate = run_gate(run, GateRequest(fail_under=0.1))
    assert gate is not None
    assert (gate.verdict, gate.looks) == ("pass", 2)
    second = open_queue(run, reviewer, seed=2)
    assert (second.looks, second.round_number) == (1, 1)
    rate_all(second, reviewer)
    figure = corrected(run)
    assert [entry["weight"] for entry in figure.extra["rounds"]] == [0.5, 0.5]
    assert not figure.is_planned
    gate = run_gate(run, GateRequest(fail_under=0.1))
    assert gate is not None
    assert (gate.verdict, gate.checks[0].reason) == ("undecided", "unplanned_round")
    assert gate.checks[0].low is not None


def test_gate_shares_its_error_over_the_planned_rounds(run: Run, reviewer: User) -> None:
    rate_other_parts(run)
    rate_all(open_queue(run, reviewer), reviewer)
    wide = run_gate(run, GateRequest(fail_under=0.1))
    basis = load_inputs(run)
    at_975 = basis.correction.overall(basis.profile, basis.machine, confidence=0.975)
    assert wide is not None
    assert (wide.checks[0].low, wide.checks[0].high) == (at_975.low, at_975.high)


def test_rating_all_remaining_answers_is_a_planned_look(run: Run, reviewer: User) -> None:
    rate_all(open_queue(run, reviewer), reviewer)
    rate_all(open_queue(run, reviewer, strategy="all", seed=2), reviewer)
    figure = corrected(run)
    assert figure.is_planned
    assert figure.low == figure.high


def test_page_rest_and_command_start_the_next_round(run: Run, reviewer: User) -> None:
    first = open_queue(run, reviewer, looks=4)
    lead = make_user(Role.LEAD, run.project)
    caller = Caller(lead)
    refusal = caller.post(f"review-queues/{first.pk}/next-round/")
    assert refusal.status_code == 409
    assert "30 answers of this round" in refusal.content.decode()
    rate_all(first, reviewer)
    second = caller.post(f"review-queues/{first.pk}/next-round/").json()
    assert (second["round_number"], second["first_round"], second["looks"]) == (2, first.pk, 4)
    close_queue(ReviewQueue.objects.get(pk=second["id"]), by=None)
    out = StringIO()
    call_command("next_round", first.pk, stdout=out)
    third = ReviewQueue.objects.get(pk=int(out.getvalue().split()[1]))
    assert third.round_number == 3
    close_queue(third, by=None)
    client = Client(headers={"accept-language": "en"})
    client.force_login(lead)
    page = client.get(reverse("queue", args=[third.pk])).content.decode()
    assert "3 of 4 planned" in page
    assert "Start next round (30 answers)" in page
    client.post(reverse("queue-next-round", args=[third.pk]))
    assert ReviewQueue.objects.filter(first_round=first, round_number=4).count() == 1


def test_next_round_keeps_rotated_criteria_and_runs() -> None:
    runs = judged_runs(60, 4, "run_means", 2, same_answers=False)
    person = make_user(Role.REVIEWER, runs[0].project)
    first = make_queue(runs, QueueSpec(size=60, seed=3, later_size=30), reviewers=[person])
    rate_items(first, person)
    close_queue(first, by=None)
    second = make_next_round(first, by=None)
    assert list(second.metrics.values_list("metric", flat=True)) == list(first.metrics.values_list("metric", flat=True))
    draws = list(second.draws.all())
    assert {draw.run_id for draw in draws} == {run.pk for run in runs}
    assert all(draw.metric_id and draw.planned_after_looking for draw in draws)
    sizes = {draw.run_id: draw.params["size"] for draw in draws}
    assert sum(sizes.values()) == 30


def test_next_round_leaves_answers_by_tag_for_a_lead_to_assign(run: Run, reviewer: User) -> None:
    spec = QueueSpec(size=30, seed=3, distribution="by_tag")
    first = make_queue(run, spec, reviewers=[reviewer], named_reviewers=NamedReviewers({"a": [reviewer]}))
    close_queue(first, by=None)
    second = make_next_round(first, by=None)
    assert second.distribution == "per_item"
    assert not Reservation.objects.filter(item__queue=second).exists()
