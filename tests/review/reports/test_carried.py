"""Carried ratings of a release that repeats most answers: its report counts experts' ratings of equal answers, and
corrects with those of sampled answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Run, User
from review.comparisons.comparison import compare
from review.comparisons.verdict import sentences
from review.figure_cache.selectors import headlines_of
from review.models import ReviewQueue
from review.reports.estimates import carried_in_words, overall_scores
from review.reports.figure import Figure, Withheld, notes
from review.reports.inputs import ReportInputs, load_inputs
from review.reports.verdict import verdict_of
from review.statistics.correction.outcome import Target
from tests.factories import make_answer_set, make_judge, make_user, unique
from tests.review.builders import (
    answer_rows,
    answers_to,
    assignment_of,
    decide,
    draw_into,
    imported_rating,
    make_report,
    metric,
    queue_for,
    rate,
    run_over,
)
from tests.review.clients import Caller
from tests.review.sampled import fill

pytestmark = pytest.mark.django_db

JUDGED = [5, 5, 3, 3] * 10
EXPERTS = [4, 5, 2, 3, 5, 4, 3, 2] * 5
RATED_AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def texts(new: int = 0) -> list[str]:
    """Texts of a release; the first ``new`` are its own."""
    return [f"{'new ' if at < new else ''}answer {at}" for at in range(40)]


@pytest.fixture
def earlier_run() -> Run:
    """Forty answers, all rated blind."""
    questions = answers_to(["a"] * 40).question_set
    run = fill(run_over(make_answer_set(questions, "rag", texts())), JUDGED)
    for answer, value in zip(answer_rows(run), EXPERTS, strict=True):
        imported_rating(answer, metric("correctness"), "anna", value, created_at=RATED_AT, sampling="all")
    return run


def release(earlier_run: Run, new: int = 1) -> Run:
    questions = earlier_run.answer_set.question_set
    judge = make_judge(questions.project, unique("judge"))
    return fill(run_over(make_answer_set(questions, texts=texts(new)), judge=judge), JUDGED)


def correctness_of(basis: ReportInputs) -> Figure:
    return basis.correction.of_metric(metric("correctness"))


def report_json(viewer: Caller, run: Run) -> Any:
    return json.loads(viewer.get(f"runs/{run.pk}/report/").getvalue())


def draw_every_second(run: Run, ratings: dict[int, float] | None = None, standing_from: int = 40) -> Run:
    """Draw every other answer, from the first, with probability 1/2; rate the given ones here. Answers from
    ``standing_from`` on had a standing rating when the draw was made."""
    reviewer = make_user()
    queue = queue_for(run, [metric("correctness")], [reviewer])
    members = [("all", 0.5, at % 2 == 0) for at in range(standing_from)]
    draw_into(queue, run, members + [("standing", 1.0, False)] * (40 - standing_from))
    for at, value in (ratings or {}).items():
        rate(assignment_of(queue, answer_rows(run)[at], reviewer, run), metric("correctness"), value)
    return run


def test_equal_answers_are_reviewed_but_not_corrected(earlier_run: Run) -> None:
    """The first answer is new: there the judge's 5 counts. Reviewed correctness is the mean of that and the 39 others:
    the experts' 40 sum to 5 x 28 = 140, less the first's 4, plus 5: 141 / 40 = 3.525."""
    report = make_report(release(earlier_run))
    (line,) = [metric_line for metric_line in report.metrics if metric_line.name == "correctness"]
    assert (line.rated, line.carried, line.reviewed.value) == (39, 39, pytest.approx(3.525))
    assert line.judge_only.value == 4.0
    assert report.overall.reviewed_answers == 39
    assert report.overall.reviewed.value == pytest.approx(0.75 + 0.25 * 3.525 / 5)
    assert (line.corrected.withheld, report.overall.corrected.withheld) == (Withheld.CARRIED, Withheld.CARRIED)
    assert report.agreement["experts"] == {}  # the judge of a release is not compared with what was said of another
    assert not load_inputs(release(earlier_run)).correction.rated_blind
    assert f"only identical ones in earlier runs (#{earlier_run.pk})" in verdict_of(report).judge


def test_report_names_the_source_and_age_of_carried_ratings(earlier_run: Run) -> None:
    run = release(earlier_run)
    (carried,) = overall_scores(load_inputs(run)).carried
    assert (carried.answer_set_id, carried.run_id, carried.system) == (
        earlier_run.answer_set_id,
        earlier_run.pk,
        "rag v1",
    )
    assert (carried.answers, carried.oldest, carried.newest) == (39, RATED_AT, RATED_AT)
    assert f"39 answers, same as in run #{earlier_run.pk} (rag v1), rated since" in carried_in_words(
        overall_scores(load_inputs(run))
    )

    viewer = Caller(make_user(Role.VIEWER, run.project))
    report = report_json(viewer, run)
    assert report["overall"]["reviewed_answers"] == 39
    assert report["overall"]["carried"] == [
        {
            "answer_set_id": earlier_run.answer_set_id,
            "run_id": earlier_run.pk,
            "system": "rag v1",
            "answers": 39,
            "oldest": RATED_AT.isoformat(),
            "newest": RATED_AT.isoformat(),
        }
    ]
    assert report["metrics"]["correctness"]["carried"] == 39
    first, second = report["evaluation"]["details"][:2]
    assert "carried" not in first["metrics"]["correctness"]
    value = second["metrics"]["correctness"]
    assert (value["value"], value["source"], value["carried"]["run_id"]) == (5, "review", earlier_run.pk)
    assert "carried" not in report_json(viewer, earlier_run)["overall"]


@pytest.mark.parametrize("form", ["html", "md"])
def test_html_and_markdown_reports_show_carried_ratings(earlier_run: Run, form: str) -> None:
    run = release(earlier_run)
    viewer = Caller(make_user(Role.VIEWER, run.project))
    text = viewer.get(f"runs/{run.pk}/report/?format={form}").getvalue().decode().replace("\\", "")
    assert f"39 answers, same as in run #{earlier_run.pk}" in text
    assert form == "md" or "Experts rated only identical answers in earlier answer sets" in text


def test_commands_and_run_page_show_carried_ratings(earlier_run: Run, client: Client) -> None:
    run = release(earlier_run)
    for command in ("results", "corrected_scores"):
        output = StringIO()
        call_command(command, str(run.pk), stdout=output)
        assert "Experts rated only identical answers in earlier answer sets" in output.getvalue()
    output = StringIO()
    call_command("results", str(run.pk), stdout=output)
    assert f"39 answers, same as in run #{earlier_run.pk}" in output.getvalue()
    client.force_login(make_user(Role.VIEWER, run.project))
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    assert f"39 answers, same as in run #{earlier_run.pk}" in page
    assert "39 of 40 answers reviewed by experts" in page


def test_standing_ratings_count_as_if_given_here(earlier_run: Run) -> None:
    """34 answers stood when the sample was drawn, and are certain. Of the 6 new ones (judge: 5, 5, 3, 3, 5, 5) three
    are drawn and rated 1, 2 and 3. So the score is (sum of the 34 + 6 x 2) / 40: the experts' 140 less 4 + 5 + 2 + 3 +
    5 + 4 = 23, plus 12: 129 / 40. With three labels there is no slope."""
    run = draw_every_second(release(earlier_run, 6), {0: 1, 2: 2, 4: 3}, standing_from=6)
    figure = correctness_of(load_inputs(run))
    assert figure.value == pytest.approx(129 / 40)
    assert (figure.extra["labels"], figure.extra["carried"]) == (37, 34)
    assert "Includes 34 ratings of identical answers in an earlier answer set." in notes(figure)
    assert "any_time" not in figure.extra


def test_standing_rating_that_was_given_again_counts_once(earlier_run: Run) -> None:
    """The seventh answer, rated 1 here although 3 stood, keeps representing only itself: 129 - 3 + 1."""
    run = draw_every_second(release(earlier_run, 6), {0: 1, 2: 2, 4: 3, 6: 1}, standing_from=6)
    figure = correctness_of(load_inputs(run))
    assert figure.value == pytest.approx(127 / 40)
    assert (figure.extra["labels"], figure.extra["carried"]) == (37, 33)


def test_equal_answer_rated_after_the_draw_labels_a_sampled_answer(earlier_run: Run) -> None:
    """The expected figure is that of a run whose same 20 answers are rated by a reviewer with the same values."""
    carried_figure = correctness_of(load_inputs(draw_every_second(release(earlier_run, 0))))
    ratings = {at: float(EXPERTS[at]) for at in range(0, 40, 2)}
    rated_figure = correctness_of(load_inputs(draw_every_second(release(earlier_run, 40), ratings)))
    assert carried_figure.value is not None
    assert (carried_figure.value, carried_figure.low, carried_figure.high) == pytest.approx(
        (rated_figure.value, rated_figure.low, rated_figure.high)
    )
    assert (carried_figure.extra["labels"], carried_figure.extra["carried"]) == (20, 20)
    assert "carried" not in rated_figure.extra
    assert "Includes 20 ratings of identical answers in an earlier answer set." in notes(carried_figure)


def test_carried_labels_wait_for_all_new_answers_of_the_stratum(earlier_run: Run) -> None:
    """Answers 0, 2 and 4 of the drawn ones are new: before all of them are rated, the 17 equal ones would stand for
    them."""
    run = draw_every_second(release(earlier_run, 6), {0: 1, 2: 1})
    waiting = correctness_of(load_inputs(run))
    assert (waiting.value, waiting.extra["labels"]) == (None, 2)
    queue = ReviewQueue.objects.get(draws__run=run)
    reviewer = User.objects.get(queue_memberships__queue=queue)
    rate(assignment_of(queue, answer_rows(run)[4], reviewer, run), metric("correctness"), 1)
    figure = correctness_of(load_inputs(run))
    assert (figure.extra["labels"], figure.extra["carried"]) == (20, 17)
    assert "any_time" not in figure.extra


def test_carried_rating_that_was_not_blind_is_no_label(earlier_run: Run) -> None:
    run = release(earlier_run, 0)
    for answer in answer_rows(earlier_run):
        imported_rating(answer, metric("faithfulness"), "anna", 3, blind=False)
    reviewer = make_user()
    draw_into(queue_for(run, [metric("faithfulness")], [reviewer]), run, [("all", 0.5, True)] * 40)
    basis = load_inputs(run)
    assert basis.sides.reviewed.metrics["faithfulness"].part_mean().mean == 3
    assert basis.correction.of_metric(metric("faithfulness")).withheld == Withheld.CARRIED


def test_release_of_equal_answers_is_a_census(earlier_run: Run) -> None:
    basis = load_inputs(release(earlier_run, 0))
    figure = basis.correction.of_metric(metric("correctness"), target=Target.THIS_RUN)
    assert (figure.value, figure.low, figure.high) == (3.5, 3.5, 3.5)
    assert (figure.extra["labels"], figure.extra["carried"]) == (40, 40)


def test_run_lists_notice_a_new_rating_of_an_equal_answer(earlier_run: Run) -> None:
    run = release(earlier_run)
    headline = headlines_of([run])[run.pk]
    assert (headline.rated, headline.kind) == (39, "expert")
    decide(answer_rows(earlier_run)[1], metric("correctness"), 1)
    assert headlines_of([run])[run.pk].rated == 38


def test_corrected_scores_json_counts_carried_labels(earlier_run: Run) -> None:
    output = StringIO()
    call_command(
        "corrected_scores", str(draw_every_second(release(earlier_run, 0)).pk), "--format", "json", stdout=output
    )
    estimates: Any = json.loads(output.getvalue())["metrics"]["correctness"]
    assert estimates["corrected"]["carried"] == 20
    assert estimates["reviewed"]["labels"] == 40


def test_partly_corrected_score_names_parts_rated_on_equal_answers(earlier_run: Run) -> None:
    """Correctness is rated here; faithfulness was rated on 39 of the 40 equal answers, and no draw asks for it."""
    run = draw_every_second(release(earlier_run, 1), {0: 1})
    assert "rated_as_equal" not in overall_scores(load_inputs(run)).corrected.extra["warnings"]
    for answer in answer_rows(earlier_run)[1:]:
        imported_rating(answer, metric("faithfulness"), "anna", 3, sampling="all")
    figure = overall_scores(load_inputs(run)).corrected
    assert "faithfulness" in figure.partly_corrected
    assert "For some parts, experts rated only identical answers in earlier answer sets" in " ".join(notes(figure))


def test_comparison_with_the_earlier_release_explains_the_missing_correction(earlier_run: Run) -> None:
    (difference,) = compare([earlier_run, release(earlier_run)]).differences
    assert difference.corrected.withheld == Withheld.CARRIED
    assert "Experts rated only identical answers in earlier answer sets" in sentences(difference)[0]
