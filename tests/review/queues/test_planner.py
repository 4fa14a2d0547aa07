"""Next review planner: sentences, expected intervals, and draws allocated by earlier ratings."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from evaluation.core.roles import Role
from evaluation.models import Run
from review.models import ReviewQueue
from review.models.queue_spec import QueueSpec
from review.queues.creation import close_queue, make_queue
from review.queues.design import design_sample, expected_interval, judge_errors
from review.queues.planning import ReviewPlan, ReviewStaff, guess_note, next_review, plan_sentence, precision_goals
from review.queues.preview import queue_preview
from review.reports.inputs import load_inputs
from tests.factories import make_user
from tests.pages.markup import compact
from tests.review.builders import answer_rows, answers_to, assignment_of, draw_into, metric, queue_for, rate, run_over
from tests.review.clients import Caller
from tests.review.sampled import fill, rate_half, rate_other_parts

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """200 answers judged 5 and 3 by turns of two."""
    return fill(run_over(answers_to(["a"] * 200)), [5, 5, 3, 3] * 50)


@pytest.fixture
def rated_run(run: Run) -> Run:
    """The run after 100 ratings: experts agree with the 5s and alternate 2 and 4 on the 3s."""
    rate_half(run, [5, 2, 5, 4] * 25)
    return run


def test_unrated_judge_error_is_guessed_at_a_quarter_of_the_scale(run: Run) -> None:
    errors = judge_errors(load_inputs(run))
    assert errors is not None
    # three judged parts of levels 1 to 5 over 5: .8 x (.25 + .20 + .15) x .25
    assert errors.deviation == pytest.approx(0.12)
    assert errors.guessed
    plan = next_review(load_inputs(run))
    assert plan is not None
    # t(21) x .12 x sqrt((1 - 23/200) / 23) = 2.0796 x .02354 = .0490; with 22 it is .0503 and too wide
    assert (plan.items, plan.current_half_width) == (23, None)
    assert plan.half_width == pytest.approx(2.0796 * 0.12 * ((1 - 23 / 200) / 23) ** 0.5, rel=1e-3)
    # 30 s to read and 25 s for each of three criteria
    assert plan.minutes == pytest.approx(23 * 105 / 60)


def test_judge_errors_are_estimated_from_ratings(rated_run: Run) -> None:
    errors = judge_errors(load_inputs(rated_run))
    assert errors is not None
    assert (errors.parts, errors.guessed) == (("correctness",), False)
    assert len(errors.by_answer) == 100
    # the slope of experts on judge is 1 (5 at 5, 3 at 3), the errors 0, -1, 0, 1 of .25 / 5 each:
    # standard deviation sqrt(50 / 99) x .05
    assert errors.deviation == pytest.approx((50 / 99) ** 0.5 * 0.05, rel=1e-6)


def test_next_review_is_proposed_only_if_it_narrows_the_interval(rated_run: Run) -> None:
    rate_other_parts(rated_run)
    plan = next_review(load_inputs(rated_run))
    # t(98) x .0355 x sqrt((1 - 100/200) / 100) = .0050 already: nothing on the list is clearly narrower
    assert plan is None


def test_unrated_parts_are_reviewed_first(rated_run: Run) -> None:
    """Half of correctness is rated, and nothing of faithfulness and completeness (.8 x .35 = .28 of the score).

    The interval is .0053 + .14 either way (.0050 without the unseen). Taken to be .25 x .28 = .07 off, 20 labels, the
    least, give t(19) x .07 x sqrt((1 - 20/200) / 20) = .0311."""
    plan = next_review(load_inputs(rated_run))
    assert plan is not None
    assert (plan.items, plan.guessed, plan.waiting) == (20, True, False)
    assert plan.current_half_width == pytest.approx(0.1453, abs=1e-4)
    assert plan.half_width == pytest.approx((0.0050**2 + 0.0311**2) ** 0.5, abs=2e-4)


def test_no_review_is_proposed_without_overall_score_or_before_the_end(run: Run) -> None:
    assert next_review(load_inputs(fill(run_over(answers_to(["a"] * 9), judged=False), [None] * 9))) is None
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    assert next_review(load_inputs(Run.objects.get(pk=run.pk))) is None


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (
            ReviewPlan(60, 50, 0.0463, None, False, True),
            "Review 60 answers (about 50 min) for a margin of ±0.05.",
        ),
        (
            ReviewPlan(30, 25, 0.029, 0.05, False, True),
            "Review 30 more answers (about 25 min) to narrow the margin from ±0.05 to ±0.03.",
        ),
        (
            ReviewPlan(9, 8, 0.0, 0.05, False, True),
            "Review the remaining 9 answers (about 8 min). The score is then exact for this run.",
        ),
        (ReviewPlan(1, 0.02, None, None, False, True, True), "1 sampled answer is still unrated (about 60 s)."),
        (None, ""),
    ],
)
def test_the_plan_is_one_sentence(plan: ReviewPlan | None, sentence: str) -> None:
    with override("en"):
        assert plan_sentence(plan).startswith(sentence)
        assert guess_note(plan) == ""


def test_earlier_ratings_allocate_a_stratified_draw(rated_run: Run) -> None:
    planned = design_sample(load_inputs(rated_run), [metric("correctness")], 20)
    assert planned.uses_neyman
    # no error at 5, .05 x 1 at 3: nearly all of the draw goes to the 3s, at least two to the 5s
    preview = queue_preview(
        [rated_run],
        [metric("correctness")],
        QueueSpec(size=20),
        reviewers=[make_user(Role.REVIEWER, rated_run.project)],
        params=planned.params,
    )
    (sample,) = [run_sample.sample for run_sample in preview.plan.samples.values()]
    sampled_by_stratum: dict[str, int] = {}
    for row in sample:
        sampled_by_stratum[row.stratum] = sampled_by_stratum.get(row.stratum, 0) + row.sampled
    assert sampled_by_stratum.pop("certain") == 100
    assert len(sampled_by_stratum) == 2
    high_count, low_count = sorted(sampled_by_stratum.values())
    assert low_count > high_count >= 2
    assert low_count + high_count == 20
    assert preview.items == 20
    expected = expected_interval(planned, sample)
    assert expected is not None
    # the 100 drawn earlier are certain; of the other 100: (50/200)^2 x .64 x .0505^2 / 18 for the 3s and
    # (50/200)^2 x .96 x .004^2 / 2 for the 5s are 6.149e-6; t(20 - 2 - 1) x .0024797 = 2.1098 x .0024797
    assert expected.half_width == pytest.approx(0.0052317, rel=1e-3)
    assert not expected.guessed


def test_run_page_shows_the_next_review(run: Run) -> None:
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    text = client.get(reverse("run", args=[run.pk])).content.decode()
    assert "Review 23 answers (about 40 min) for a margin of ±0.05." in text
    assert "Rough estimate, as there are no ratings yet. Assumes the judge is off by a quarter of the scale." in text


def test_commands_and_rest_return_the_next_review(run: Run) -> None:
    sentence = "Review 23 answers (about 40 min) for a margin of ±0.05."
    plan = Caller(make_user(Role.VIEWER, run.project)).get(f"runs/{run.pk}/correction/").json()["next_review"]
    assert (plan["items"], plan["guessed"], plan["now"], plan["sentence"]) == (23, True, None, sentence)
    for command in ("results", "corrected_scores"):
        text, as_json = StringIO(), StringIO()
        call_command(command, str(run.pk), stdout=text)
        assert sentence in text.getvalue()
        call_command(command, str(run.pk), "--format", "json", stdout=as_json)
        assert json.loads(as_json.getvalue())["next_review"] == plan


def test_every_json_report_has_the_next_review(run: Run, tmp_path: Path) -> None:
    caller = Caller(make_user(Role.VIEWER, run.project))
    plan = caller.get(f"runs/{run.pk}/correction/").json()["next_review"]
    assert plan["items"] == 23
    report = b"".join(caller.get(f"runs/{run.pk}/report/").streaming_content)
    assert json.loads(report)["next_review"] == plan
    path = tmp_path / "report.json"
    call_command("export_report", str(run.pk), "--output", str(path), stdout=StringIO())
    assert json.loads(path.read_text(encoding="utf-8"))["next_review"] == plan
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    report = b"".join(caller.get(f"runs/{run.pk}/report/").streaming_content)
    assert json.loads(report)["next_review"] is None


def test_queue_preview_shows_the_expected_interval(run: Run) -> None:
    lead, reviewer = make_user(Role.LEAD, run.project), make_user(Role.REVIEWER, run.project)
    client = Client()
    client.force_login(lead)
    form_data = {
        "run": run.pk,
        "coverage": "corrected_overall",
        "strategy": "stratified",
        "size": 40,
        "metrics": ["correctness"],
        "reviewers": [reviewer.pk],
        "reviews_needed": 1,
        "mode": "blind",
        "reveal": "never",
        "reveal_threshold": 2,
        "adjudicate_from": 2,
        "overlap_percent": 100,
        "looks": 2,
        "repeat_percent": 0,
        "distribution": "pool",
        "reveal_percent": 10,
    }
    text = client.get(reverse("queue-preview"), form_data).content.decode()
    # a guess for one part: .8 x .25 x .25 = .05; t(37) x .05 x sqrt(.8 / 40) = .0143; .14 for the two unrated ones
    assert "±0.16" in text
    assert "Answers per stratum" in text


def test_precision_goals_give_answers_for_a_width_or_difference(run: Run) -> None:
    planned = design_sample(load_inputs(run), [metric("correctness")], 40, guessed_error=0.5)
    # half of the scale: .8 x .25 x .5 = .1 in both strata of 100 (5s and 3s of one category)
    goals = precision_goals(planned, ReviewStaff(2, 1, 60.0), width=0.04, difference=0.05)
    by_items = {goal.items: goal for goal in goals}
    (wide,) = [goal for goal in goals if goal.requested and goal.half_width > 0.03]
    # t(22) = 2.0739: 2.0739 x .1 x sqrt((1 - 25/200) / 25) is .0388; 24 give 2.0796 x .1 x sqrt(.88 / 24) = .0398
    assert (wide.items, wide.minutes_each) == (24, 12.0)
    assert wide.half_width == pytest.approx(2.0796 * 0.1 * (0.88 / 24) ** 0.5, rel=1e-3)
    difference_goals = [goal for goal in goals if goal.requested and goal is not wide]
    assert [goal.difference <= 0.05 for goal in difference_goals] == [True]
    assert max(by_items) < 200
    assert [goal.items for goal in goals] == sorted(by_items)


def test_preview_shows_precision_goals_and_takes_a_guess(run: Run) -> None:
    lead, reviewer = make_user(Role.LEAD, run.project), make_user(Role.REVIEWER, run.project)
    client = Client()
    client.force_login(lead)
    form_data = {
        "run": run.pk,
        "coverage": "corrected_overall",
        "strategy": "stratified",
        "size": 40,
        "metrics": ["correctness"],
        "reviewers": [reviewer.pk],
        "reviews_needed": 1,
        "mode": "blind",
        "reveal": "never",
        "reveal_threshold": 2,
        "adjudicate_from": 2,
        "overlap_percent": 100,
        "looks": 2,
        "repeat_percent": 0,
        "distribution": "pool",
        "reveal_percent": 10,
        "width": "0.04",
        "guess": "50",
    }
    text = compact(client.get(reverse("queue-preview"), form_data).content.decode())
    assert "Answers needed for a given margin" in text
    # Nobody would rate faithfulness and completeness, .8 x .35 = .28 of the score: .14 either way more
    assert '±0.18 <span class="chip">requested</span></th><td class="n"><button class="link" type="button" ' in text
    assert 'data-set="size" value="24"' in text
    page = client.get(reverse("queue-preview"), form_data | {"width": "0"}).content.decode()
    assert "Target margin (±): Ensure this value is greater than or equal to 0.001." in page


def test_second_queue_draws_from_the_unrated_answers() -> None:
    """100 of 200 rated with errors 0, -2, 0, 2 levels of .05: deviation .0711, half-width .0100 now."""
    run = fill(run_over(answers_to(["a"] * 200)), [5, 5, 3, 3] * 50)
    rate_half(run, [5, 1, 5, 5] * 25)
    rate_other_parts(run)
    plan = next_review(load_inputs(run))
    # halving would take the errors of the other 100 alone: nothing listed is a fifth below .0100
    assert plan is None


def test_drawn_answers_are_reviewed_first(run: Run) -> None:
    row, answers = metric("correctness"), answer_rows(run)
    queue = queue_for(run, [row], [reviewer := make_user()])
    draw_into(queue, run, [("all", 0.5, at % 2 == 0) for at in range(len(answers))])
    for answer, value in zip(answers[:60:2], [5, 2, 5, 4] * 8, strict=False):
        rate(assignment_of(queue, answer, reviewer, run), row, value)
    plan = next_review(load_inputs(run))
    assert plan is not None
    assert (plan.items, plan.waiting, plan.guessed) == (70, True, False)
    with override("en"):
        assert plan_sentence(plan).startswith("70 sampled answers are still unrated (about")


def test_next_step_links_to_the_form_or_to_the_queue_that_has_the_answers(run: Run) -> None:
    client = Client(headers={"accept-language": "en"})
    client.force_login(make_user(Role.LEAD, run.project))
    text = compact(client.get(reverse("run", args=[run.pk])).content.decode())
    form_address = f"{reverse('queue-new')}?run={run.pk}&amp;size=23"
    assert f'<a href="{form_address}">Review 23 answers' in text
    assert 'name="size" value="23"' in client.get(form_address.replace("&amp;", "&")).content.decode()
    reviewers = [make_user(Role.REVIEWER, run.project, first_name=name) for name in ("Lee", "Maya")]
    queue = make_queue(run, QueueSpec(size=23, name="Spring review", seed=3), reviewers=reviewers)
    text = compact(client.get(reverse("run", args=[run.pk])).content.decode())
    assert "23 sampled answers are still unrated" in text
    assert f'<a href="{reverse("queue", args=[queue.pk])}">Spring review</a>: 23 answers, for Lee, Maya.' in text
    assert form_address.partition("&")[0] not in text.partition("next-step")[2].partition("</p>")[0]
    close_queue(queue, by=None)
    text = compact(client.get(reverse("run", args=[run.pk])).content.decode())
    assert f'<a href="{reverse("queue-new")}?run={run.pk}">23 sampled answers are still unrated' in text


def test_margin_counts_on_answers_that_wait_in_another_queue(run: Run) -> None:
    client, reviewer = Client(headers={"accept-language": "en"}), make_user(Role.REVIEWER, run.project)
    client.force_login(make_user(Role.LEAD, run.project))
    queue = make_queue(run, QueueSpec(size=40, seed=3), reviewers=[reviewer])
    for answer in [item.answer for item in queue.items.select_related("answer")[:30]]:
        assignment = assignment_of(queue, answer, reviewer, run)
        for position, name in enumerate(("correctness", "faithfulness", "completeness")):
            rate(assignment, metric(name), [5, 3, 4][(answer.pk + position) % 3])
    form_data = {
        "run": run.pk, "coverage": "corrected_overall", "strategy": "stratified", "size": 20,
        "reviewers": [reviewer.pk], "reviews_needed": 1, "mode": "blind", "reveal": "never", "reveal_threshold": 2,
        "adjudicate_from": 2, "overlap_percent": 100, "looks": 2, "repeat_percent": 0, "distribution": "pool",
        "reveal_percent": 10,
    }  # fmt: skip
    text = client.get(reverse("queue-preview"), form_data).content.decode()
    assert "Assumes that the 10 answers waiting in open queues are rated too." in text


def run_make_queue(*arguments: str) -> str:
    output = StringIO()
    call_command("make_queue", *arguments, stdout=output)
    return output.getvalue()


def test_command_creates_a_queue_for_all_reviewers_of_the_project(run: Run) -> None:
    reviewers = [make_user(Role.REVIEWER, run.project) for _ in range(2)]
    text = run_make_queue(str(run.pk), "--size", "40", "--metrics", "correctness", "--seed", "5")
    queue = ReviewQueue.objects.get()
    assert text.splitlines()[0] == f"queue {queue.pk}"
    assert queue.items.count() == 40
    assert queue.seed == 5
    assert set(queue.members.values_list("reviewer", flat=True)) == {reviewer.pk for reviewer in reviewers}
    assert "expected margin of the corrected score" in text


def test_command_calls_a_full_review_exact() -> None:
    run = fill(run_over(answers_to(["a"] * 12)), [5, 5, 3, 3] * 3)
    make_user(Role.REVIEWER, run.project)
    text = run_make_queue(str(run.pk), "--size", "12", "--dry-run")
    assert "  12 answers, " in text
    assert "per reviewer: exact for this run" in text
    assert "a difference of 0.000" not in text


def test_dry_run_prints_json(run: Run) -> None:
    reviewer = make_user(Role.REVIEWER, run.project)
    report: dict[str, Any] = json.loads(
        run_make_queue(str(run.pk), "--size", "40", "--reviewers", reviewer.username, "--dry-run", "--format", "json")
    )
    assert (report["queue"], report["items"], report["frame"], report["per_reviewer"]) == (None, 40, 200, 40)
    assert report["guessed"] is True
    assert 0 < report["expected_half_width"] < 0.05
    assert not ReviewQueue.objects.exists()


def test_command_draws_as_many_answers_as_an_interval_needs(run: Run) -> None:
    make_user(Role.REVIEWER, run.project)
    report = json.loads(
        run_make_queue(*f"{run.pk} --metrics correctness --width 0.04 --guess 0.5 --dry-run --format json".split())
    )
    assert report["items"] == 24
    # Nobody would rate faithfulness and completeness, .8 x .35 = .28 of the score: .14 either way more
    assert 0.17 < report["expected_half_width"] <= 0.18
    assert [goal["items"] for goal in report["goals"] if goal["requested"]] == [24]
    text = run_make_queue(*f"{run.pk} --difference 0.05 --guess 0.25 --dry-run".split())
    assert "detects a difference of 0.050" in text or "detects a difference of 0.049" in text


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--reviewers", "nobody-here"], 2), (["--metrics", "unheard_of"], 2), ([], 1)]
)
def test_command_refuses_unknown_names(run: Run, arguments: list[str], code: int) -> None:
    with pytest.raises(CommandError) as raised:
        run_make_queue(str(run.pk), *arguments)
    assert raised.value.returncode == code


def test_command_distributes_items_in_turn_with_a_deadline(run: Run) -> None:
    reviewers = [make_user(Role.REVIEWER, run.project) for _ in range(2)]
    options = "--size 40 --strategy uniform --distribution round_robin --reviews-needed 2 --overlap-share 0.25"
    text = run_make_queue(str(run.pk), *options.split(), "--repeat-share", "0.1", "--deadline", "2036-12-01T18:00")
    queue = ReviewQueue.objects.get()
    # a quarter of 40 is rated twice: 50 ratings, 25 each; a tenth of them comes again: 27.5, so 28
    assert "28 ratings per reviewer" in text
    assert [reviewer.reservations.count() for reviewer in reviewers] == [25, 25]
    assert (queue.repeat_gap, queue.repeat_until) == (12, 13)
    assert queue.deadline is not None


def test_command_picks_questions_by_hand(run: Run) -> None:
    make_user(Role.REVIEWER, run.project)
    run_make_queue(str(run.pk), "--strategy", "hand_picked", "--questions", "q1", "q2")
    assert ReviewQueue.objects.get().items.count() == 2
    with pytest.raises(CommandError):
        run_make_queue(str(run.pk), "--strategy", "hand_picked", "--questions", "nothing-like-it")
