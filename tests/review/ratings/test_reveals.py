"""Reveals after the rating: when the judge is shown, its values, and the reviewer's final rating."""

from __future__ import annotations

import math

import pytest

from evaluation.core.errors import DomainError
from evaluation.core.scales import Scale
from evaluation.models import User
from review.evidence.answers import is_sampled
from review.evidence.rating_input import RatingInput, RatingUpdate, scale_distance
from review.models import Assignment, Exposure, Rating, ReviewQueue
from review.ratings.leases import load_assignment, next_assignment
from review.ratings.reveals import finalise, reveal
from review.ratings.submitting import SubmitResult, submit
from tests.factories import make_answer_set, make_profile, make_question_set, make_queue, make_scored_run, make_user

pytestmark = pytest.mark.django_db


def rate_item(judge: float | None, own: float, **fields: object) -> SubmitResult:
    """Rate one item ``own`` that the judge scored ``judge``."""
    run = make_scored_run(make_answer_set(make_question_set(specs=1)), values=[judge], metrics=["correctness"])
    rules = {"metrics": ["correctness"], "reveal_share": 0.0, "reveal_threshold": 2.0}
    queue = make_queue(run, **(rules | fields))
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    return submit(assignment, {"correctness": RatingInput(own)}, idempotency_key="k", by=assignment.reviewer)


def code_of(error: pytest.ExceptionInfo[DomainError]) -> str:
    return error.value.code


@pytest.mark.parametrize(
    ("judge", "own", "rules", "is_shown"),
    [
        (5, 3, {}, True),
        (5, 4, {}, False),
        (5, 4, {"reveal_threshold": 1.0}, True),
        (3, 3, {"reveal_threshold": 0.0}, False),
        (5, 5, {"reveal": "always"}, True),
        (5, 1, {"reveal": "never"}, False),
        (None, 1, {}, False),
        (None, 1, {"reveal": "always"}, False),
        (5, 5, {"reveal_share": 1.0}, True),
        (5, 1, {"mode": "assisted"}, False),
    ],
)
def test_judge_is_shown_by_the_queue_setting(
    judge: float | None, own: float, rules: dict[str, object], is_shown: bool
) -> None:
    result = rate_item(judge, own, **rules)
    assert result.reveal is is_shown
    if not is_shown:
        with pytest.raises(DomainError) as error:
            reveal(result.assignment)
        assert code_of(error) == "not_revealed"


@pytest.mark.parametrize(
    ("scale", "rating", "other_rating", "levels"),
    [
        ("1..5", RatingInput(2), RatingInput(5), 3.0),
        ("-2..2", RatingInput(-1), RatingInput(1), 2.0),
        ("real 0..1", RatingInput(0.25), RatingInput(0.75), 2.0),  # 0.5 of 1 = 2 of the 4 steps of a five-level scale
        ("real 0..10", RatingInput(2.5), RatingInput(7.5), 2.0),  # 5 of 10 is the same half of the scale
        ("real -1..1", RatingInput(-0.25), RatingInput(0.25), 1.0),  # 0.5 of 2 = 1 of the 4 steps
        ("seconds", RatingInput(0), RatingInput(64_800), 3.0),  # 18 hours of a day = 3 of the 4 steps
        ("yes_no", RatingInput(0), RatingInput(1), math.inf),
        ("yes_no", RatingInput(1), RatingInput(1), 0.0),
        ("class a|b", RatingInput(label="a"), RatingInput(label="b"), math.inf),
        ("class a|b", RatingInput(label="a"), RatingInput(label="a"), 0.0),
        ("1..5", RatingInput(cannot_judge=True), RatingInput(5), 0.0),
    ],
)
def test_distances_are_counted_in_levels(
    scale: str, rating: RatingInput, other_rating: RatingInput, levels: float
) -> None:
    assert scale_distance(Scale.parse(scale), rating, other_rating) == levels
    assert scale_distance(Scale.parse(scale), other_rating, rating) == levels


def test_chance_reveals_the_stated_share_reproducibly() -> None:
    draws = [is_sampled("reveal", 0.1, 7, item, reviewer) for item in range(2_000) for reviewer in (1, 2)]
    assert draws == [is_sampled("reveal", 0.1, 7, item, reviewer) for item in range(2_000) for reviewer in (1, 2)]
    # 4,000 draws at 0.1: 400 expected, standard deviation sqrt(4000 x 0.1 x 0.9) = 19
    assert 340 < sum(draws) < 460


def test_reveal_has_value_reason_judge_and_rubric_and_is_recorded() -> None:
    result = rate_item(5, 2)
    (comparison,) = reveal(result.assignment)
    assert comparison.judge_value is not None
    assert comparison.own_rating is not None
    assert (comparison.judge_value.value, comparison.own_rating.value, comparison.distance) == (5, 2, 3)
    assert (comparison.judge_value.reason, comparison.judge_value.rubric) == (
        "The judge's reason.",
        "answer_quality v1",
    )
    assert comparison.judge_value.by.endswith("@1")
    assert Exposure.objects.filter(user=result.assignment.reviewer, object_id=result.assignment.item.answer_id).exists()
    assert reveal(result.assignment) == [comparison]


def test_judge_is_not_revealed_before_the_rating() -> None:
    queue = make_queue(make_scored_run(values=[5]))
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    with pytest.raises(DomainError) as error:
        reveal(assignment)
    assert code_of(error) == "not_rated_yet"


def final_ratings() -> list[tuple[float | None, str, bool]]:
    return list(Rating.objects.filter(phase="final").values_list("value", "reason_code", "blind"))


def reveal_rated_item(judge: float, own: float, **fields: object) -> tuple[Assignment, User]:
    result = rate_item(judge, own, **fields)
    reveal(result.assignment)
    return load_assignment(result.assignment.pk), result.assignment.reviewer


def test_unchanged_rating_becomes_a_final_rating_that_is_not_blind() -> None:
    assignment, me = reveal_rated_item(5, 2)
    assert finalise(assignment, by=me).changed == ()
    assert final_ratings() == [(2, "", False)]
    assert Assignment.objects.get().state == Assignment.State.FINISHED


def test_reason_is_allowed_without_a_change() -> None:
    assignment, me = reveal_rated_item(5, 2)
    finalise(assignment, {"correctness": RatingUpdate(reason_code="judge_missed_claim")}, by=me)
    assert final_ratings() == [(2, "judge_missed_claim", False)]


def test_change_by_two_levels_needs_a_reason() -> None:
    assignment, me = reveal_rated_item(5, 2)
    with pytest.raises(DomainError) as error:
        finalise(assignment, {"correctness": RatingUpdate(4)}, by=me)
    assert code_of(error) == "reason_needed"
    assert finalise(assignment, {"correctness": RatingUpdate(3)}, by=me).changed == ("correctness",)
    assert final_ratings() == [(3, "", False)]


def test_crossing_the_threshold_always_needs_a_reason() -> None:
    answers = make_answer_set(make_question_set(specs=1))
    spec = {
        "name": "p",
        "title": {"en": "P", "ko": "P"},
        "reported": ["correctness"],
        "thresholds": {"correctness": 4.0},
    }
    profile = make_profile(answers.project, spec)
    run = make_scored_run(answers, values=[5], metrics=["correctness"], profile=profile)
    queue = make_queue(run, metrics=["correctness"], reveal="always")
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    submit(assignment, {"correctness": RatingInput(3)}, idempotency_key="k", by=assignment.reviewer)
    reveal(assignment)
    with pytest.raises(DomainError) as error:
        finalise(assignment, {"correctness": RatingUpdate(4)}, by=assignment.reviewer)
    assert code_of(error) == "reason_needed"
    finalise(assignment, {"correctness": RatingUpdate(4, reason_code="policy")}, by=assignment.reviewer)
    assert final_ratings() == [(4, "policy", False)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (RatingUpdate(9, reason_code="policy"), "off_scale"),
        (RatingUpdate(3, label="x"), "one_value"),
        (RatingUpdate(3, reason_code="because"), "unknown_reason"),
        (RatingUpdate(3, comment="x" * 10_001), "comment_too_long"),
    ],
)
def test_final_rating_is_validated(change: RatingUpdate, code: str) -> None:
    assignment, me = reveal_rated_item(5, 2)
    with pytest.raises(DomainError) as error:
        finalise(assignment, {"correctness": change}, by=me)
    assert code_of(error) == code
    assert final_ratings() == []


def test_reviewer_who_could_not_judge_may_rate_after_the_reveal() -> None:
    run = make_scored_run(make_answer_set(make_question_set(specs=1)), values=[5], metrics=["correctness"])
    queue = make_queue(run, metrics=["correctness"], reveal="always")
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    submit(assignment, {"correctness": RatingInput(cannot_judge=True)}, idempotency_key="k", by=assignment.reviewer)
    reveal(assignment)
    assert finalise(assignment, {"correctness": RatingUpdate(4)}, by=assignment.reviewer).changed == ("correctness",)
    assert list(Rating.objects.filter(phase="final").values_list("value", "cannot_judge")) == [(4, False)]


def test_only_the_rater_gives_the_final_rating() -> None:
    assignment, _ = reveal_rated_item(5, 2)
    with pytest.raises(DomainError) as error:
        finalise(assignment, by=make_user("reviewer", assignment.item.queue.project))
    assert code_of(error) == "not_yours"
    assert final_ratings() == []


def test_repeated_decision_is_harmless_and_another_is_refused() -> None:
    assignment, me = reveal_rated_item(5, 2)
    finalise(assignment, {"correctness": RatingUpdate(3)}, by=me)
    assert finalise(assignment, {"correctness": RatingUpdate(3)}, by=me).repeated
    with pytest.raises(DomainError) as error:
        finalise(assignment, by=me)
    assert code_of(error) == "already_final"
    assert final_ratings() == [(3, "", False)]


def test_final_rating_requires_a_reveal() -> None:
    result = rate_item(5, 5)
    with pytest.raises(DomainError) as error:
        finalise(result.assignment, by=result.assignment.reviewer)
    assert code_of(error) == "not_revealed"


def test_first_rating_never_changes() -> None:
    assignment, me = reveal_rated_item(5, 2)
    finalise(assignment, {"correctness": RatingUpdate(5, reason_code="judge_too_strict")}, by=me)
    assert list(Rating.objects.filter(phase="initial").values_list("value", "blind")) == [(2, True)]


def test_large_difference_in_one_metric_reveals_all() -> None:
    queue: ReviewQueue = make_queue(
        make_scored_run(make_answer_set(make_question_set(specs=1)), values=[5]), reveal_share=0.0
    )
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment
    result = submit(
        assignment,
        {"correctness": RatingInput(5), "faithfulness": RatingInput(1)},
        idempotency_key="k",
        by=assignment.reviewer,
    )
    assert result.reveal
    assert [comparison.distance for comparison in reveal(assignment)] == [0, 4]
