"""The page of agreement: nothing waits for a bootstrap, every picture has a name and a table, time shows versions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.models import Preflight, Run
from review.agreement.run_agreement import Breakdown, agreement_if_cached, cached_agreement
from review.comparisons import trend
from review.comparisons.trend import Trends, load_trends
from review.figure_cache import store
from review.models import CachedAgreement
from review.statistics.agreement import bootstrap
from tests.factories import make_judge, make_user
from tests.review.builders import answer_rows, answers_to, imported_rating, metric, run_over, score_all

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """Eight answers in two categories that two experts have rated."""
    new_run = run_over(answers_to(["a"] * 4 + ["b"] * 4))
    score_all(new_run, {"correctness": [5, 4, 3, 2, 1, 4, 4, 5]})
    add_ratings(new_run)
    return new_run


def add_ratings(run: Run) -> None:
    for answer, (first_value, second_value) in zip(
        answer_rows(run), [(5, 4), (4, 4), (3, 3), (1, 2), (2, 2), (4, 5), (3, 3), (5, 5)], strict=True
    ):
        imported_rating(answer, metric("correctness"), "e1", first_value)
        imported_rating(answer, metric("correctness"), "e2", second_value)


@pytest.fixture
def viewer(run: Run, client: Client) -> Client:
    client.force_login(make_user(Role.VIEWER, run.project))
    return client


@pytest.fixture
def no_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise AssertionError("a bootstrap ran")

    monkeypatch.setattr(bootstrap, "_merged_strata", refuse)  # every resampling plan goes through it


def page_content(client: Client, name: str, run: Run) -> str:
    answer = client.get(reverse(name, args=[run.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def test_run_pages_never_compute_a_bootstrap(run: Run, viewer: Client, no_bootstrap: None) -> None:
    page = page_content(viewer, "run-agreement", run)
    assert "are being computed" in page
    assert reverse("run-agreement-intervals", args=[run.pk]) in page
    page_content(viewer, "run-agreement-over-time", run)
    page_content(viewer, "run", run)
    with pytest.raises(AssertionError, match="a bootstrap ran"):  # the guard does see one
        page_content(viewer, "run-agreement-intervals", run)


def test_intervals_are_computed_once_and_then_cached(run: Run, viewer: Client) -> None:
    assert agreement_if_cached(run, by=Breakdown.CATEGORY) is None
    assert "are being computed" not in page_content(viewer, "run-agreement-intervals", run)
    assert CachedAgreement.objects.count() == 1
    assert "are being computed" not in page_content(viewer, "run-agreement", run)
    imported_rating(answer_rows(run)[0], metric("correctness"), "e3", 1)
    assert "are being computed" in page_content(viewer, "run-agreement", run)


def test_every_chart_has_a_label_and_a_table(run: Run, viewer: Client) -> None:
    page = page_content(viewer, "run-agreement", run)
    labels = re.findall(r'<svg class="(?:grid|time)-plot" role="img" aria-label="([^"]+)"', page)
    assert [name.split(":")[0] for name in labels] == ["Confusion matrix", "Judge and experts", "Reliability curve"]
    assert "same value on 5 of 8 answers" in labels[0]  # means 4.5 4 3 1.5 2 4.5 3 5, halves up: not 5 6 7
    assert page.count("Show as table") == 4
    assert "Always the most common score" in page
    assert "Agreement ceiling" in page


def test_agreement_over_time_marks_a_new_judge(run: Run, viewer: Client) -> None:
    second_run = run_over(run.answer_set, judge=make_judge(run.project, "better"))
    score_all(second_run, {"correctness": [5, 4, 3, 1, 2, 5, 3, 5]})
    trend = load_trends(second_run).by_metric["correctness"]
    assert [point.judge for point in trend.points] == ["judge@1", "better@1"]
    page = page_content(viewer, "run-agreement-over-time", second_run)
    assert page.count("new judge") == 2  # on the line, and in the table
    assert '<line class="change"' in page


def test_agreement_over_time_marks_a_changed_model_of_the_same_judge(run: Run, viewer: Client) -> None:
    judge = run.judges.get().judge_version
    second_run = run_over(run.answer_set, judge=judge)
    score_all(second_run, {"correctness": [5, 4, 3, 1, 2, 5, 3, 5]})
    for judged_run, model in ((run, "m-1"), (second_run, "m-2")):
        pinned = {"outcome": "ok", "response_format": "tool", "judge_hash": "0" * 64, "model_returned": model}
        Preflight.objects.create(run=judged_run, judge_version=judge, **pinned)
    assert [point.served_model for point in load_trends(second_run).by_metric["correctness"].points] == ["m-1", "m-2"]
    page = page_content(viewer, "run-agreement-over-time", second_run)
    assert page.count("new served model") == 2  # on the line, and in the table


def test_trend_reads_cached_agreement(run: Run, no_bootstrap: None) -> None:
    run_over(run.answer_set, judge=run.judges.get().judge_version)
    load_trends(run)
    cached_count = CachedAgreement.objects.count()
    load_trends(run)
    assert CachedAgreement.objects.count() == cached_count
    assert cached_agreement(run, resamples=0)["judges"]["judge@1"]["correctness"]["n"] == 8


def test_requests_never_compute_agreement_of_other_large_runs(
    run: Run, viewer: Client, no_bootstrap: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is asked for it, once, and the page says so."""
    requested: list[int] = []
    monkeypatch.setattr(trend, "MAX_SCORES", 0)
    monkeypatch.setattr(store, "MAX_SMALL_SCORES", 0)
    monkeypatch.setattr(store, "enqueue_task", lambda _task, pk: requested.append(pk))
    second_run = run_over(run.answer_set, judge=run.judges.get().judge_version)
    score_all(second_run, {"correctness": [5, 4, 3, 1, 2, 5, 3, 5]})
    assert load_trends(second_run) == Trends({}, (run, second_run))
    for _ in range(2):
        assert "2 runs on these questions are not shown" in page_content(viewer, "run-agreement-over-time", second_run)
    assert len(requested) == 2
    cached_agreement(run, resamples=0)
    assert [point.run_id for point in load_trends(second_run).by_metric["correctness"].points] == [run.pk]
