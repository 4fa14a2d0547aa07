"""A release that answers most questions as the one before: its report counts the experts' ratings of equal answers, and
corrects with those of answers that were sampled in it."""

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
GIVEN = datetime(2026, 9, 1, 12, tzinfo=UTC)


def texts(new: int = 0) -> list[str]:
    """The answers of a release; the first ``new`` are its own."""
    return [f"{'new ' if at < new else ''}answer {at}" for at in range(40)]


@pytest.fixture
def earlier() -> Run:
    """40 answers, all rated blind."""
    asked = answers_to(["a"] * 40).question_set
    run = fill(run_over(make_answer_set(asked, "rag", texts())), JUDGED)
    for answer, value in zip(answer_rows(run), EXPERTS, strict=True):
        imported_rating(answer, metric("correctness"), "anna", value, created_at=GIVEN, sampling="all")
    return run


def release(earlier: Run, new: int = 1) -> Run:
    asked = earlier.answer_set.question_set
    judge = make_judge(asked.project, unique("judge"))
    return fill(run_over(make_answer_set(asked, texts=texts(new)), judge=judge), JUDGED)


def correctness_of(basis: ReportInputs) -> Figure:
    return basis.correction.of_metric(metric("correctness"))


def reported(viewer: Caller, run: Run) -> Any:
    return json.loads(viewer.get(f"runs/{run.pk}/report/").getvalue())


def drawn(run: Run, rated: dict[int, float] | None = None) -> Run:
    """Every other answer, from the first, drawn with probability 1/2; the given ones rated here."""
    person = make_user()
    queue = queue_for(run, [metric("correctness")], [person])
    draw_into(queue, run, [("all", 0.5, at % 2 == 0) for at in range(40)])
    for at, value in (rated or {}).items():
        rate(assignment_of(queue, answer_rows(run)[at], person, run), metric("correctness"), value)
    return run


def test_39_of_40_equal_answers_are_reviewed_and_nothing_is_corrected(earlier: Run) -> None:
    """The first answer is new: there the judge's 5 counts. Reviewed correctness is the mean of that and the 39 others:
    the experts' 40 sum to 5 x 28 = 140, less the first's 4, plus 5: 141 / 40 = 3.525."""
    report = make_report(release(earlier))
    (line,) = [one for one in report.metrics if one.name == "correctness"]
    assert (line.rated, line.carried, line.reviewed.value) == (39, 39, pytest.approx(3.525))
    assert line.judge_only.value == 4.0
    assert report.overall.reviewed_answers == 39
    assert report.overall.reviewed.value == pytest.approx(0.75 + 0.25 * 3.525 / 5)
    assert (line.corrected.withheld, report.overall.corrected.withheld) == (Withheld.CARRIED, Withheld.CARRIED)
    assert report.agreement["experts"] == {}  # the judge of a release is not compared with what was said of another
    assert not load_inputs(release(earlier)).correction.rated_blind
    assert f"only equal ones of earlier runs (#{earlier.pk})" in verdict_of(report).judge


def test_the_report_says_whose_ratings_they_are_and_how_old(earlier: Run) -> None:
    run = release(earlier)
    (found,) = overall_scores(load_inputs(run)).carried
    assert (found.answer_set_id, found.run_id, found.system) == (earlier.answer_set_id, earlier.pk, "rag v1")
    assert (found.answers, found.oldest, found.newest) == (39, GIVEN, GIVEN)
    assert f"39 answers as in run #{earlier.pk} (rag v1), rated since" in carried_in_words(
        overall_scores(load_inputs(run))
    )

    viewer = Caller(make_user(Role.VIEWER, run.project))
    told = reported(viewer, run)
    assert told["overall"]["reviewed_answers"] == 39
    assert told["overall"]["carried"] == [
        {
            "answer_set_id": earlier.answer_set_id,
            "run_id": earlier.pk,
            "system": "rag v1",
            "answers": 39,
            "oldest": GIVEN.isoformat(),
            "newest": GIVEN.isoformat(),
        }
    ]
    assert told["metrics"]["correctness"]["carried"] == 39
    first, second = told["evaluation"]["details"][:2]
    assert "carried" not in first["metrics"]["correctness"]
    value = second["metrics"]["correctness"]
    assert (value["value"], value["source"], value["carried"]["run_id"]) == (5, "review", earlier.pk)
    assert "carried" not in reported(viewer, earlier)["overall"]


@pytest.mark.parametrize("form", ["html", "md"])
def test_readers_are_told_too(earlier: Run, form: str) -> None:
    run = release(earlier)
    viewer = Caller(make_user(Role.VIEWER, run.project))
    text = viewer.get(f"runs/{run.pk}/report/?format={form}").getvalue().decode().replace("\\", "")
    assert f"39 answers as in run #{earlier.pk}" in text
    assert form == "md" or "Experts rated equal answers of earlier answer sets alone" in text


def test_commands_and_the_run_page_tell_the_same(earlier: Run, client: Client) -> None:
    run = release(earlier)
    for command in ("results", "corrected_scores"):
        out = StringIO()
        call_command(command, str(run.pk), stdout=out)
        assert "Experts rated equal answers of earlier answer sets alone" in out.getvalue()
    out = StringIO()
    call_command("results", str(run.pk), stdout=out)
    assert f"39 answers as in run #{earlier.pk}" in out.getvalue()
    client.force_login(make_user(Role.VIEWER, run.project))
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    assert f"39 answers as in run #{earlier.pk}" in page
    assert "39 of 40 answers reviewed by experts" in page


def test_a_sampled_answer_is_labelled_by_its_equal_and_the_figure_is_as_if_it_were_rated_here(earlier: Run) -> None:
    """The oracle is a run whose same 20 answers are rated by somebody with the same values."""
    ours = correctness_of(load_inputs(drawn(release(earlier, 0))))
    rated = {at: float(EXPERTS[at]) for at in range(0, 40, 2)}
    theirs = correctness_of(load_inputs(drawn(release(earlier, 40), rated)))
    assert ours.value is not None
    assert (ours.value, ours.low, ours.high) == pytest.approx((theirs.value, theirs.low, theirs.high))
    assert (ours.extra["labels"], ours.extra["carried"]) == (20, 20)
    assert "carried" not in theirs.extra
    assert "20 of its ratings were given to equal answers of an earlier answer set." in notes(ours)


def test_what_was_carried_waits_until_everything_new_of_the_stratum_was_served(earlier: Run) -> None:
    """Of the drawn answers 0, 2 and 4 are new: before all of them are rated, the 17 equal ones would stand for them."""
    run = drawn(release(earlier, 6), {0: 1, 2: 1})
    waiting = correctness_of(load_inputs(run))
    assert (waiting.value, waiting.extra["labels"]) == (None, 2)
    queue = ReviewQueue.objects.get(draws__run=run)
    person = User.objects.get(queue_memberships__queue=queue)
    rate(assignment_of(queue, answer_rows(run)[4], person, run), metric("correctness"), 1)
    found = correctness_of(load_inputs(run))
    assert (found.extra["labels"], found.extra["carried"]) == (20, 17)
    assert "any_time" not in found.extra


def test_a_rating_that_was_not_blind_there_is_no_label_here(earlier: Run) -> None:
    run = release(earlier, 0)
    for answer in answer_rows(earlier):
        imported_rating(answer, metric("faithfulness"), "anna", 3, blind=False)
    person = make_user()
    draw_into(queue_for(run, [metric("faithfulness")], [person]), run, [("all", 0.5, True)] * 40)
    basis = load_inputs(run)
    assert basis.sides.reviewed.metrics["faithfulness"].part_mean().mean == 3
    assert basis.correction.of_metric(metric("faithfulness")).withheld == Withheld.CARRIED


def test_a_release_whose_every_answer_is_equal_is_no_census(earlier: Run) -> None:
    """A census would be exact; nothing was sampled in this answer set."""
    assert correctness_of(load_inputs(earlier)).extra["labels"] == 40
    assert correctness_of(load_inputs(release(earlier, 0))).withheld == Withheld.CARRIED


def test_lists_of_runs_notice_a_new_rating_of_an_equal_answer(earlier: Run) -> None:
    run = release(earlier)
    before = headlines_of([run])[run.pk]
    assert (before.rated, before.kind) == (39, "expert")
    decide(answer_rows(earlier)[1], metric("correctness"), 1)
    assert headlines_of([run])[run.pk].rated == 38


def test_the_json_of_the_correct_command_counts_carried_labels(earlier: Run) -> None:
    out = StringIO()
    call_command("corrected_scores", str(drawn(release(earlier, 0)).pk), "--format", "json", stdout=out)
    found: Any = json.loads(out.getvalue())["metrics"]["correctness"]
    assert found["corrected"]["carried"] == 20
    assert found["reviewed"]["labels"] == 40


def test_a_score_that_is_partly_corrected_says_which_parts_were_rated_of_equal_answers_alone(earlier: Run) -> None:
    """Correctness is rated here; faithfulness by nobody at first, then of the equal answers."""
    run = drawn(release(earlier, 0))
    assert "rated_as_equal" not in overall_scores(load_inputs(run)).corrected.extra["warnings"]
    for answer in answer_rows(earlier):
        imported_rating(answer, metric("faithfulness"), "anna", 3, sampling="all")
    figure = overall_scores(load_inputs(run)).corrected
    assert "faithfulness" in figure.partly_corrected
    assert "Of some parts experts rated equal answers of earlier answer sets alone" in " ".join(notes(figure))


def test_a_comparison_with_the_release_before_says_why_experts_do_not_settle_it(earlier: Run) -> None:
    (one,) = compare([earlier, release(earlier)]).differences
    assert one.corrected.withheld == Withheld.CARRIED
    assert "Experts rated equal answers of earlier answer sets alone" in sentences(one)[0]
