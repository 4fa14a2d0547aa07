"""The report as one HTML file holds the plots of agreement and the forest of metrics, and needs nothing else."""

from __future__ import annotations

import json
import re
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Run
from review.agreement.pages import render_agreement_plots
from review.evidence.rating_input import RatingInput
from review.ratings.leases import next_assignment
from review.ratings.submitting import queue_metrics, submit
from review.reports.exports import export
from review.reports.figure import plain
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run, make_user
from tests.pages.markup import compact

pytestmark = pytest.mark.django_db


def rated_run(*, rating_count: int) -> Run:
    """A run of which an expert rated so many answers."""
    project = make_project()
    run = make_scored_run(make_answer_set(make_question_set(project)))
    reviewer = make_user(Role.REVIEWER, project)
    queue = make_queue(run, [reviewer])
    for number in range(rating_count):
        assignment = next_assignment(queue, reviewer)
        assert assignment is not None
        ratings = {row.metric.name: RatingInput(value=1 + number % 5) for row in queue_metrics(queue)}
        submit(assignment, ratings, idempotency_key=f"key-{number}", by=reviewer)
    return run


def html_report(*, rating_count: int) -> str:
    """The HTML report of such a run."""
    return b"".join(
        export(rated_run(rating_count=rating_count), "html", pictures=render_agreement_plots).chunks
    ).decode()


def test_json_report_agreement_matches_command_with_intervals() -> None:
    run = rated_run(rating_count=6)
    report_agreement = json.loads(b"".join(export(run, "json").chunks))["agreement"]
    printed = StringIO()
    call_command("agreement", run.pk, "--format", "json", stdout=printed)
    assert report_agreement == plain(json.loads(printed.getvalue()))
    figures = [metric_figures for judge in report_agreement["judges"].values() for metric_figures in judge.values()]
    assert figures
    assert all(metric_figures["intervals"]["exact"] for metric_figures in figures)


def test_report_of_rated_run_has_plots_with_tables() -> None:
    text = html_report(rating_count=3)
    assert 'class="grid-plot"' in text
    assert text.count("Confusion matrix: same value") >= 1
    assert text.count('class="twin"') >= 4  # the overall score, the metrics, and two plots at least


def test_first_statistics_have_intervals() -> None:
    text = compact(html_report(rating_count=6))
    row = re.search(r"<tr><th scope=\"row\">exact agreement.*?</tr>", text)
    assert row is not None
    # e.g. 33% with 0%–83% below it: the bootstrap over the questions that were rated
    assert re.search(r"\d+\s?%<br><small>\d+\s?%–\d+\s?%</small>", row[0]), row[0]


def test_report_of_unrated_run_has_metrics_but_no_plots() -> None:
    text = html_report(rating_count=0)
    assert 'class="grid-plot"' not in text
    assert "Means as a share of each metric’s scale" in text


def test_report_file_loads_and_runs_nothing() -> None:
    text = html_report(rating_count=3)
    assert re.findall(r"<script|<link|<img|\bsrc=|\bhx-|\son\w+=|url\(|@import", text) == []


def test_report_file_has_cards_of_the_page_and_no_links(client: Client) -> None:
    run = rated_run(rating_count=3)
    client.force_login(make_user(Role.LEAD, run.project))
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    text = b"".join(export(run, "html", pictures=render_agreement_plots).chunks).decode()
    cards = [re.findall(r'<h2 id="([\w-]+)"', content) for content in (page, text)]
    assert "trust" in cards[0]
    assert cards[1] == [card for card in cards[0] if card != "worst"]  # the file lists whole answers instead
    assert re.findall(r"<form|<button|<a\b|href=", text) == []
