"""Queues of a release do not ask again for answers that equal a rated one of an earlier release."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.errors import DomainError
from evaluation.models import Run, User
from review.models import Draw, ReviewItem, ReviewQueue
from review.models.queue_spec import QueueSpec
from review.queues.creation import make_queue
from review.queues.design import design_sample
from review.reports.inputs import load_inputs
from review.statistics.correction.outcome import Target
from review.statistics.sampling.member import DrawParams
from tests.factories import make_answer_set, make_judge, make_user, unique
from tests.review.builders import answer_rows, answers_to, assignment_of, imported_rating, metric, rate, run_over
from tests.review.clients import Caller
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db
JUDGED = [5, 5, 3, 3] * 10
METRIC = ["correctness"]


@pytest.fixture
def earlier_run() -> Run:
    """Forty answers. The first thirty are rated 1 to 5 in turn."""
    questions = answers_to(["a"] * 40).question_set
    run = fill(run_over(make_answer_set(questions, texts=[f"answer {at}" for at in range(40)])), JUDGED)
    for at, answer in enumerate(answer_rows(run)[:30]):
        imported_rating(answer, metric("correctness"), "anna", 1 + at % 5, sampling="uniform")
    return run


@pytest.fixture
def release(earlier_run: Run) -> Run:
    """The first ten answers are new, so 20 ratings stand."""
    texts = [f"{'new ' if at < 10 else ''}answer {at}" for at in range(40)]
    answers = make_answer_set(earlier_run.answer_set.question_set, texts=texts)
    return fill(run_over(answers, judge=make_judge(earlier_run.project, unique("judge"))), JUDGED)


def reviewer_of(run: Run) -> User:
    return make_user("reviewer", run.project)


def queue_over(run: Run, **fields: object) -> ReviewQueue:
    spec = QueueSpec(**{"size": 8, "strategy": "stratified", "seed": 1, **fields})
    return make_queue(run, spec, metrics=METRIC, reviewers=[reviewer_of(run)])


def queued_positions(queue: ReviewQueue, run: Run) -> set[int]:
    places = {answer.pk: at for at, answer in enumerate(answer_rows(run))}
    return {places[pk] for pk in ReviewItem.objects.filter(queue=queue).values_list("answer", flat=True)}


@pytest.mark.parametrize(("strategy", "count"), [("stratified", 8), ("uniform", 8), ("all", 20)])
def test_standing_answers_are_not_asked_again(release: Run, strategy: str, count: int) -> None:
    positions = queued_positions(queue_over(release, strategy=strategy), release)
    assert len(positions) == count
    assert positions <= {*range(10), *range(30, 40)}


def test_chosen_questions_are_asked_although_their_ratings_stand(release: Run) -> None:
    keys = frozenset(answer.pk for answer in answer_rows(release)[10:12])
    spec = QueueSpec(strategy="hand_picked", seed=1)
    queue = make_queue(release, spec, metrics=METRIC, reviewers=[reviewer_of(release)], params=DrawParams(keys=keys))
    assert queued_positions(queue, release) == {10, 11}


def test_answer_without_a_rating_of_every_criterion_is_drawn(release: Run) -> None:
    """Nobody rated faithfulness, so no rating stands for the queue of both."""
    spec = QueueSpec(size=40, strategy="all", seed=1)
    queue = make_queue(release, spec, metrics=["correctness", "faithfulness"], reviewers=[reviewer_of(release)])
    assert queued_positions(queue, release) == set(range(40))


def test_nothing_is_left_to_ask_where_all_ratings_stand(earlier_run: Run) -> None:
    texts = [f"answer {at}" for at in range(30)]
    answers = make_answer_set(earlier_run.answer_set.question_set, texts=[*texts, *[f"new {at}" for at in range(10)]])
    run = fill(run_over(answers, judge=make_judge(earlier_run.project, unique("judge"))), JUDGED)
    for answer in answer_rows(run)[30:]:
        imported_rating(answer, metric("correctness"), "anna", 3)
    repeated = make_answer_set(run.answer_set.question_set, texts=[answer.text for answer in answer_rows(run)])
    last = fill(run_over(repeated, judge=make_judge(run.project, unique("judge"))), JUDGED)
    with pytest.raises(DomainError, match="all_rated"):
        queue_over(last)


def test_standing_ratings_and_the_new_sample_give_the_score(release: Run) -> None:
    """All 20 others are asked and rated 4: (20 x 3 + 20 x 4) / 40, exact for this run."""
    queue = queue_over(release, strategy="all")
    person = queue.members.get().reviewer
    for at in sorted(queued_positions(queue, release)):
        rate(assignment_of(queue, answer_rows(release)[at], person, release), metric("correctness"), 4)
    basis = load_inputs(release)
    figure = basis.correction.of_metric(metric("correctness"), target=Target.THIS_RUN)
    assert (figure.low, figure.value, figure.high) == (3.5, 3.5, 3.5)
    assert (figure.extra["labels"], figure.extra["carried"]) == (40, 20)


def test_second_draw_keeps_standing_answers_certain(release: Run) -> None:
    queue = queue_over(release)
    first_positions = queued_positions(queue, release)
    for at in first_positions:
        person = queue.members.get().reviewer
        rate(assignment_of(queue, answer_rows(release)[at], person, release), metric("correctness"), 4)
    second = queue_over(release)
    positions = queued_positions(second, release)
    assert len(positions) == 8
    assert positions <= {*range(10), *range(30, 40)} - first_positions
    draw = Draw.objects.get(queue=second)
    assert draw.planned_after_looking
    assert draw.frame.filter(stratum="standing", sampled=False, probability=1).count() == 20


def test_design_expects_the_interval_of_the_rest(release: Run) -> None:
    design = design_sample(load_inputs(release), [metric("correctness")], 8)
    keys = {answer.pk for answer in answer_rows(release)[10:30]}
    assert design.params.certain == keys


def test_waiting_answers_leave_out_standing_ones(release: Run) -> None:
    queue_over(release)
    basis = load_inputs(release)
    waiting = basis.samples.unserved_answers(metric("correctness").pk, basis.evidence.ratings)
    assert len(waiting) == 8


def test_rotated_criteria_are_not_asked_where_they_stand(earlier_run: Run, release: Run) -> None:
    """Of four criteria each answer gets three. Where correctness stands, only the others are asked."""
    names = ["correctness", "faithfulness", "completeness", "answer_relevance"]
    spec = QueueSpec(size=40, strategy="uniform", seed=1)
    queue = make_queue(release, spec, metrics=names, reviewers=[reviewer_of(release)])
    standing = {answer.pk for answer in answer_rows(release)[10:30]}
    asked = dict(ReviewItem.objects.filter(queue=queue).values_list("answer", "metric_ids"))
    assert len(asked) == 40
    assert not any(metric("correctness").pk in asked[pk] for pk in standing)
    assert any(metric("correctness").pk in asked[pk] for pk in asked.keys() - standing)


def test_recheck_takes_ten_standing_answers(release: Run) -> None:
    """Of 20 standing answers 10 are due, whatever the size; another queue finds none."""
    queue = queue_over(release, strategy="recheck", size=3)
    positions = queued_positions(queue, release)
    assert len(positions) == 10
    assert positions <= set(range(10, 30))
    assert set(Draw.objects.get(queue=queue).frame.values_list("probability", flat=True)) == {None}
    with pytest.raises(DomainError, match="nothing_to_recheck"):
        queue_over(release, strategy="recheck")


def test_recheck_asks_only_criteria_whose_rating_stands(release: Run) -> None:
    spec = QueueSpec(strategy="recheck", seed=1)
    queue = make_queue(release, spec, metrics=["correctness", "faithfulness"], reviewers=[reviewer_of(release)])
    asked = ReviewItem.objects.filter(queue=queue).values_list("metric_ids", flat=True)
    assert {pk for ids in asked for pk in ids} == {metric("correctness").pk}


def test_first_release_has_nothing_to_recheck(earlier_run: Run) -> None:
    with pytest.raises(DomainError, match="nothing_to_recheck"):
        queue_over(earlier_run, strategy="recheck")


def test_recheck_leaves_the_corrected_score_alone_but_for_the_new_values(release: Run) -> None:
    """All 20 others are rated 4. A recheck moves one of the standing answers from 1 to 5: + 4 / 40."""
    queue = queue_over(release, strategy="all")
    person = queue.members.get().reviewer
    for at in queued_positions(queue, release):
        rate(assignment_of(queue, answer_rows(release)[at], person, release), metric("correctness"), 4)
    recheck = queue_over(release, strategy="recheck")
    person = recheck.members.get().reviewer
    at = 10
    rate(assignment_of(recheck, answer_rows(release)[at], person, release), metric("correctness"), 5)
    figure = load_inputs(release).correction.of_metric(metric("correctness"), target=Target.THIS_RUN)
    assert (figure.low, figure.value, figure.high) == (3.6, 3.6, 3.6)


def test_command_form_and_rest_offer_rechecks(release: Run, client: Client) -> None:
    lead = make_user("lead", release.project)
    person = reviewer_of(release)
    client.force_login(lead)
    page = client.get(reverse("queue-new"), {"run": release.pk, "strategy": "recheck"}).content.decode()
    assert '<option value="recheck" selected>' in page
    output = StringIO()
    call_command("make_queue", str(release.pk), "--strategy", "recheck", "--metrics", "correctness", "--reviewers",
                 person.username, stdout=output)  # fmt: skip
    assert output.getvalue().startswith("queue ")
    body = {"runs": [release.pk], "metrics": METRIC, "reviewers": [person.username], "strategy": "recheck"}
    response = Caller(lead).post("review-queues/", body)
    assert (response.status_code, response.json()["code"]) == (409, "nothing_to_recheck")
