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
    made = run_over(answers_to(["a"] * 4 + ["b"] * 4))
    score_all(made, {"correctness": [5, 4, 3, 2, 1, 4, 4, 5]})
    rate(made)
    return made


def rate(run: Run) -> None:
    for answer, (ours, theirs) in zip(
        answer_rows(run), [(5, 4), (4, 4), (3, 3), (1, 2), (2, 2), (4, 5), (3, 3), (5, 5)], strict=True
    ):
        imported_rating(answer, metric("correctness"), "e1", ours)
        imported_rating(answer, metric("correctness"), "e2", theirs)


@pytest.fixture
def viewer(run: Run, client: Client) -> Client:
    client.force_login(make_user(Role.VIEWER, run.project))
    return client


@pytest.fixture
def no_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise AssertionError("a bootstrap ran")

    monkeypatch.setattr(bootstrap, "_merged_strata", refuse)  # every resampling plan goes through it


def text_of(client: Client, name: str, run: Run) -> str:
    answer = client.get(reverse(name, args=[run.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_pages_of_a_run_never_wait_for_a_bootstrap(run: Run, viewer: Client, no_bootstrap: None) -> None:
    page = text_of(viewer, "run-agreement", run)
    assert "are being computed" in page
    assert reverse("run-agreement-intervals", args=[run.pk]) in page
    text_of(viewer, "run-agreement-over-time", run)
    text_of(viewer, "run", run)
    with pytest.raises(AssertionError, match="a bootstrap ran"):  # the guard does see one
        text_of(viewer, "run-agreement-intervals", run)


def test_intervals_are_computed_once_and_then_stand_on_the_page_at_once(run: Run, viewer: Client) -> None:
    assert agreement_if_cached(run, by=Breakdown.CATEGORY) is None
    assert "are being computed" not in text_of(viewer, "run-agreement-intervals", run)
    assert CachedAgreement.objects.count() == 1
    assert "are being computed" not in text_of(viewer, "run-agreement", run)
    imported_rating(answer_rows(run)[0], metric("correctness"), "e3", 1)
    assert "are being computed" in text_of(viewer, "run-agreement", run)


def test_every_picture_has_a_name_and_its_figures_as_a_table(run: Run, viewer: Client) -> None:
    page = text_of(viewer, "run-agreement", run)
    named = re.findall(r'<svg class="(?:grid|time)-plot" role="img" aria-label="([^"]+)"', page)
    assert [name.split(":")[0] for name in named] == ["Confusion matrix", "Judge against experts", "Reliability curve"]
    assert "both said the same on 5 of 8 answers" in named[0]  # means 4.5 4 3 1.5 2 4.5 3 5, halves up: not 5 6 7
    assert page.count("Show as table") == 4
    assert "best constant guess" in page
    assert "How close could anyone come?" in page


def test_agreement_over_time_marks_a_new_judge(run: Run, viewer: Client) -> None:
    again = run_over(run.answer_set, judge=make_judge(run.project, "better"))
    score_all(again, {"correctness": [5, 4, 3, 1, 2, 5, 3, 5]})
    trend = load_trends(again).by_metric["correctness"]
    assert [point.judge for point in trend.points] == ["judge@1", "better@1"]
    page = text_of(viewer, "run-agreement-over-time", again)
    assert page.count("new judge") == 2  # on the line, and in the table
    assert '<line class="change"' in page


def test_c7_agreement_over_time_marks_another_model_behind_the_same_judge(run: Run, viewer: Client) -> None:
    judge = run.judges.get().judge_version
    again = run_over(run.answer_set, judge=judge)
    score_all(again, {"correctness": [5, 4, 3, 1, 2, 5, 3, 5]})
    for one, model in ((run, "m-1"), (again, "m-2")):
        pinned = {"outcome": "ok", "rung": "tool", "judge_hash": "0" * 64, "model_returned": model}
        Preflight.objects.create(run=one, judge_version=judge, **pinned)
    assert [point.served for point in load_trends(again).by_metric["correctness"].points] == ["m-1", "m-2"]
    page = text_of(viewer, "run-agreement-over-time", again)
    assert page.count("another model answered") == 2  # on the line, and in the table


def test_the_trend_reads_what_is_kept(run: Run, no_bootstrap: None) -> None:
    run_over(run.answer_set, judge=run.judges.get().judge_version)
    load_trends(run)
    before = CachedAgreement.objects.count()
    load_trends(run)
    assert CachedAgreement.objects.count() == before
    assert cached_agreement(run, resamples=0)["judges"]["judge@1"]["correctness"]["n"] == 8


def test_no_request_works_out_the_agreement_of_another_large_run(
    run: Run, viewer: Client, no_bootstrap: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is asked for it, once, and the page says so."""
    rung: list[int] = []
    monkeypatch.setattr(trend, "MAX_SCORES", 0)
    monkeypatch.setattr(store, "MAX_SMALL_SCORES", 0)
    monkeypatch.setattr(store, "enqueue_task", lambda _task, pk: rung.append(pk))
    again = run_over(run.answer_set, judge=run.judges.get().judge_version)
    score_all(again, {"correctness": [5, 4, 3, 1, 2, 5, 3, 5]})
    assert load_trends(again) == Trends({}, (run, again))
    for _ in range(2):
        assert "2 runs over these questions are not in it" in text_of(viewer, "run-agreement-over-time", again)
    assert len(rung) == 2
    cached_agreement(run, resamples=0)
    assert [point.run_id for point in load_trends(again).by_metric["correctness"].points] == [run.pk]
