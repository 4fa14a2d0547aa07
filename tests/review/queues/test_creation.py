"""Queue creation: several runs in one queue, random order, pinned rubrics, and refusals."""

from __future__ import annotations

import itertools

import pytest
from django.db import IntegrityError, transaction

from evaluation.core.errors import DomainError, UnknownName
from evaluation.models import AnswerSet, AuditEvent, MetricDefinition
from review.evidence.answers import ring_offset, shuffle_keys, spaced_order
from review.models import ReviewItem, ReviewQueue
from review.queues.sampling import split_size
from tests.factories import (
    make_answer_set,
    make_draft_run,
    make_project,
    make_question_set,
    make_queue,
    make_scored_run,
    make_user,
)

pytestmark = pytest.mark.django_db


def two_systems(count: int = 6) -> tuple[AnswerSet, AnswerSet]:
    questions = make_question_set(specs=count)
    return make_answer_set(questions), make_answer_set(questions)


def queue_over(runs: object, **fields: object) -> ReviewQueue:
    first = runs[0] if isinstance(runs, list) else runs
    rules = {"metrics": ["correctness"], "strategy": "all", "seed": 5}
    reviewers = {"reviewers": [make_user("reviewer", first.project)]} if "reviewers" not in fields else {}
    return make_queue(runs, **(rules | reviewers | fields))


def test_two_systems_are_mixed_in_one_random_order() -> None:
    first, second = two_systems(20)
    queue = queue_over([make_scored_run(first), make_scored_run(second)])
    sets = list(queue.items.order_by("shuffle_key").values_list("answer__answer_set", flat=True))
    assert len(sets) == 40
    assert sum(a != b for a, b in itertools.pairwise(sets)) > 1
    assert queue.draws.count() == 2


def test_runs_over_the_same_answers_share_their_items() -> None:
    answers = make_answer_set()
    queue = queue_over([make_scored_run(answers), make_scored_run(answers)])
    assert queue.items.count() == 6
    assert queue.draws.count() == 2


def test_the_size_is_shared_by_the_size_of_the_frames() -> None:
    large, small = make_question_set(specs=9), make_question_set(specs=3)
    runs = [make_draft_run(make_answer_set(large)), make_draft_run(make_answer_set(small))]
    # 7 answers of 12: 7 x 9/12 = 5.25 and 7 x 3/12 = 1.75; the larger remainder takes the last one
    assert split_size(runs, 7) == [5, 2]
    assert split_size(runs[:1], 7) == [7]


def test_draws_of_several_runs_have_seeds_of_their_own() -> None:
    first, second = two_systems()
    queue = queue_over([make_scored_run(first), make_scored_run(second)], strategy="uniform", size=6)
    assert len(set(queue.draws.values_list("seed", flat=True))) == 2


def test_the_rubric_of_the_runs_judge_is_pinned() -> None:
    run = make_scored_run()
    assert queue_over(run).metrics.get().rubric_version == run.judges.get().rubric_version


def test_a_metric_is_rated_in_the_version_the_run_was_scored_with() -> None:
    run = make_scored_run(metrics=["correctness"])
    scored = MetricDefinition.objects.get(name="correctness")
    MetricDefinition.objects.create(name="correctness", version=scored.version + 1, kind="judge", scale="1..5")
    assert queue_over(run).metrics.get().metric == scored


def test_rule_metrics_and_unscored_ones_can_be_rated_too() -> None:
    queue = queue_over(make_scored_run(metrics=["correctness"]), metrics=["keyword_hit", "completeness"])
    rows = list(queue.metrics.order_by("position").values_list("metric__name", "rubric_version__family"))
    assert rows == [("keyword_hit", None), ("completeness", "answer_quality")]


def test_order_and_offsets_depend_on_the_seed_only() -> None:
    assert shuffle_keys(5, 3) == shuffle_keys(5, 3) != shuffle_keys(6, 3)
    assert ring_offset(5, 1) == ring_offset(5, 1) != ring_offset(5, 2)
    queue = queue_over(make_scored_run())
    assert sorted(queue.items.values_list("shuffle_key", flat=True)) == sorted(shuffle_keys(5, 6))
    member = queue.members.get()
    assert member.offset == ring_offset(5, member.reviewer_id)


def test_answers_to_one_question_do_not_follow_each_other() -> None:
    assert spaced_order(["a", "a", "b", "c", "d", "b"]) == [0, 2, 3, 4, 1, 5]
    assert spaced_order(["a", "a", "b"]) == [0, 2, 1]  # three others are not there
    assert spaced_order(["a", "a", "a"]) == [0, 1, 2]
    assert spaced_order([]) == []
    queue = queue_over([make_scored_run(answers) for answers in two_systems(30)])
    question_ids = list(queue.items.order_by("shuffle_key").values_list("answer__question__external_id", flat=True))
    assert len(question_ids) == 60
    assert all(previous != following for previous, following in itertools.pairwise(question_ids))


@pytest.mark.parametrize("levels", [-1, 2e6])
def test_adjudication_threshold_has_limits(levels: float) -> None:
    with pytest.raises(DomainError) as error:
        queue_over(make_scored_run(), adjudicate_from=levels)
    assert (error.value.code, error.value.params["field"]) == ("setting_range", "adjudicate_from")


def test_an_unnamed_queue_is_named_by_its_questions_and_a_number() -> None:
    run = make_scored_run()
    assert queue_over(run).name == f"{run.answer_set.question_set.name} · 1"
    assert queue_over(run, name="  March, second round ").name == "March, second round"


def test_system_name_is_allowed_in_the_queue_name_only_when_shown() -> None:
    run = make_scored_run()
    system = run.answer_set.system_version.system.name
    assert queue_over(run, name=f"Answers of {system}", hide_system=False).name == f"Answers of {system}"
    with pytest.raises(DomainError) as error:
        queue_over(run, name=f"Answers of {system.upper()}")
    assert (error.value.code, error.value.params["words"]) == ("queue_name_tells", [system])


def test_queue_creation_is_audited_with_whether_systems_are_hidden() -> None:
    run = make_scored_run()
    lead = make_user("lead", run.project)
    queue = queue_over(run, hide_system=False, by=lead)
    event = AuditEvent.objects.get(verb="queue_made")
    assert (event.actor, event.object_id) == (lead, str(queue.pk))
    assert event.detail["hide_system"] is False


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"reviewers": []}, "no_reviewers"),
        ({"reviews_needed": 2}, "too_few_reviewers"),
        ({"reviews_needed": 11}, "setting_range"),
        ({"lease_minutes": 0}, "setting_range"),
        ({"reveal_share": 1.5}, "setting_range"),
        ({"strategy": "stratified", "size": 1, "params": None}, "draw_too_small"),
        ({"strategy": "hand_picked"}, "nothing_picked"),
        ({"strategy": "uniform", "size": 0}, "size_below_one"),
        ({"strategy": "fails_plus_share"}, "no_fail_threshold"),
    ],
)
def test_invalid_queue_is_refused_and_creates_nothing(fields: dict[str, object], code: str) -> None:
    run = make_scored_run(values=[None, 1, 5])
    with pytest.raises(DomainError) as error:
        queue_over(run, **fields)
    assert error.value.code == code
    assert not ReviewQueue.objects.exists()


def test_reviewers_without_a_role_in_the_project_are_named() -> None:
    run = make_scored_run()
    stranger = make_user("reviewer", make_project(), username="park")
    with pytest.raises(DomainError) as error:
        queue_over(run, reviewers=[stranger])
    assert (error.value.code, error.value.params["people"]) == ("not_in_project", ["park"])


def test_an_unknown_metric_is_named_with_the_near_ones() -> None:
    with pytest.raises(UnknownName, match="did you mean correctness"):
        queue_over(make_scored_run(), metrics=["corectness"])


def test_runs_of_two_projects_make_no_queue() -> None:
    with pytest.raises(DomainError) as error:
        queue_over([make_scored_run(), make_scored_run()])
    assert error.value.code == "several_projects"


def test_database_refuses_an_answer_twice_on_one_occasion() -> None:
    item = queue_over(make_scored_run()).items.first()
    assert item
    with pytest.raises(IntegrityError), transaction.atomic():
        ReviewItem.objects.create(queue=item.queue, answer=item.answer, run=item.run, shuffle_key=1)
