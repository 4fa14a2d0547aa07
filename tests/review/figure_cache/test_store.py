"""Cached figures: built in the request for small runs, by a worker for others, and never twice."""

from __future__ import annotations

import io
import sqlite3
from datetime import timedelta

import pytest
from django.core.cache import caches
from django.core.management import call_command
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.http import parse_http_date
from openpyxl import load_workbook

from evaluation.core.errors import DomainError, NotReady
from evaluation.core.roles import Role
from evaluation.models import Run
from review.agreement.answers import AnswerFilter, SelectedAnswer, select_answers
from review.comparisons.gates import run_gate
from review.comparisons.values import MAX_RUNS
from review.figure_cache import builders, store
from review.figure_cache.selectors import (
    cached_comparison,
    current_figures,
    current_gates,
    headlines_of,
    listed_answers,
    listed_lines,
    run_figures,
)
from review.models import CachedFigures, PendingInvalidation, QuestionSetRevision
from review.reports.exports import BRIEF, REPORT_EXPORTS
from review.reports.gate import GateRequest
from review.reports.inputs import load_inputs
from review.reports.lines import answer_lines
from tests.examples import first_fast
from tests.factories import make_answer_set, make_question_set, make_scored_run, make_user
from tests.review.builders import answer_rows, decide, metric

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Treat no run as small and collect the rows that workers are asked to build."""
    row_ids: list[int] = []
    monkeypatch.setattr(store, "MAX_SMALL_SCORES", 0)
    monkeypatch.setattr(store, "enqueue_task", lambda _task, pk: row_ids.append(pk))
    return row_ids


@pytest.fixture
def run() -> Run:
    return make_scored_run(make_answer_set(make_question_set(specs=7)), values=(1, 2, None, 4, 5, 3, 2))


def test_page_of_large_run_does_not_wait_for_a_worker(run: Run, enqueued: list[int]) -> None:
    """The page first shows a building notice, then the cached figures, with their age once they are stale."""
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    page = reverse("run", args=[run.pk])
    assert "A background worker" in client.get(page).content.decode()
    client.get(page)
    (pk,) = enqueued  # asked once, however often one looks
    builders.rebuild(pk)
    assert run_figures(run).stale is False
    CachedFigures.objects.update(seconds=0)
    decide(answer_rows(run)[0], metric("correctness"), 5)
    html = client.get(page).content.decode()
    assert "computed 0\N{NO-BREAK SPACE}minutes ago" in html
    assert run_figures(run).stale is True
    assert enqueued == [pk, pk]
    builders.rebuild(pk)
    assert "figures were computed" not in client.get(page).content.decode()


@pytest.mark.parametrize(
    ("name", "query"),
    [("run-answers", ""), ("run-agreement", ""), *(("run-report", f"?format={form}") for form in sorted(BRIEF))],
)
def test_every_page_of_a_large_run_shows_a_building_notice(
    run: Run, enqueued: list[int], name: str, query: str
) -> None:
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    assert "A background worker" in client.get(reverse(name, args=[run.pk]) + query).content.decode()
    assert "A background worker" in client.get(reverse("run-compare"), {"runs": run.pk}).content.decode()
    assert headlines_of([run]) == {}
    assert enqueued


GATES = ["fail_under=0.3&looks=2&require_approval=true", "baseline={other}&max_drop=0.1", "baseline={run}&max_drop=0.1"]
PATHS = [
    "{run}/correction/",
    "compare/?runs={run}",
    "compare/?runs={run}&fail_under=0.5",
    "compare/?runs={other},{run}&max_drop=0.1&allow_undecided=true",
    *(f"{{run}}/report/?format={form}" for form in REPORT_EXPORTS.names),
    *(f"{{run}}/report/?format={form}&{gate}" for form in ("json", "junit") for gate in GATES),
]


@pytest.mark.parametrize("path", first_fast(PATHS, 6))
def test_api_returns_503_until_figures_are_built(
    run: Run, enqueued: list[int], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The body equals that of a small run."""
    client = Client()
    lead = make_user(Role.LEAD, run.project)
    client.force_login(lead)
    other_run = make_scored_run(make_answer_set(run.answer_set.question_set), values=(2, 2, 3, 4, 5, 3, 1))
    address = "/api/v1/runs/" + path.format(run=run.pk, other=other_run.pk)
    answer = client.get(address)
    for _ in range(3):  # HTML is made of figures and agreement, a gate of intervals of its own
        if answer.status_code == 503:
            assert (answer["Retry-After"], answer.json()["code"]) == ("10", "figures_in_making")
            builders.rebuild(enqueued.pop())
            answer = client.get(address)
    assert not enqueued
    counts = [caches["shared"].get(f"throttle_{scope}_{lead.pk}", []) for scope in ("files", "figures")]
    assert sum(map(len, counts)) == 1  # a 503 does not count
    build_times = {int(value.timestamp()) for value in CachedFigures.objects.values_list("built_at", flat=True)}
    assert parse_http_date(answer["Last-Modified"]) in build_times
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    monkeypatch.setattr(store, "MAX_SMALL_SCORES", 5_000)
    CachedFigures.objects.all().delete()
    direct_response = client.get(address)
    expected = b"".join(direct_response.streaming_content) if direct_response.streaming else direct_response.content
    assert (answer.status_code, answer["Content-Type"]) == (200, direct_response["Content-Type"])
    assert answer.get("Content-Disposition") == direct_response.get("Content-Disposition")
    if "xlsx" in path:  # which says when it was written
        content, expected = (
            [list(sheet.values) for sheet in load_workbook(io.BytesIO(value)).worksheets]
            for value in (content, expected)
        )
    assert content == expected


def test_polling_program_gets_figures_built_since_its_first_request(run: Run, enqueued: list[int]) -> None:
    """Stale figures are returned when they were built after the first request; older ones are not."""
    with pytest.raises(NotReady):
        current_figures(run)
    builders.rebuild(enqueued[0])
    CachedFigures.objects.update(seconds=100.0)
    decide(answer_rows(run)[0], metric("correctness"), 5)
    built_at = CachedFigures.objects.get(kind=builders.FIGURES).built_at
    assert current_figures(run).built_at == built_at
    assert len(enqueued) == 1
    CachedFigures.objects.update(built_at=timezone.now() - timedelta(seconds=201))
    with pytest.raises(NotReady) as error:
        current_figures(run)
    assert (error.value.seconds, len(enqueued)) == (100, 2)


@pytest.mark.parametrize("form", sorted(set(REPORT_EXPORTS.names) - BRIEF))
def test_worker_writes_large_file(run: Run, enqueued: list[int], form: str) -> None:
    client = Client(headers={"accept-language": "ko"})
    client.force_login(make_user(Role.LEAD, run.project))
    address = reverse("run-report", args=[run.pk]) + f"?format={form}"
    page = client.get(address).content.decode()
    assert "백그라운드에서 이 파일을" in page
    assert "hx-get" not in page  # a file is no piece of a page
    assert CachedFigures.objects.get().kind == f"report {form} ko"
    builders.rebuild(enqueued[0])
    assert client.get(address)["Content-Disposition"].startswith("attachment")


PAGES = ["run", "run-answers", "run-agreement", "run-report"]


@pytest.mark.parametrize("name", PAGES)
def test_small_runs_are_shown_on_a_read_only_database(run: Run, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_write(_write: object, **_: object) -> None:
        raise DomainError("database_read_only")

    decide(answer_rows(run)[0], metric("correctness"), 5)
    monkeypatch.setattr(store, "retry_on_db_error", refuse_write)
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    answer = client.get(reverse(name, args=[run.pk]))
    assert answer.status_code == 200
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    assert b"A background worker" not in content
    assert not CachedFigures.objects.exists()
    assert PendingInvalidation.objects.exists()  # counted once it takes writing again


@pytest.mark.parametrize("error", ["SQLITE_READONLY", "SQLITE_CORRUPT"])
def test_no_rebuild_is_requested_when_database_refuses_writes(
    run: Run, enqueued: list[int], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_write(*_: object) -> None:
        cause = sqlite3.OperationalError()
        cause.sqlite_errorname = error
        raise OperationalError from cause

    monkeypatch.setattr(store, "_request_rebuild", refuse_write)
    if error == "SQLITE_CORRUPT":
        with pytest.raises(OperationalError):
            run_figures(run)
    else:
        assert run_figures(run).value is None
        with pytest.raises(NotReady):
            current_figures(run)


def test_rebuild_is_not_requested_again_right_after_a_build(run: Run, enqueued: list[int]) -> None:
    """A worker rests for twice the duration of the last build, so repeated views do not keep it busy."""
    run_figures(run)
    builders.rebuild(enqueued[0])
    CachedFigures.objects.update(seconds=100.0)
    decide(answer_rows(run)[0], metric("correctness"), 5)
    assert run_figures(run).stale is True
    assert len(enqueued) == 1
    CachedFigures.objects.update(built_at=timezone.now() - timedelta(seconds=201))
    run_figures(run)
    assert len(enqueued) == 2


def test_lost_rebuild_request_is_repeated(run: Run, enqueued: list[int]) -> None:
    run_figures(run)
    CachedFigures.objects.update(rebuild_requested_at=timezone.now() - timedelta(minutes=6))
    run_figures(run)
    assert len(enqueued) == 2


def test_figures_of_finished_run_are_built_before_the_first_view(run: Run, enqueued: list[int]) -> None:
    builders.maintain_cache()
    assert CachedFigures.objects.get(pk=enqueued[0]).subject == str(run.pk)
    call_command("work", "--once")
    assert headlines_of([run])[run.pk].answers == 7


def test_gate_is_built_on_request_and_deleted_after_a_time(run: Run, enqueued: list[int]) -> None:
    with pytest.raises(NotReady):
        current_gates([run], GateRequest(fail_under=0.5))
    call_command("work", "--once")
    assert current_gates([run], GateRequest(fail_under=0.5)) == {run.pk: run_gate(run, GateRequest(fail_under=0.5))}
    CachedFigures.objects.update(built_at=timezone.now() - timedelta(days=31))
    builders.maintain_cache()
    assert not CachedFigures.objects.filter(builders.WITH_GATE).exists()


def test_cache_keys_fit_their_columns() -> None:
    """PostgreSQL refuses longer values."""
    limits = {"fail_under": -123456.12345678901, "max_drop": 123456.12345678901, "looks": 1000}
    flags = dict.fromkeys(("allow_undecided", "across_models", "require_approval"), True)
    kinds = [
        builders.gated_kind(kind, GateRequest(gate_on="precision_at_k", **limits, **flags))
        for kind in builders.GATED_BUILDERS
    ]
    assert max(map(len, kinds)) <= CachedFigures._meta.get_field("kind").max_length
    subject = store.subject_of([Run(pk=10**18 + at) for at in range(MAX_RUNS)])
    assert len(subject) <= CachedFigures._meta.get_field("subject").max_length


def test_file_without_a_gate_rule_has_no_gated_kind(run: Run) -> None:
    assert builders.gated_kind("report json en", GateRequest(allow_undecided=True, looks=3)) == "report json en"


def test_changes_are_counted_once(run: Run) -> None:
    first, second = answer_rows(run)[:2]
    store.count_invalidations()
    before = (
        QuestionSetRevision.objects.get(pk=run.answer_set.question_set_id).number
        if QuestionSetRevision.objects.exists()
        else 0
    )
    decide(first, metric("correctness"), 5)
    decide(second, metric("correctness"), 5)
    store.count_invalidations()
    store.count_invalidations()
    assert QuestionSetRevision.objects.get(pk=run.answer_set.question_set_id).number == before + 1
    assert not PendingInvalidation.objects.exists()


def test_figures_of_a_running_run_are_never_current(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    run.refresh_from_db()
    run_figures(run)
    assert store.stamps_of([run]) == {run.pk: ""}
    assert not store.is_current(builders.FIGURES, [run])


def test_rows_of_deleted_runs_are_deleted(run: Run) -> None:
    row = CachedFigures.objects.create(kind=builders.COMPARISON, subject=f"{run.pk},{run.pk + 1}")
    builders.rebuild(row.pk)
    builders.rebuild(row.pk)
    assert not CachedFigures.objects.exists()


FILTERS = [
    AnswerFilter(),
    AnswerFilter(metric="faithfulness"),
    AnswerFilter(low=3),
    AnswerFilter(low=2, high=4),
    AnswerFilter(source="judge"),
    AnswerFilter(source="override"),
    AnswerFilter(source="none"),
    AnswerFilter(words="country 3"),
    AnswerFilter(words="nowhere"),
    AnswerFilter(label="none"),
    AnswerFilter(category="negative"),
]


@pytest.mark.parametrize("answer_filter", first_fast(FILTERS, 4), ids=str)
def test_listed_answers_equal_the_answers_selected_from_all(run: Run, answer_filter: AnswerFilter) -> None:
    decide(answer_rows(run)[1], metric("correctness"), 4)
    selection = select_answers(run, answer_filter)
    page = listed_answers(run, answer_filter, 0, 100).value
    assert page is not None
    assert (page.metric, page.metrics, page.categories) == (selection.metric, selection.metrics, selection.categories)
    assert (page.count, page.rows) == (len(selection.rows), selection.rows)
    second = listed_answers(run, answer_filter, 2, 2).value
    assert second is not None
    assert (second.count, second.rows) == (len(selection.rows), selection.rows[2:4])


def test_listed_answers_are_sorted_with_missing_values_last(run: Run) -> None:
    def rows(order: str) -> list[SelectedAnswer]:
        page = listed_answers(run, AnswerFilter(metric="correctness", order=order), 0, 100).value
        assert page is not None
        return list(page.rows)

    def values(order: str) -> list[float | None]:
        return [row.effective.value if row.effective else None for row in rows(order)]

    scored = [value for value in values("") if value is not None]
    missing = [None] * (len(rows("")) - len(scored))
    assert values("value") == [*sorted(scored), *missing]
    assert values("-value") == [*sorted(scored, reverse=True), *missing]
    categories = [row.answer.category for row in rows("category")]
    assert categories == sorted(categories)
    assert len(set(categories)) > 1


def test_listed_lines_equal_the_lines_of_the_full_report(run: Run) -> None:
    decide(answer_rows(run)[1], metric("correctness"), 4)
    assert listed_lines(run) == tuple(answer_lines(load_inputs(run)))


def test_comparison_is_built_once(run: Run) -> None:
    other_run = make_scored_run(run.answer_set, values=(3, 3, 4, 4, 5, 5, 1))
    first, second = cached_comparison([run, other_run]), cached_comparison([run, other_run])
    assert first.value == second.value
    assert first.value is not None
    assert [difference.run_id for difference in first.value.differences] == [other_run.pk]
    assert CachedFigures.objects.filter(kind=builders.COMPARISON, subject=f"{run.pk},{other_run.pk}").count() == 1
