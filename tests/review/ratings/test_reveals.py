"""After the rating: when the judge is shown, what it said, and the final word of the reviewer."""

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


def rated(judge: float | None, own: float, **fields: object) -> SubmitResult:
    """One item that the judge gave ``judge`` and the reviewer ``own``."""
    run = make_scored_run(make_answer_set(make_question_set(specs=1)), values=[judge], metrics=["correctness"])
    rules = {"metrics": ["correctness"], "reveal_share": 0.0, "reveal_threshold": 2.0}
    queue = make_queue(run, **(rules | fields))
    held = next_assignment(queue, queue.members.get().reviewer)
    assert held
    return submit(held, {"correctness": RatingInput(own)}, idempotency_key="k", by=held.reviewer)


def code_of(refused: pytest.ExceptionInfo[DomainError]) -> str:
    return refused.value.code


@pytest.mark.parametrize(
    ("judge", "own", "rules", "shown"),
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
def test_the_judge_is_shown_by_the_queues_setting(
    judge: float | None, own: float, rules: dict[str, object], shown: bool
) -> None:
    done = rated(judge, own, **rules)
    assert done.reveal is shown
    if not shown:
        with pytest.raises(DomainError) as refused:
            reveal(done.assignment)
        assert code_of(refused) == "not_revealed"


@pytest.mark.parametrize(
    ("scale", "one", "other", "levels"),
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
def test_distances_are_counted_in_levels(scale: str, one: RatingInput, other: RatingInput, levels: float) -> None:
    assert scale_distance(Scale.parse(scale), one, other) == levels
    assert scale_distance(Scale.parse(scale), other, one) == levels


def test_chance_shows_the_stated_share_and_repeats_itself() -> None:
    drawn = [is_sampled("reveal", 0.1, 7, item, reviewer) for item in range(2_000) for reviewer in (1, 2)]
    assert drawn == [is_sampled("reveal", 0.1, 7, item, reviewer) for item in range(2_000) for reviewer in (1, 2)]
    # 4,000 draws at 0.1: 400 expected, standard deviation sqrt(4000 x 0.1 x 0.9) = 19
    assert 340 < sum(drawn) < 460


def test_the_reveal_tells_value_reason_judge_and_rubric_and_is_recorded() -> None:
    done = rated(5, 2)
    (said,) = reveal(done.assignment)
    assert said.judge_value is not None
    assert said.own_rating is not None
    assert (said.judge_value.value, said.own_rating.value, said.distance) == (5, 2, 3)
    assert (said.judge_value.reason, said.judge_value.rubric) == ("The judge's reason.", "answer_quality v1")
    assert said.judge_value.by.endswith("@1")
    assert Exposure.objects.filter(user=done.assignment.reviewer, object_id=done.assignment.item.answer_id).exists()
    assert reveal(done.assignment) == [said]


def test_nothing_is_shown_before_the_rating() -> None:
    queue = make_queue(make_scored_run(values=[5]))
    held = next_assignment(queue, queue.members.get().reviewer)
    assert held
    with pytest.raises(DomainError) as refused:
        reveal(held)
    assert code_of(refused) == "not_rated_yet"


def finals() -> list[tuple[float | None, str, bool]]:
    return list(Rating.objects.filter(phase="final").values_list("value", "reason_code", "blind"))


def revealed(judge: float, own: float, **fields: object) -> tuple[Assignment, User]:
    done = rated(judge, own, **fields)
    reveal(done.assignment)
    return load_assignment(done.assignment.pk), done.assignment.reviewer


def test_keeping_stores_a_final_rating_that_is_never_blind() -> None:
    held, me = revealed(5, 2)
    assert finalise(held, by=me).changed == ()
    assert finals() == [(2, "", False)]
    assert Assignment.objects.get().state == Assignment.State.FINISHED


def test_a_reason_may_come_with_keeping_too() -> None:
    held, me = revealed(5, 2)
    finalise(held, {"correctness": RatingUpdate(reason_code="judge_missed_claim")}, by=me)
    assert finals() == [(2, "judge_missed_claim", False)]


def test_a_change_by_one_level_needs_no_reason_and_by_two_it_does() -> None:
    held, me = revealed(5, 2)
    with pytest.raises(DomainError) as refused:
        finalise(held, {"correctness": RatingUpdate(4)}, by=me)
    assert code_of(refused) == "reason_needed"
    assert finalise(held, {"correctness": RatingUpdate(3)}, by=me).changed == ("correctness",)
    assert finals() == [(3, "", False)]


def test_crossing_the_threshold_needs_a_reason_however_small_the_step() -> None:
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
    held = next_assignment(queue, queue.members.get().reviewer)
    assert held
    submit(held, {"correctness": RatingInput(3)}, idempotency_key="k", by=held.reviewer)
    reveal(held)
    with pytest.raises(DomainError) as refused:
        finalise(held, {"correctness": RatingUpdate(4)}, by=held.reviewer)
    assert code_of(refused) == "reason_needed"
    finalise(held, {"correctness": RatingUpdate(4, reason_code="policy")}, by=held.reviewer)
    assert finals() == [(4, "policy", False)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (RatingUpdate(9, reason_code="policy"), "off_scale"),
        (RatingUpdate(3, label="x"), "one_value"),
        (RatingUpdate(3, reason_code="because"), "unknown_reason"),
        (RatingUpdate(3, comment="x" * 10_001), "comment_too_long"),
    ],
)
def test_a_final_rating_is_checked_like_a_first_one(change: RatingUpdate, code: str) -> None:
    held, me = revealed(5, 2)
    with pytest.raises(DomainError) as refused:
        finalise(held, {"correctness": change}, by=me)
    assert code_of(refused) == code
    assert finals() == []


def test_who_could_not_judge_may_do_so_once_the_judge_was_shown() -> None:
    run = make_scored_run(make_answer_set(make_question_set(specs=1)), values=[5], metrics=["correctness"])
    queue = make_queue(run, metrics=["correctness"], reveal="always")
    held = next_assignment(queue, queue.members.get().reviewer)
    assert held
    submit(held, {"correctness": RatingInput(cannot_judge=True)}, idempotency_key="k", by=held.reviewer)
    reveal(held)
    assert finalise(held, {"correctness": RatingUpdate(4)}, by=held.reviewer).changed == ("correctness",)
    assert list(Rating.objects.filter(phase="final").values_list("value", "cannot_judge")) == [(4, False)]


def test_nobody_has_the_final_word_on_anothers_rating() -> None:
    held, _ = revealed(5, 2)
    with pytest.raises(DomainError) as refused:
        finalise(held, by=make_user("reviewer", held.item.queue.project))
    assert code_of(refused) == "not_yours"
    assert finals() == []


def test_repeating_a_decision_is_harmless_and_another_one_is_refused() -> None:
    held, me = revealed(5, 2)
    finalise(held, {"correctness": RatingUpdate(3)}, by=me)
    assert finalise(held, {"correctness": RatingUpdate(3)}, by=me).repeated
    with pytest.raises(DomainError) as refused:
        finalise(held, by=me)
    assert code_of(refused) == "already_final"
    assert finals() == [(3, "", False)]


def test_there_is_no_final_rating_without_a_reveal() -> None:
    done = rated(5, 5)
    with pytest.raises(DomainError) as refused:
        finalise(done.assignment, by=done.assignment.reviewer)
    assert code_of(refused) == "not_revealed"


def test_the_first_rating_stays_as_it_was() -> None:
    held, me = revealed(5, 2)
    finalise(held, {"correctness": RatingUpdate(5, reason_code="judge_too_strict")}, by=me)
    assert list(Rating.objects.filter(phase="initial").values_list("value", "blind")) == [(2, True)]


def test_with_several_metrics_one_large_difference_shows_them_all() -> None:
    queue: ReviewQueue = make_queue(
        make_scored_run(make_answer_set(make_question_set(specs=1)), values=[5]), reveal_share=0.0
    )
    held = next_assignment(queue, queue.members.get().reviewer)
    assert held
    done = submit(
        held, {"correctness": RatingInput(5), "faithfulness": RatingInput(1)}, idempotency_key="k", by=held.reviewer
    )
    assert done.reveal
    assert [one.distance for one in reveal(held)] == [0, 4]
