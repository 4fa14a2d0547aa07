"""Reading budgets over the demo: the amount of text before anything is unfolded, in both languages."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.html import escape
from django.utils.translation import override

from evaluation.models import Run, User
from review.agreement.pages import render_agreement_plots
from review.queues.planning import next_review_json
from review.reports.exports import export
from review.reports.inputs import load_inputs
from review.reports.report import build_report
from review.reports.verdict import verdict_of
from tests.pages.markup import compact
from tests.pages.outside_details import VisibleCounts, count_visible

pytestmark = pytest.mark.slow

LANGUAGES = ("en", "ko")


def visible_counts(person: User, language: str, address: str) -> VisibleCounts:
    """Return the counts of the page as shown to the user in the language."""
    person.language = language
    person.save()
    client = Client()
    client.force_login(person)
    response = client.get(address)
    assert response.status_code == 200
    return count_visible(response.content.decode())


@pytest.mark.parametrize("language", LANGUAGES)
def test_first_screen_of_every_run_is_within_reading_budget(demo: dict[str, User], language: str) -> None:
    for run in Run.objects.all():
        counts = visible_counts(demo["lead"], language, reverse("run", args=[run.pk]))
        assert 50 < counts.words <= 300, (str(run), counts)
        assert counts.figures <= 80, (str(run), counts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_agreement_page_first_shows_one_row_per_metric(demo: dict[str, User], language: str) -> None:
    run = Run.objects.get(name="demo-en · demo-graph")
    counts = visible_counts(demo["lead"], language, reverse("run-agreement", args=[run.pk]))
    assert 10 < counts.figures <= 120


@pytest.mark.parametrize("language", LANGUAGES)
def test_report_file_begins_like_the_page(demo: dict[str, User], language: str) -> None:
    for run in Run.objects.filter(judges__isnull=False):
        with override(language):
            report = report_with_plan(run)
            exported = export(run, "html", pictures=render_agreement_plots, planned=next_review_json)
            page = b"".join(exported.chunks).decode()
        counts = count_visible(page)
        assert 30 < counts.words <= 300, (str(run), counts)
        assert counts.figures <= 80, (str(run), counts)
        assert all(escape(sentence) in page for sentence in report)


@pytest.mark.parametrize("language", LANGUAGES)
def test_home_page_is_within_reading_budget(demo: dict[str, User], language: str) -> None:
    for name in ("lead", "reviewer1", "reviewer2", "viewer", "boss"):
        assert 5 < visible_counts(demo[name], language, reverse("home")).words <= 150, name


def test_rule_run_is_folded_into_its_judged_run(demo: dict[str, User]) -> None:
    client = Client()
    client.force_login(demo["lead"])
    page = compact(client.get(reverse("home")).content.decode())
    for run in Run.objects.filter(judges=None):
        assert f'">{run}</a>' not in page
        assert f'href="{reverse("run", args=[run.pk])}">' in page
    Run.objects.filter(judges=None).update(state=Run.State.INCOMPLETE)  # then it is somebody's business again
    assert page.count("<tr>") + 2 == client.get(reverse("home")).content.decode().count("<tr>")


def report_with_plan(run: Run) -> tuple[str, ...]:
    """The sentences of the run's verdict, in the language that is active."""
    basis = load_inputs(run)
    return verdict_of(replace(build_report(basis), next_review=next_review_json(basis))).sentences


def test_folded_text_is_not_counted_except_summaries() -> None:
    page = """<body><p>not 1 main</p><main><h1>Two words</h1>
      <details><summary>One <b>more 5</b></summary><p>hidden 6</p>
      <details open><summary>8</summary>9</details></details>
      <details open><summary>Open</summary><p>seen 0.86–0.90</p></details><p hidden>no 3</p></main></body>"""
    assert count_visible(page) == VisibleCounts(
        words=8, figures=3
    )  # Two words One more 5 Open seen 0.86–0.90; 5, 0.86 and 0.90
