"""Two draws over one run before any rating: how a figure combines both."""

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


def draw_and_rate(run: Run, row: MetricDefinition, stratum: Callable[[int], str], positions: Sequence[int]) -> None:
    """Draw a stratified sample in its own queue and rate it one level below the judge."""
    reviewer = make_user()
    queue = queue_for(run, [row], [reviewer])
    names = [stratum(at) for at in range(40)]
    rates = {name: sum(names[at] == name for at in positions) / names.count(name) for name in names}
    draw_into(queue, run, [(name, rates[name], at in positions) for at, name in enumerate(names)])
    answers = answer_rows(run)
    for at in positions:
        rate(assignment_of(queue, answers[at], reviewer, run), row, JUDGED[at] - 1)


def draw_by_tens_and_thirds(run: Run, row: MetricDefinition) -> None:
    """Three of each ten answers, and the first five of each third of them: 21 different answers."""
    draw_and_rate(run, row, lambda at: f"ten {at // 10}", [start + at for start in (0, 10, 20, 30) for at in (0, 1, 2)])
    draw_and_rate(run, row, lambda at: f"three {at % 3}", range(15))


def test_strata_are_those_of_the_larger_draw(run: Run, correctness: MetricDefinition) -> None:
    draw_by_tens_and_thirds(run, correctness)
    pks = [answer.pk for answer in answer_rows(run)]
    inclusions = load_samples(run.answer_set_id, pks).inclusions(correctness.pk, [])
    assert [inclusions[pk].stratum for pk in pks] == [f"ten {at // 10}" for at in range(40)]
    # 3 of 10 by the one, 5 of 14 (0, 3, ... 39) or of 13 by the other: 1 - .7 x 9/14 and 1 - .7 x 8/13
    assert [inclusions[pk].probability for pk in pks[:2]] == pytest.approx([0.55, 1 - 0.7 * 8 / 13])
    assert [at for at, pk in enumerate(pks) if inclusions[pk].sampled] == [*range(15), 20, 21, 22, 30, 31, 32]


def test_corrected_score_needs_no_ratings_in_crossed_strata(run: Run, correctness: MetricDefinition) -> None:
    draw_by_tens_and_thirds(run, correctness)
    # each crossing of the third ten with a third holds one rated answer; a stratum takes two
    corrected = correction_sheet(load_inputs(run)).estimates["correctness"].corrected
    assert not isinstance(corrected, Withheld), corrected
    # judged 4 on average, the people always one below
    assert corrected.value == pytest.approx(3.0)


def test_imported_sample_is_a_stratum_of_its_own(run: Run, correctness: MetricDefinition) -> None:
    draw_and_rate(run, correctness, lambda at: "all", range(20))
    answers = answer_rows(run)
    imported_rating(answers[30], correctness, "elsewhere", 4, probability=0.25)
    inputs = load_inputs(run)
    inclusions = load_samples(run.answer_set_id, [row.pk for row in answers]).inclusions(
        correctness.pk, inputs.evidence.ratings
    )
    # nobody knows with which probability the other sample would have taken the others
    assert inclusions[answers[30].pk].stratum == "all & import"
    assert inclusions[answers[30].pk].probability == pytest.approx(1 - 0.5 * 0.75)
    assert {inclusions[row.pk].stratum for row in answers if row != answers[30]} == {"all"}


def test_imported_sample_next_to_a_draw_is_no_sample_of_all_answers(run: Run, correctness: MetricDefinition) -> None:
    """Ten with probability .25 would stand for all 40, but the probabilities of the others there are unknown."""
    draw_and_rate(run, correctness, lambda at: "all", range(20))
    answers = answer_rows(run)
    for answer in answers[30:]:
        imported_rating(answer, correctness, "elsewhere", 4, probability=0.25)
    inputs = load_inputs(run)
    inclusions = load_samples(run.answer_set_id, [row.pk for row in answers]).inclusions(
        correctness.pk, inputs.evidence.ratings
    )
    assert [inclusions[row.pk].stratum for row in answers] == ["all"] * 30 + ["all & import"] * 10


def test_later_queue_counts_only_once_every_stratum_has_ratings(run: Run, correctness: MetricDefinition) -> None:
    """30 of 40 rated, all one level below the judge; then a draw after looking takes them as certain, and two of four
    and one of six of the others."""
    draw_and_rate(run, correctness, lambda _at: "all", range(30))
    earlier_queue = queue_for(
        run, [correctness], [make_user()]
    )  # a queue of before that nobody has begun takes nothing either
    draw_into(earlier_queue, run, [("half", 0.05, at in (0, 20)) for at in range(40)])
    reviewer = make_user()
    queue = queue_for(run, [correctness], [reviewer])

    def corrected() -> Figure:
        return correction_sheet(load_inputs(run)).estimates["correctness"].corrected

    initial_figure = corrected()
    assert initial_figure.value == pytest.approx(3.0)
    strata = ["certain"] * 30 + ["low"] * 4 + ["high"] * 6
    positions = [*range(30), 30, 31, 34]
    rates = {"certain": 1.0, "low": 2 / 4, "high": 1 / 6}
    draw_into(
        queue, run, [(name, rates[name], at in positions) for at, name in enumerate(strata)], planned_after_looking=True
    )
    answers = answer_rows(run)
    assert corrected() == initial_figure
    for at in (30, 34):  # one of the two in the first stratum is still waiting
        rate(assignment_of(queue, answers[at], reviewer, run), correctness, JUDGED[at] - 1)
        assert corrected() == initial_figure
    assert load_samples(run.answer_set_id, []).unserved_answers(correctness.pk, load_inputs(run).evidence.ratings) == {
        answers[31].pk
    }
    rate(assignment_of(queue, answers[31], reviewer, run), correctness, JUDGED[31] - 1)
    # The later draw has one label in a stratum of six, so it cannot be estimated and is left out with its reason.
    figure = corrected()
    assert figure.value == initial_figure.value
    assert [share.get("left_out", "") for share in figure.extra["rounds"]] == ["", "stratum_too_few_labels"]
    assert figure.extra["planned"] is False
