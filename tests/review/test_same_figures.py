"""Figures of three demo runs are equal on the pages, over REST, by command, and in JSON and HTML reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html import unescape
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import override

from evaluation.messages import numbers
from evaluation.models import Run, User
from review.agreement.pages import PERCENT_STATISTICS, render_agreement_plots
from review.agreement.plots import STATISTICS
from review.management.demo.loader import create_demo_users, demo_project, load_demo
from review.queues.planning import next_review_json
from review.reports.estimates import ESTIMATE_NAMES
from review.reports.exports import export
from review.reports.figure import plain
from tests.review.builders import make_report

pytestmark = pytest.mark.django_db
TITLES = {"judge_only": "judge only", "reviewed": "reviewed", "corrected": "corrected"}
LEAST = 150  # figures walked, so that the test cannot become empty


def run_command(*command: str) -> str:
    output = StringIO()
    with suppress(SystemExit):  # of a run that is not complete
        call_command(*command, stdout=output, stderr=StringIO())
    return output.getvalue()


def rows(html: str) -> list[str]:
    """The rows of all tables, as texts."""
    table_rows = re.findall(r"<tr>.*?</tr>", html, re.DOTALL)
    return [
        " ".join(unescape(re.sub(r"<[^>]+>", " ", row)).replace("\N{MINUS SIGN}", "-").split()) for row in table_rows
    ]


def row_with(texts: list[str], title: str, *figures: str) -> bool:
    """Return whether a row that begins with the title holds the texts."""
    return any(row.lower().startswith(title.lower()) and all(figure in row for figure in figures) for row in texts)


def two_digits(figure: Mapping[str, Any]) -> list[str]:
    """The value and the ends of its interval."""
    return [
        f"{round(value, 2) or 0.0:.2f}" for key in ("value", "low", "high") if (value := figure.get(key)) is not None
    ]


def scores(report: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Yield (name, estimate, scale, figure) of the overall score and of every metric."""
    for estimate in TITLES:
        yield "overall", estimate, "", report["overall"][estimate]
    for name, metric in report["metrics"].items():
        for estimate in TITLES:
            yield name, estimate, metric["scale"], metric[estimate]


def statistics(agreement: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Each statistic of every judge that has a value, as pages show it with its interval."""
    for judge in agreement["judges"].values():
        for metric_statistics in judge.values():
            for name in STATISTICS:
                if (value := metric_statistics.get(name)) is None:
                    continue
                low, high = metric_statistics["intervals"].get(name, (None, None))
                bounds = [number for number in (value, low, high) if number is not None]
                texts = [
                    numbers.format_share(number) if name in PERCENT_STATISTICS else f"{round(number, 2) or 0.0:.2f}"
                    for number in bounds
                ]
                yield name, str(STATISTICS[name][0]), texts


def compare_figures(run: Run, client: Client) -> int:
    """Compare every figure of a run in all outputs, and return the number of figures."""

    def rest(path: str) -> Any:
        answer = client.get(f"/api/v1/runs/{run.pk}/{path}")
        assert answer.status_code == 200, path
        return json.loads(b"".join(answer.streaming_content) if answer.streaming else answer.content)

    report = json.loads(b"".join(export(run, "json", planned=next_review_json).chunks))
    assert rest("report/?format=json") == report
    summary = json.loads(run_command("results", str(run.pk), "--format", "json"))
    assert {key: value for key, value in report.items() if key != "evaluation"} == {
        key: value for key, value in summary.items() if key != "evaluation"
    }
    correction = json.loads(run_command("corrected_scores", str(run.pk), "--format", "json"))
    assert rest("correction/") == correction
    agreement = json.loads(run_command("agreement", str(run.pk), "--format", "json"))
    assert rest("agreement/") == agreement
    assert report["agreement"] == plain(agreement)

    page = rows(client.get(reverse("run", args=[run.pk])).content.decode())
    details = rows(client.get(reverse("run-agreement-intervals", args=[run.pk])).content.decode())
    html = rows(b"".join(export(run, "html", pictures=render_agreement_plots).chunks).decode())
    terminal, corrected = run_command("results", str(run.pk)), run_command("corrected_scores", str(run.pk))
    titles = {line.name: line.title.in_language("en") for line in make_report(run).metrics}
    count = 0
    for name, estimate, scale, figure in scores(report):
        estimates = correction["overall"] if name == "overall" else correction["metrics"][name]
        assert estimate in ESTIMATE_NAMES
        assert {key: estimates[estimate].get(key) for key in figure} == figure
        if figure.get("value") is None or scale.endswith("seconds"):
            continue
        count += 1 + (figure.get("low") is not None)
        line = [cells for cells in map(str.split, corrected.splitlines()) if cells]
        assert any(cells[0] == name and f"{figure['value']:.3f}" in cells for cells in line), (name, estimate)
        assert f"{figure['value']:.3f}" in terminal or name != "overall", (name, estimate)
        partly = estimate == "corrected" and bool(figure.get("partly_corrected"))
        title = ("partly " if partly else "") + TITLES[estimate] if name == "overall" else titles[name]
        for output_name, texts in (("page", page), ("html", html)):
            assert row_with(texts, capfirst(title), *two_digits(figure)), (
                output_name,
                name,
                estimate,
                two_digits(figure),
            )
    for name, title, figures in statistics(report["agreement"]):
        count += len(figures)
        assert row_with(details, title, *figures), ("page", title, figures)
        assert name not in {"exact", "within_one", "cohen_kappa_quadratic"} or row_with(html, title, *figures), (
            "html",
            title,
            figures,
        )
    return count


@pytest.mark.slow
def test_three_demo_runs_have_equal_figures_everywhere(settings: Any) -> None:
    settings.CONCORD_DISPATCHER = "local"
    project = demo_project()
    create_demo_users(project)
    load_demo(project, "en")
    client = Client()
    client.force_login(User.objects.get(username="viewer"))
    with override("en"):
        runs = list(Run.objects.order_by("pk")[:4])
        counts = {str(run): compare_figures(run, client) for run in runs[1:]}
    assert len(counts) == 3
    assert sum(counts.values()) >= LEAST, counts
