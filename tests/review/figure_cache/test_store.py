"""Who makes what pages read: a page at once for small runs, a worker for others, and nobody twice."""

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
from review.agreement.answers import AnswerFilter, select_answers
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
def rung(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """No run is small, and the rows that workers are asked for."""
    asked: list[int] = []
    monkeypatch.setattr(store, "MAX_SMALL_SCORES", 0)
    monkeypatch.setattr(store, "enqueue_task", lambda _task, pk: asked.append(pk))
    return asked


@pytest.fixture
def run() -> Run:
    return make_scored_run(make_answer_set(make_question_set(specs=7)), values=(1, 2, None, 4, 5, 3, 2))


def test_a_page_of_a_large_run_waits_for_nobody(run: Run, rung: list[int]) -> None:
    """First it says that a worker is at it, then it shows what is there, with its age once that is old."""
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    page = reverse("run", args=[run.pk])
    assert "A background worker" in client.get(page).content.decode()
    client.get(page)
    (pk,) = rung  # asked once, however often one looks
    builders.rebuild(pk)
    assert run_figures(run).stale is False
    CachedFigures.objects.update(seconds=0)
    decide(answer_rows(run)[0], metric("correctness"), 5)
    html = client.get(page).content.decode()
    assert "worked out 0\N{NO-BREAK SPACE}minutes ago" in html
    assert run_figures(run).stale is True
    assert rung == [pk, pk]
    builders.rebuild(pk)
    assert "worked out" not in client.get(page).content.decode()


@pytest.mark.parametrize(
    ("name", "asked"),
    [("run-answers", ""), ("run-agreement", ""), *(("run-report", f"?format={form}") for form in sorted(BRIEF))],
)
def test_every_page_of_a_large_run_says_that_it_is_being_made(run: Run, rung: list[int], name: str, asked: str) -> None:
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    assert "A background worker" in client.get(reverse(name, args=[run.pk]) + asked).content.decode()
    assert "A background worker" in client.get(reverse("run-compare"), {"runs": run.pk}).content.decode()
    assert headlines_of([run]) == {}
    assert rung


GATES = ["fail_under=0.3&looks=2&require_licence=true", "baseline={other}&max_drop=0.1", "baseline={run}&max_drop=0.1"]
ASKED = [
    "{run}/correction/",
    "compare/?runs={run}",
    "compare/?runs={run}&fail_under=0.5",
    "compare/?runs={other},{run}&max_drop=0.1&allow_undecided=true",
    *(f"{{run}}/report/?format={form}" for form in REPORT_EXPORTS.names),
    *(f"{{run}}/report/?format={form}&{gate}" for form in ("json", "junit") for gate in GATES),
]


@pytest.mark.parametrize("asked", first_fast(ASKED, 6))
def test_a_program_is_told_to_come_back_and_then_gets_it(
    run: Run, rung: list[int], asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it gets is what a small run gives."""
    client = Client()
    lead = make_user(Role.LEAD, run.project)
    client.force_login(lead)
    other = make_scored_run(make_answer_set(run.answer_set.question_set), values=(2, 2, 3, 4, 5, 3, 1))
    address = "/api/v1/runs/" + asked.format(run=run.pk, other=other.pk)
    answer = client.get(address)
    for _ in range(3):  # HTML is made of figures and agreement, a gate of intervals of its own
        if answer.status_code == 503:
            assert (answer["Retry-After"], answer.json()["code"]) == ("10", "figures_in_making")
            builders.rebuild(rung.pop())
            answer = client.get(address)
    assert not rung
    counts = [caches["shared"].get(f"throttle_{scope}_{lead.pk}", []) for scope in ("files", "figures")]
    assert sum(map(len, counts)) == 1  # a 503 does not count
    made = {int(one.timestamp()) for one in CachedFigures.objects.values_list("built_at", flat=True)}
    assert parse_http_date(answer["Last-Modified"]) in made
    told = b"".join(answer.streaming_content) if answer.streaming else answer.content
    monkeypatch.setattr(store, "MAX_SMALL_SCORES", 5_000)
    CachedFigures.objects.all().delete()
    again = client.get(address)
    expected = b"".join(again.streaming_content) if again.streaming else again.content
    assert (answer.status_code, answer["Content-Type"]) == (200, again["Content-Type"])
    assert answer.get("Content-Disposition") == again.get("Content-Disposition")
    if "xlsx" in asked:  # which says when it was written
        told, expected = (
            [list(sheet.values) for sheet in load_workbook(io.BytesIO(one)).worksheets] for one in (told, expected)
        )
    assert told == expected


def test_a_program_that_asks_on_is_answered_while_people_rate(run: Run, rung: list[int]) -> None:
    """Figures that were made since it began to ask, though they hold no longer; none that are older."""
    with pytest.raises(NotReady):
        current_figures(run)
    builders.rebuild(rung[0])
    CachedFigures.objects.update(seconds=100.0)
    decide(answer_rows(run)[0], metric("correctness"), 5)
    built_at = CachedFigures.objects.get(kind=builders.FIGURES).built_at
    assert current_figures(run).built_at == built_at
    assert len(rung) == 1
    CachedFigures.objects.update(built_at=timezone.now() - timedelta(seconds=201))
    with pytest.raises(NotReady) as refused:
        current_figures(run)
    assert (refused.value.seconds, len(rung)) == (100, 2)


@pytest.mark.parametrize("form", sorted(set(REPORT_EXPORTS.names) - BRIEF))
def test_a_large_file_is_written_by_a_worker(run: Run, rung: list[int], form: str) -> None:
    client = Client(headers={"accept-language": "ko"})
    client.force_login(make_user(Role.LEAD, run.project))
    address = reverse("run-report", args=[run.pk]) + f"?format={form}"
    page = client.get(address).content.decode()
    assert "백그라운드 작업자가 이 파일을" in page
    assert "hx-get" not in page  # a file is no piece of a page
    assert CachedFigures.objects.get().kind == f"report {form} ko"
    builders.rebuild(rung[0])
    assert client.get(address)["Content-Disposition"].startswith("attachment")


PAGES = ["run", "run-answers", "run-agreement", "run-report"]


@pytest.mark.parametrize("name", PAGES)
def test_a_database_that_takes_no_writing_shows_small_runs_all_the_same(
    run: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_write: object, **_: object) -> None:
        raise DomainError("database_read_only")

    decide(answer_rows(run)[0], metric("correctness"), 5)
    monkeypatch.setattr(store, "retry_on_db_error", refused)
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    answer = client.get(reverse(name, args=[run.pk]))
    assert answer.status_code == 200
    told = b"".join(answer.streaming_content) if answer.streaming else answer.content
    assert b"A background worker" not in told
    assert not CachedFigures.objects.exists()
    assert PendingInvalidation.objects.exists()  # counted once it takes writing again


@pytest.mark.parametrize("error", ["SQLITE_READONLY", "SQLITE_CORRUPT"])
def test_nobody_is_asked_where_no_writing_is_taken(
    run: Run, rung: list[int], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        cause = sqlite3.OperationalError()
        cause.sqlite_errorname = error
        raise OperationalError from cause

    monkeypatch.setattr(store, "_request_rebuild", refused)
    if error == "SQLITE_CORRUPT":
        with pytest.raises(OperationalError):
            run_figures(run)
    else:
        assert run_figures(run).value is None
        with pytest.raises(NotReady):
            current_figures(run)


def test_a_worker_that_was_just_there_is_not_asked_again(run: Run, rung: list[int]) -> None:
    """It rests for twice the time that it took: looking does not keep it busy for good."""
    run_figures(run)
    builders.rebuild(rung[0])
    CachedFigures.objects.update(seconds=100.0)
    decide(answer_rows(run)[0], metric("correctness"), 5)
    assert run_figures(run).stale is True
    assert len(rung) == 1
    CachedFigures.objects.update(built_at=timezone.now() - timedelta(seconds=201))
    run_figures(run)
    assert len(rung) == 2


def test_one_who_was_asked_and_never_came_is_asked_again(run: Run, rung: list[int]) -> None:
    run_figures(run)
    CachedFigures.objects.update(rebuild_requested_at=timezone.now() - timedelta(minutes=6))
    run_figures(run)
    assert len(rung) == 2


def test_what_ended_is_made_before_anybody_looks(run: Run, rung: list[int]) -> None:
    builders.maintain_cache()
    assert CachedFigures.objects.get(pk=rung[0]).subject == str(run.pk)
    call_command("work", "--once")
    assert headlines_of([run])[run.pk].answers == 7


def test_a_gate_is_made_by_who_comes_and_forgotten_in_time(run: Run, rung: list[int]) -> None:
    with pytest.raises(NotReady):
        current_gates([run], GateRequest(fail_under=0.5))
    call_command("work", "--once")
    assert current_gates([run], GateRequest(fail_under=0.5)) == {run.pk: run_gate(run, GateRequest(fail_under=0.5))}
    CachedFigures.objects.update(built_at=timezone.now() - timedelta(days=31))
    builders.maintain_cache()
    assert not CachedFigures.objects.filter(builders.WITH_GATE).exists()


def test_what_is_kept_has_room_for_its_names() -> None:
    """PostgreSQL takes nothing longer."""
    asked = {"fail_under": -123456.12345678901, "max_drop": 123456.12345678901, "looks": 1000}
    flags = dict.fromkeys(("allow_undecided", "across_models", "require_licence"), True)
    kinds = [
        builders.gated_kind(kind, GateRequest(gate_on="precision_at_k", **asked, **flags))
        for kind in builders.GATED_BUILDERS
    ]
    assert max(map(len, kinds)) <= CachedFigures._meta.get_field("kind").max_length
    subject = store.subject_of([Run(pk=10**18 + at) for at in range(MAX_RUNS)])
    assert len(subject) <= CachedFigures._meta.get_field("subject").max_length


def test_a_file_without_a_rule_is_the_file_without_a_gate(run: Run) -> None:
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


def test_a_running_run_is_never_taken_for_made(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state=Run.State.RUNNING)
    run.refresh_from_db()
    run_figures(run)
    assert store.stamps_of([run]) == {run.pk: ""}
    assert not store.is_current(builders.FIGURES, [run])


def test_a_row_of_runs_that_are_gone_goes(run: Run) -> None:
    row = CachedFigures.objects.create(kind=builders.COMPARISON, subject=f"{run.pk},{run.pk + 1}")
    builders.rebuild(row.pk)
    builders.rebuild(row.pk)
    assert not CachedFigures.objects.exists()


WANTED = [
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


@pytest.mark.parametrize("wanted", first_fast(WANTED, 4), ids=str)
def test_the_list_of_answers_is_what_is_found_among_all(run: Run, wanted: AnswerFilter) -> None:
    decide(answer_rows(run)[1], metric("correctness"), 4)
    whole = select_answers(run, wanted)
    found = listed_answers(run, wanted, 0, 100).value
    assert found is not None
    assert (found.metric, found.metrics, found.categories) == (whole.metric, whole.metrics, whole.categories)
    assert (found.count, found.rows) == (len(whole.rows), whole.rows)
    second = listed_answers(run, wanted, 2, 2).value
    assert second is not None
    assert (second.count, second.rows) == (len(whole.rows), whole.rows[2:4])


def test_the_answers_of_a_short_report_are_those_of_the_whole(run: Run) -> None:
    decide(answer_rows(run)[1], metric("correctness"), 4)
    assert listed_lines(run) == tuple(answer_lines(load_inputs(run)))


def test_a_comparison_is_made_once(run: Run) -> None:
    other = make_scored_run(run.answer_set, values=(3, 3, 4, 4, 5, 5, 1))
    first, again = cached_comparison([run, other]), cached_comparison([run, other])
    assert first.value == again.value
    assert first.value is not None
    assert [one.run_id for one in first.value.differences] == [other.pk]
    assert CachedFigures.objects.filter(kind=builders.COMPARISON, subject=f"{run.pk},{other.pk}").count() == 1
