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


def rated_run(*, rated: int) -> Run:
    """A run of which an expert rated so many answers."""
    project = make_project()
    run = make_scored_run(make_answer_set(make_question_set(project)))
    reviewer = make_user(Role.REVIEWER, project)
    queue = make_queue(run, [reviewer])
    for number in range(rated):
        held = next_assignment(queue, reviewer)
        assert held is not None
        given = {row.metric.name: RatingInput(value=1 + number % 5) for row in queue_metrics(queue)}
        submit(held, given, idempotency_key=f"key-{number}", by=reviewer)
    return run


def file_of(*, rated: int) -> str:
    """The HTML report of such a run."""
    return b"".join(export(rated_run(rated=rated), "html", pictures=render_agreement_plots).chunks).decode()


def test_agreement_in_the_json_report_is_what_the_command_prints_with_its_intervals() -> None:
    run = rated_run(rated=6)
    told = json.loads(b"".join(export(run, "json").chunks))["agreement"]
    printed = StringIO()
    call_command("agreement", run.pk, "--format", "json", stdout=printed)
    assert told == plain(json.loads(printed.getvalue()))
    figures = [of for judge in told["judges"].values() for of in judge.values()]
    assert figures
    assert all(of["intervals"]["exact"] for of in figures)


def test_a_rated_run_has_its_plots_with_their_tables() -> None:
    text = file_of(rated=3)
    assert 'class="grid-plot"' in text
    assert text.count("Confusion matrix: both said the same") >= 1
    assert text.count('class="twin"') >= 4  # the overall score, the metrics, and two plots at least


def test_the_first_statistics_stand_with_their_intervals() -> None:
    text = compact(file_of(rated=6))
    row = re.search(r"<tr><th scope=\"row\">exact agreement.*?</tr>", text)
    assert row is not None
    # e.g. 33% with 0%–83% below it: the bootstrap over the questions that were rated
    assert re.search(r"\d+\s?%<br><small>\d+\s?%–\d+\s?%</small>", row[0]), row[0]


def test_a_run_nobody_rated_has_none_and_still_its_metrics() -> None:
    text = file_of(rated=0)
    assert 'class="grid-plot"' not in text
    assert "Means as a share of each metric’s scale" in text


def test_the_file_loads_nothing_and_runs_nothing() -> None:
    text = file_of(rated=3)
    assert re.findall(r"<script|<link|<img|\bsrc=|\bhx-|\son\w+=|url\(|@import", text) == []


def test_the_file_has_the_cards_of_the_page_and_no_way_out_of_it(client: Client) -> None:
    run = rated_run(rated=3)
    client.force_login(make_user(Role.LEAD, run.project))
    page = client.get(reverse("run", args=[run.pk])).content.decode()
    text = b"".join(export(run, "html", pictures=render_agreement_plots).chunks).decode()
    cards = [re.findall(r'<h2 id="([\w-]+)"', place) for place in (page, text)]
    assert "trust" in cards[0]
    assert cards[1] == [card for card in cards[0] if card != "worst"]  # the file lists whole answers instead
    assert re.findall(r"<form|<button|<a\b|href=", text) == []
