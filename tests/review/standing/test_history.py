"""Standing score of each release: what counts, what it cost, tuning to the ratings, and drift of the experts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from evaluation.models import AnswerSet, RoleGrant, Run
from review.releases.services import make_pair_queue
from review.reports.figure import Withheld
from review.reports.inputs import load_inputs
from review.standing.selectors import StandingHistory, release_runs, standing_history
from review.standing.tuning import score_despite_tuning
from tests.factories import make_answer_set, make_judge, make_user, unique
from tests.review.builders import run_over
from tests.review.releases.built import rate_queue
from tests.review.sampled import fill
from tests.review.standing.releases import JUDGED, QUESTIONS, Releases

pytestmark = pytest.mark.django_db
EVERY_OTHER = range(0, QUESTIONS, 2)


@pytest.fixture
def releases() -> Releases:
    return Releases(make_user())


def history_of(releases: Releases) -> StandingHistory:
    return standing_history(release_runs(releases.runs[-1]))


def overall(correctness: float) -> object:
    """Overall score of a mean correctness."""
    return pytest.approx(correctness / 5)


def rate_first_release(releases: Releases) -> dict[int, float]:
    """Every other answer. The judge gives 5 and 3 in turn, the experts 5, 3, 4, 2 in turn."""
    ratings = {at: JUDGED[at] - at % 8 // 4 for at in EVERY_OTHER}
    releases.rate(releases.release(), ratings)
    return ratings


def test_unchanged_release_keeps_its_ratings(releases: Releases) -> None:
    """Release 2 lacks a sample of its own 20 unrated answers."""
    rate_first_release(releases)
    releases.release()
    first, second = history_of(releases).releases
    assert (first.rated, first.standing, first.changed, first.tuning) == (20, 0, None, None)
    assert (second.rated, second.standing, second.changed) == (0, 20, 0)
    assert (first.system, second.system) == ("rag v1", "rag v2")
    # 5, 3, 4 and 2 in turn; the judge's mean is 4 in the sample and in the release.
    assert first.score.value == overall(3.5)
    assert second.score.withheld == Withheld.CARRIED


def test_release_of_rated_answers_is_known_exactly(releases: Releases) -> None:
    run = releases.release()
    releases.rate(run, dict.fromkeys(range(QUESTIONS), 4.0), 1.0)
    releases.release()
    second = history_of(releases).releases[1]
    assert (second.score.low, second.score.value, second.score.high) == (0.8, 0.8, 0.8)


# Release 2 changes the first 16 answers. Rated: six that the judge gives a 5, and two that it gives a 3.
SECOND_RATINGS = {0: 3.0, 1: 3.0, 4: 3.0, 5: 3.0, 8: 3.0, 9: 3.0, 2: 5.0, 3: 5.0}


def test_slope_comes_from_earlier_ratings(releases: Releases) -> None:
    """Earlier ratings: judge 5, experts 4.5 on average; judge 3, experts 2.5: b = 1. The 12 ratings from 16 on stand,
    at 3.5 on average. Of the other 28 the judge's mean is 4, of the 8 rated ones 4.5: 3.5 + 1 x (4 - 4.5) = 3."""
    rate_first_release(releases)
    releases.rate(releases.release(changed=range(16)), SECOND_RATINGS)
    second = history_of(releases).releases[1]
    assert (second.rated, second.standing, second.changed) == (8, 12, 16)
    assert second.score.value == overall((12 * 3.5 + 28 * 3) / QUESTIONS)
    assert second.score.target == "this_run"


def test_ratings_of_another_judge_give_no_slope(releases: Releases) -> None:
    """The draw's own slope is -1: 3.5 - 1 x (4 - 4.5) = 4."""
    rate_first_release(releases)
    releases.judge = make_judge(releases.questions.project, unique("judge"))
    releases.rate(releases.release(changed=range(16)), SECOND_RATINGS)
    assert history_of(releases).releases[1].score.value == overall((12 * 3.5 + 28 * 4) / QUESTIONS)


def test_runs_of_other_systems_profiles_and_states_are_no_releases(releases: Releases) -> None:
    run = releases.release()
    answers = make_answer_set(releases.questions, "other", releases.texts)
    fill(run_over(answers, judge=releases.judge, profile=releases.profile), JUDGED)
    fill(run_over(run.answer_set, judge=releases.judge), JUDGED)
    unfinished = releases.release()
    Run.objects.filter(pk=unfinished.pk).update(state=Run.State.INCOMPLETE)
    assert release_runs(run) == [run]


def test_newest_run_with_the_same_judges_stands_for_a_release(releases: Releases) -> None:
    first, second = releases.release(), releases.release()
    repeated = fill(run_over(first.answer_set, judge=releases.judge, profile=releases.profile), JUDGED)
    other_judge = make_judge(releases.questions.project, unique("judge"))
    fill(run_over(first.answer_set, judge=other_judge, profile=releases.profile), JUDGED)
    assert release_runs(second) == [repeated, second]
    assert release_runs(first) == [first, second]
    assert release_runs(repeated, until=True) == [repeated]


def test_tuning_to_the_ratings_is_found(releases: Releases) -> None:
    """16 of the 20 rated answers are replaced and none of the others. The judge's levels 5 and 3 have 10 rated and 10
    unrated answers each, of which 8 changed: by chance all 8 would be rated ones in C(10,8) / C(20,8) of the cases."""
    rate_first_release(releases)
    releases.release(changed=list(EVERY_OTHER)[4:])
    tuning = history_of(releases).releases[1].tuning
    assert tuning is not None
    assert (tuning.rated, tuning.rated_changed, tuning.unrated, tuning.unrated_changed) == (20, 16, 20, 0)
    assert tuning.p_value == pytest.approx((45 / 125970) ** 2)
    assert tuning.fired


def test_ratings_after_the_next_release_cannot_have_tuned_it(releases: Releases) -> None:
    run = releases.release()
    releases.release(changed=EVERY_OTHER)
    AnswerSet.objects.filter(pk=releases.runs[1].answer_set_id).update(created_at=timezone.now() - timedelta(hours=1))
    releases.rate(run, dict.fromkeys(EVERY_OTHER, 3.0))
    tuning = history_of(releases).releases[1].tuning
    assert tuning is not None
    assert (tuning.rated, tuning.p_value) == (0, None)


def test_answers_picked_by_hand_are_left_out_of_the_test(releases: Releases) -> None:
    run = releases.release()
    releases.rate(run, dict.fromkeys(EVERY_OTHER, 3.0), None)
    releases.release(changed=EVERY_OTHER)
    second = history_of(releases).releases[1]
    assert second.tuning is not None
    assert (second.tuning.rated, second.tuning.unrated, second.changed) == (0, 20, 20)


def test_tuned_release_is_scored_on_never_rated_questions(releases: Releases) -> None:
    """The 20 never-rated questions are all rated now, 2 or 4 in turn: mean 3. The replaced ones got a 5, which counts
    for this run alone."""
    rate_first_release(releases)
    run = releases.release(changed=EVERY_OTHER)
    releases.rate(run, {at: 5.0 if at % 2 == 0 else 2.0 + at % 4 - 1 for at in range(QUESTIONS)}, 1.0)
    second = history_of(releases).releases[1]
    assert second.score.value == overall(4)
    assert second.similar_questions.value == overall(3)
    assert second.similar_questions.low < second.similar_questions.value < second.similar_questions.high
    assert second.similar_questions.extra["labels"] == 20


def test_never_rated_questions_stand_for_those_drawn_as_pairs(releases: Releases) -> None:
    """Half of 20 changed questions were drawn and rated as pairs. The other 10 count twice: they get a 5 now, the 20
    unchanged ones a 3, so the mean is (2 x 10 x 5 + 20 x 3) / 40 = 4."""
    first, second = releases.release(), releases.release(changed=EVERY_OTHER)
    RoleGrant.objects.get_or_create(user=releases.reviewer, project=second.project, role="reviewer")
    queue = make_pair_queue(second, first, 10, [releases.reviewer], seed=1)
    rate_queue(queue, releases.reviewer, lambda answer: 4)
    third = releases.release()
    releases.rate(third, {at: 5.0 if at in EVERY_OTHER else 3.0 for at in range(QUESTIONS)}, 1.0)
    score = score_despite_tuning(load_inputs(third), [load_inputs(first), load_inputs(second)])
    assert score.value == overall(4)


def test_tuned_release_with_few_new_questions_cannot_tell(releases: Releases) -> None:
    rate_first_release(releases)
    run = releases.release(changed=EVERY_OTHER)
    releases.rate(run, {at: 4.0 + at % 2 for at in range(22)}, 22 / 40)
    second = history_of(releases).releases[1]
    assert second.similar_questions.withheld == Withheld.TUNED


def test_rechecks_show_drift(releases: Releases) -> None:
    """Ten standing answers are rated again, eight of them one level lower: -0.8 on average."""
    ratings = rate_first_release(releases)
    run = releases.release()
    releases.recheck(run, {at: max(1.0, ratings[at] - (at > 2)) for at in list(EVERY_OTHER)[:10]})
    history = history_of(releases)
    drift = history.drift["correctness"].drift
    assert (drift.value, drift.rechecked, drift.shown) == (pytest.approx(-0.8), 10, True)
    second = history.releases[1]
    assert (second.rechecked, second.recheck_due, second.standing) == (10, 10, 20)


def test_no_release_without_rechecks_has_drift(releases: Releases) -> None:
    rate_first_release(releases)
    releases.release()
    assert history_of(releases).drift == {}
