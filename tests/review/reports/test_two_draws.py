"""Two queues drawn over one run before anybody rated: what a figure takes of both draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from evaluation.models import MetricDefinition, Run
from review.evidence.sampling import load_samples
from review.reports.estimates import correction_sheet
from review.reports.figure import Figure
from review.reports.inputs import load_inputs
from review.statistics.correction.outcome import Withheld
from tests.factories import make_user
from tests.review.builders import (
    answer_rows,
    answers_to,
    assignment_of,
    draw_into,
    imported_rating,
    metric,
    queue_for,
    rate,
    run_over,
)
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db

JUDGED = [5, 5, 3, 3] * 10


@pytest.fixture
def run() -> Run:
    """40 answers that the judge gives 5 or 3."""
    return fill(run_over(answers_to(["a"] * 40)), JUDGED)


@pytest.fixture
def correctness() -> MetricDefinition:
    return metric("correctness")


def drawn(run: Run, row: MetricDefinition, stratum: Callable[[int], str], taken: Sequence[int]) -> None:
    """A stratified draw of its own queue, rated by one person who says one level less than the judge everywhere."""
    person = make_user()
    queue = queue_for(run, [row], [person])
    names = [stratum(at) for at in range(40)]
    rates = {name: sum(names[at] == name for at in taken) / names.count(name) for name in names}
    draw_into(queue, run, [(name, rates[name], at in taken) for at, name in enumerate(names)])
    answers = answer_rows(run)
    for at in taken:
        rate(assignment_of(queue, answers[at], person, run), row, JUDGED[at] - 1)


def by_tens_and_threes(run: Run, row: MetricDefinition) -> None:
    """Three of each ten answers, and the first five of each third of them: 21 different answers."""
    drawn(run, row, lambda at: f"ten {at // 10}", [ten + at for ten in (0, 10, 20, 30) for at in (0, 1, 2)])
    drawn(run, row, lambda at: f"three {at % 3}", range(15))


def test_the_strata_are_those_of_the_draw_that_has_most(run: Run, correctness: MetricDefinition) -> None:
    by_tens_and_threes(run, correctness)
    pks = [answer.pk for answer in answer_rows(run)]
    places = load_samples(run.answer_set_id, pks).inclusions(correctness.pk, [])
    assert [places[pk].stratum for pk in pks] == [f"ten {at // 10}" for at in range(40)]
    # 3 of 10 by the one, 5 of 14 (0, 3, ... 39) or of 13 by the other: 1 - .7 x 9/14 and 1 - .7 x 8/13
    assert [places[pk].probability for pk in pks[:2]] == pytest.approx([0.55, 1 - 0.7 * 8 / 13])
    assert [at for at, pk in enumerate(pks) if places[pk].sampled] == [*range(15), 20, 21, 22, 30, 31, 32]


def test_a_corrected_score_asks_for_no_ratings_in_crossings_of_strata(run: Run, correctness: MetricDefinition) -> None:
    by_tens_and_threes(run, correctness)
    # each crossing of the third ten with a third holds one rated answer; a stratum takes two
    corrected = correction_sheet(load_inputs(run)).estimates["correctness"].corrected
    assert not isinstance(corrected, Withheld), corrected
    # judged 4 on average, the people always one below
    assert corrected.value == pytest.approx(3.0)


def test_answers_of_a_sample_made_elsewhere_stay_a_stratum_of_their_own(
    run: Run, correctness: MetricDefinition
) -> None:
    drawn(run, correctness, lambda at: "all", range(20))
    answers = answer_rows(run)
    imported_rating(answers[30], correctness, "elsewhere", 4, probability=0.25)
    found = load_inputs(run)
    places = load_samples(run.answer_set_id, [one.pk for one in answers]).inclusions(
        correctness.pk, found.evidence.ratings
    )
    # nobody knows with which probability the other sample would have taken the others
    assert places[answers[30].pk].stratum == "all & import"
    assert places[answers[30].pk].probability == pytest.approx(1 - 0.5 * 0.75)
    assert {places[one.pk].stratum for one in answers if one != answers[30]} == {"all"}


def test_beside_a_draw_of_ours_a_sample_made_elsewhere_is_taken_for_no_sample_of_all(
    run: Run, correctness: MetricDefinition
) -> None:
    """Ten with probability .25 would stand for all 40, but nobody knows how probable the others were there."""
    drawn(run, correctness, lambda at: "all", range(20))
    answers = answer_rows(run)
    for answer in answers[30:]:
        imported_rating(answer, correctness, "elsewhere", 4, probability=0.25)
    found = load_inputs(run)
    places = load_samples(run.answer_set_id, [one.pk for one in answers]).inclusions(
        correctness.pk, found.evidence.ratings
    )
    assert [places[one.pk].stratum for one in answers] == ["all"] * 30 + ["all & import"] * 10


def test_a_later_queue_takes_nothing_away_before_it_tells_of_every_stratum(
    run: Run, correctness: MetricDefinition
) -> None:
    """30 of 40 rated, all one level below the judge; then a draw after looking takes them as certain, and two of four
    and one of six of the others."""
    drawn(run, correctness, lambda _at: "all", range(30))
    other = queue_for(run, [correctness], [make_user()])  # a queue of before that nobody has begun takes nothing either
    draw_into(other, run, [("half", 0.05, at in (0, 20)) for at in range(40)])
    person = make_user()
    queue = queue_for(run, [correctness], [person])

    def corrected() -> Figure:
        return correction_sheet(load_inputs(run)).estimates["correctness"].corrected

    before = corrected()
    assert before.value == pytest.approx(3.0)
    strata = ["certain"] * 30 + ["low"] * 4 + ["high"] * 6
    taken = [*range(30), 30, 31, 34]
    rates = {"certain": 1.0, "low": 2 / 4, "high": 1 / 6}
    draw_into(
        queue, run, [(name, rates[name], at in taken) for at, name in enumerate(strata)], planned_after_looking=True
    )
    answers = answer_rows(run)
    assert corrected() == before
    for at in (30, 34):  # one of the two in the first stratum is still waiting
        rate(assignment_of(queue, answers[at], person, run), correctness, JUDGED[at] - 1)
        assert corrected() == before
    assert load_samples(run.answer_set_id, []).unserved_answers(correctness.pk, load_inputs(run).evidence.ratings) == {
        answers[31].pk
    }
    rate(assignment_of(queue, answers[31], person, run), correctness, JUDGED[31] - 1)
    # Now the later draw stands alone, with one label in a stratum of six.
    assert corrected().withheld == "stratum_too_few_labels"
