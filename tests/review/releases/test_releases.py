"""Release difference of two runs: changed questions, the queue of pairs, and the figure from its ratings."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from evaluation.models import Answer, Context, JudgeVersion, Run, User
from review.evidence.answers import record_exposure
from review.models import Draw, Rating, ReviewItem
from review.queues.creation import close_queue
from review.ratings.leases import next_assignment
from review.ratings.submitting import skip
from review.releases.changes import answered_questions
from review.releases.selectors import ReleaseDifference, find_release_difference
from review.releases.services import make_pair_queue, pair_order
from review.reports.inputs import load_inputs
from review.statistics.correction.outcome import Target
from tests.examples import max_examples
from tests.factories import make_answer, make_answer_set, make_queue, make_user
from tests.review.builders import answer_rows, metric, run_over, score_all
from tests.review.releases.built import is_new, make_releases, rate_queue
from tests.review.sampled import rate_all

pytestmark = pytest.mark.django_db


def difference_of(old: Run, new: Run) -> ReleaseDifference:
    release = find_release_difference(load_inputs(new), load_inputs(old))
    assert release is not None
    return release


def judge_of(run: Run) -> JudgeVersion:
    return run.judges.get().judge_version


def reviewer_of(run: Run) -> User:
    return make_user("reviewer", run.project)


def changed_ids(old: Run, new: Run) -> list[str]:
    questions = answered_questions(load_inputs(new), load_inputs(old))
    return [question.question_id for question in questions if question.changed]


def test_changed_texts_and_passages_are_found() -> None:
    old, new = make_releases(2, 3)
    assert changed_ids(old, new) == ["q001", "q002"]
    # The same text with another passage is a changed answer.
    passage = Context.objects.filter(answer=answer_rows(new)[3]).get()
    Context.objects.bulk_create(
        [Context(answer=passage.answer, position=1, chunk_id="c2", text="More.", source="atlas")]
    )
    assert changed_ids(old, new) == ["q001", "q002", "q004"]


def test_equal_samples_cancel_out() -> None:
    """The question has the answers A, B before and B, C after: A and C remain."""
    old, new = make_releases(0, 2)
    for run, text in ((old, "Answer 9."), (new, "Answer 8.")):
        make_answer(run.answer_set, answer_rows(run)[0].question, text, sample=2)
    first, second = answered_questions(load_inputs(new), load_inputs(old))
    texts = [Answer.objects.get(pk=answer.answer_id).text for answer in first.answers]
    assert (texts, first.samples, second.changed) == (["Answer 9.", "Answer 8."], (2, 2), False)


def test_unpaired_runs_or_the_same_answers_are_no_releases() -> None:
    _, new = make_releases(1, 1)
    other, _ = make_releases(1, 1)
    assert find_release_difference(load_inputs(new), load_inputs(other)) is None
    again = run_over(new.answer_set, profile=new.profile_version, judge=judge_of(new))
    score_all(again, {"correctness": [3, 3]})
    assert find_release_difference(load_inputs(again), load_inputs(new)) is None
    with pytest.raises(DomainError, match="unpaired_runs"):
        make_pair_queue(new, other, 1, [reviewer_of(new)])


def test_unchanged_answers_differ_by_exactly_zero() -> None:
    old, new = make_releases(0, 30)
    release = difference_of(old, new)
    figure = release.figure
    assert (release.changed, figure.value, figure.low, figure.high) == (0, 0.0, 0.0, 0.0)
    assert figure.target == Target.THIS_RUN
    with pytest.raises(DomainError, match="all_pairs_rated"):
        make_pair_queue(new, old, 20, [reviewer_of(new)])


def test_queue_of_pairs_gives_the_difference() -> None:
    """40 of 100 answers changed. The expert gives 2 before and 4 or 2 after, in turn of the answers.

    On the unit scale (1 to 5) a rise is 0.5."""
    old, new = make_releases(40, 60)
    before = difference_of(old, new)
    assert (before.questions, before.changed, before.unrated, before.decides) == (100, 40, 40, False)
    assert before.figure.extra["missing"] == {"labels": 20}
    reviewer = reviewer_of(new)
    queue = make_pair_queue(new, old, 20, [reviewer], seed=3)
    drawn = set(Draw.objects.get(queue=queue).frame.filter(sampled=True).values_list("answer__question", flat=True))
    risen = sorted(drawn)[:10]
    rate_queue(queue, reviewer, lambda answer: 4 if is_new(answer) and answer.question_id in risen else 2)
    release = difference_of(old, new)
    assert (release.rated_both, release.rated_one, release.unrated, release.waiting) == (20, 0, 20, 0)
    # 10 of 20 drawn rose by 0.5: 40 / 100 x 0.25.
    assert release.figure.value == pytest.approx(0.1)
    # s^2 = 0.0625 x 20/19; t(19) = 2.093024; unseen 0.25 (1/20)^2 0.5 (1.25^2 + 0.75^2).
    variance = 0.16 * (0.5 * 0.0625 * 20 / 19 / 20 + 0.25 / 400 * 0.5 * (1.25**2 + 0.75**2))
    assert release.figure.low == pytest.approx(0.1 - 2.093024 * variance**0.5, abs=2e-3)
    assert release.decides
    # 9 of the other 20 for 0.03: t(7) = 2.365, and 2.365 x 20/100 x sqrt((1 - 9/20) / 9) x 0.2565 = 0.02999. The margin
    # of 0.05 is reached.
    assert (release.plans[0].margin, release.plans[0].questions) == (0.03, 9)


def test_partly_rated_pairs_are_waiting_or_unanswered() -> None:
    old, new = make_releases(24, 6)
    reviewer = reviewer_of(new)
    queue = make_pair_queue(new, old, 24, [reviewer], seed=3)
    # 24 questions in 3 blocks of 8: the first block has both answers after 16 ratings.
    rate_queue(queue, reviewer, lambda answer: 3, most=20)
    release = difference_of(old, new)
    assert (release.rated_both, release.rated_one, release.unrated, release.waiting) == (8, 4, 12, 16)
    rate_queue(queue, reviewer, lambda answer: 3)
    figure = difference_of(old, new).figure
    # Everything that changed is rated: exact.
    assert (figure.value, figure.low, figure.high) == (0.0, 0.0, 0.0)


def test_standing_rating_of_one_answer_is_no_label_of_the_difference() -> None:
    old, new = make_releases(25, 5)
    rate_all(old, [2] * 30)
    release = difference_of(old, new)
    assert (release.rated_both, release.rated_one) == (0, 25)
    # Somebody else rates the new answers: no pair has a common reviewer.
    rate_all(new, [4] * 30)
    release = difference_of(old, new)
    assert (release.rated_both, release.rated_one, release.decides) == (0, 25, False)


def test_drawn_pairs_count_with_the_ratings_of_their_queue() -> None:
    """The reviewer gave the old answers a 5 some time ago, and gives both a 3 now: the drift is no difference."""
    old, new = make_releases(20, 0)
    reviewer = reviewer_of(new)
    earlier = make_queue(old, [reviewer], metrics=["correctness"], reveal="never")
    rate_queue(earlier, reviewer, lambda answer: 5)
    rate_queue(make_pair_queue(new, old, 20, [reviewer], seed=5), reviewer, lambda answer: 3)
    release = difference_of(old, new)
    assert (release.rated_both, release.figure.value) == (20, 0.0)


def test_pairs_by_the_same_reviewer_are_certain_in_the_next_draw() -> None:
    old, new = make_releases(30, 0)
    reviewer = reviewer_of(new)
    first = make_pair_queue(new, old, 10, [reviewer], looks=2, seed=1)
    with pytest.raises(DomainError, match="pairs_waiting"):
        make_pair_queue(new, old, 10, [reviewer])
    rate_queue(first, reviewer, lambda answer: 4 if is_new(answer) else 2)
    close_queue(first, by=None)
    second = make_pair_queue(new, old, 12, [reviewer], seed=2)
    draw = Draw.objects.get(queue=second)
    strata = dict(draw.frame.values_list("stratum").distinct().values_list("stratum", "probability"))
    # 12 of the 20 questions that were not rated yet.
    assert strata == {"certain": 1.0, "changed": pytest.approx(0.6)}
    assert draw.planned_after_looking
    assert ReviewItem.objects.filter(queue=second).count() == 24
    rate_queue(second, reviewer, lambda answer: 2)
    # (10 x 0.5 + 20 x 0) / 30, with a bound of 8 / 30 x u x 2 for the drawn ones, which are all equal. Two planned
    # rounds have 2.5% each.
    figure = difference_of(old, new).figure
    assert figure.value == pytest.approx(5 / 30)
    assert figure.high == pytest.approx(5 / 30 + 8 / 30 * (1 - 0.025 ** (1 / 12)) * 2)
    assert (figure.looks, figure.is_planned) == (2, True)
    close_queue(second, by=None)
    make_pair_queue(new, old, 1, [reviewer], seed=3)
    assert not difference_of(old, new).figure.is_planned


def test_both_answers_go_to_the_same_reviewers_and_not_in_succession() -> None:
    old, new = make_releases(40, 0)
    people = [reviewer_of(new) for _ in range(3)]
    queue = make_pair_queue(new, old, 40, people, reviews_needed=2, seed=5)
    assert not queue.draws.get().planned_after_looking
    assert (queue.hide_system, queue.reveal) == (True, "never")
    for person in people:
        answers = rate_queue(queue, person, lambda answer: 3)
        questions = [Answer.objects.get(pk=pk).question_id for pk in answers]
        assert all(questions.count(question) == 2 for question in questions)
        assert all(first != second for first, second in pairwise(questions))
    assert Rating.objects.filter(blind=True).count() == 160


def test_people_who_saw_the_judge_come_last() -> None:
    old, new = make_releases(20, 0)
    exposed, fresh = reviewer_of(new), reviewer_of(new)
    record_exposure(exposed, old, "run page")
    queue = make_pair_queue(new, old, 20, [exposed, fresh], seed=5)
    assert ReviewItem.objects.filter(queue=queue, reservations__reviewer=fresh).count() == 40
    assert not ReviewItem.objects.filter(queue=queue, reservations__reviewer=exposed).exists()


def test_pairs_leave_the_score_of_the_run_alone() -> None:
    old, new = make_releases(30, 10)
    reviewer = reviewer_of(new)
    rate_queue(make_pair_queue(new, old, 25, [reviewer], seed=5), reviewer, lambda answer: 2)
    basis = load_inputs(new)
    assert not basis.samples.draws
    figure = basis.correction.of_metric(metric("correctness"))
    assert figure.withheld == "no_probability"


def test_skipped_pair_is_unanswered() -> None:
    old, new = make_releases(22, 0)
    reviewer = reviewer_of(new)
    queue = make_pair_queue(new, old, 21, [reviewer], seed=5)
    assignment = next_assignment(queue, reviewer)
    assert assignment is not None
    skip(assignment)
    rate_queue(queue, reviewer, lambda answer: 3)
    figure = difference_of(old, new).figure
    assert figure.extra["non_response"] == pytest.approx(1 / 21)
    # All rated pairs are equal; the skipped one stands for 1 / 21 of the changed questions.
    assert figure.high == pytest.approx(2 / 22 * (1 - 0.05 ** (1 / 20)) * 2 + 1 / 21)


def test_failed_answers_count_as_the_profile_says() -> None:
    old, new = make_releases(1, 1)
    assert len(answered_questions(load_inputs(new), load_inputs(old))) == 2
    failed = answer_rows(new)[0]
    third = make_answer_set(new.answer_set.question_set, texts=["Answer 0.", "Answer 1."])
    run = run_over(third, profile=new.profile_version, judge=judge_of(new))
    make_answer(third, failed.question, "", status="failed", reason="timeout", round=1)
    # The profile leaves failures out.
    assert [question.question_id for question in answered_questions(load_inputs(run), load_inputs(old))] == ["q002"]


pairs = st.integers(1, 60).map(lambda count: [[2 * number, 2 * number + 1] for number in range(count)])


@given(pairs, st.integers(1, 40), st.integers(0, 9))
@settings(max_examples=max_examples(200), deadline=None)
def test_order_of_pairs_is_a_spaced_permutation(drawn: list[list[int]], block: int, seed: int) -> None:
    order = pair_order(drawn, block, Random(seed))
    assert sorted(order) == [answer for pair in drawn for answer in pair]
    places = {answer: place for place, answer in enumerate(order)}
    distances = [abs(places[first] - places[second]) for first, second in drawn]
    assert min(distances) >= min(block, len(drawn))
