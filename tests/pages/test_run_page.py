"""The run page: contents and buttons in each state."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.formats.records import form_names
from evaluation.judges.shipped import profile_row
from evaluation.models import Attempt, Endpoint, Preflight, Reply, Run, WorkUnit
from review.models import Exposure
from tests.factories import (
    make_answer_set,
    make_judge,
    make_project,
    make_question_set,
    make_scored_run,
    make_units,
)
from tests.factories import make_user as user_of
from tests.pages.world import make_world
from tests.review.builders import answer_rows, answers_to, imported_rating, metric, run_over, score_all

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return make_scored_run(make_answer_set(make_question_set(make_project())), name="A run")


def client_with_role(role: Role, run: Run) -> Client:
    client = Client()
    client.force_login(user_of(role, run.project))
    return client


def run_page(client: Client, run: Run) -> str:
    return client.get(reverse("run", args=[run.pk])).content.decode()


def set_state(run: Run, state: str, reason: str = "") -> None:
    Run.objects.filter(pk=run.pk).update(state=state, reason=reason)


@pytest.mark.parametrize(
    ("state", "buttons"),
    [
        ("draft", {"start", "cancel"}),
        ("running", {"pause", "cancel"}),
        ("paused", {"resume", "cancel"}),
        ("completed", set()),
        ("cancelled", set()),
    ],
)
def test_buttons_follow_the_state(run: Run, state: str, buttons: set[str]) -> None:
    set_state(run, state)
    page = run_page(client_with_role(Role.EVALUATOR, run), run)
    actions = {"start", "pause", "resume", "cancel", "retry"}
    assert {name for name in actions if reverse(f"run-{name}", args=[run.pk]) in page} == buttons


def test_stored_score_of_judge_and_experts_may_differ() -> None:
    stored_run = run_over(answers_to(["a"] * 12))
    score_all(stored_run, {"correctness": [4] * 12, "answer_overall": [1.0] * 12})
    for answer in answer_rows(stored_run):
        imported_rating(answer, metric("answer_overall"), "e1", 0)
    assert "Largest disagreements" in run_page(client_with_role(Role.LEAD, stored_run), stored_run)


def test_viewer_has_no_buttons(run: Run) -> None:
    set_state(run, "running")
    page = run_page(client_with_role(Role.VIEWER, run), run)
    assert "/pause/" not in page
    assert "/cancel/" not in page


def test_review_is_offered_to_leads_only(run: Run) -> None:
    assert reverse("queue-new") in run_page(client_with_role(Role.LEAD, run), run)
    assert reverse("queue-new") not in run_page(client_with_role(Role.EVALUATOR, run), run)


def test_running_run_polls_its_progress(run: Run) -> None:
    make_units(run, 4)
    WorkUnit.objects.filter(run=run, pk=run.units.first().pk).update(state="done")  # type: ignore[union-attr]
    set_state(run, "running")
    client = client_with_role(Role.VIEWER, run)
    page = run_page(client, run)
    assert f'hx-get="{reverse("run-progress", args=[run.pk])}"' in page
    assert (
        page.count("</span>running</span>") == 1
    )  # a second one would stay as it is while the first is asked for again
    fragment = client.get(reverse("run-progress", args=[run.pk]))
    assert "HX-Refresh" not in fragment.headers
    assert "25%" in fragment.content.decode()  # one of four
    set_state(run, "completed")
    assert client.get(reverse("run-progress", args=[run.pk])).headers["HX-Refresh"] == "true"


def test_cancelled_run_shows_no_progress_share(run: Run) -> None:
    make_units(run, 4)
    WorkUnit.objects.filter(run=run).update(state="skipped", reason="cancelled")
    set_state(run, "cancelled")
    page = run_page(client_with_role(Role.VIEWER, run), run)
    assert "cancelled" in page
    assert "100%" not in page.partition('id="progress"')[2].partition("</section>")[0]
    assert "<progress" not in page


def test_incomplete_run_shows_reason_and_retry_without_headline(run: Run) -> None:
    failed_unit = make_units(run, 1)[0]
    WorkUnit.objects.filter(pk=failed_unit.pk).update(state="failed", reason="timeout")
    set_state(run, "incomplete", "correctness: 3/6")
    page = run_page(client_with_role(Role.EVALUATOR, run), run)
    assert "No overall score" in page
    assert "Correctness for 3 of 6 answers" in page
    assert reverse("run-retry", args=[run.pk]) in page
    assert '<span class="figure"><b>' not in page.partition('id="overall"')[2].partition("</section>")[0]


def test_every_plot_has_a_table(run: Run) -> None:
    page = run_page(client_with_role(Role.VIEWER, run), run)
    assert page.count('class="forest') == page.count('#interval-score"\n  >95% CI</a>')


def test_exposure_to_worst_answers_is_recorded() -> None:
    world = make_world()
    profile = profile_row(world.project, "graphrag")
    run = make_scored_run(world.run.answer_set, profile=profile, name="With an overall score")
    run_page(world.client("viewer"), run)
    exposures = Exposure.objects.filter(user=world.people["viewer"], scope="answer", via="run page")
    worst = run.answer_set.answers.get(scores__run=run, scores__metric__name="correctness", scores__value=2)
    assert worst.pk in exposures.values_list("object_id", flat=True)


def test_run_list_can_be_filtered(run: Run) -> None:
    other_run = make_scored_run(make_answer_set(make_question_set(run.project)), name="Another one")
    set_state(other_run, "incomplete")
    client = client_with_role(Role.VIEWER, run)

    def list_runs(query: str) -> set[str]:
        page = client.get(f"{reverse('run-list')}?{query}").content.decode()
        return {name for name in ("A run", "Another one") if f">{name}</a>" in page}

    assert list_runs("") == {"A run", "Another one"}
    assert list_runs("state=incomplete") == {"Another one"}
    assert list_runs("q=another") == {"Another one"}
    assert list_runs(f"set={run.answer_set.question_set_id}") == {"A run"}
    assert list_runs("state=nonsense&page=x&set=y") == {"A run", "Another one"}


def test_repeated_pause_pauses_once(run: Run) -> None:
    set_state(run, "running")
    client = client_with_role(Role.EVALUATOR, run)
    for _ in range(2):
        client.post(reverse("run-pause", args=[run.pk]))
    assert run.events.filter(verb="paused").count() == 1


def test_cost_of_calls_and_cache_savings_are_itemised() -> None:
    answers = make_answer_set()
    endpoint = Endpoint.objects.create(name="e", base_url="http://e")
    run = make_scored_run(answers, judge=make_judge(answers.project, endpoint=endpoint))
    judge = run.judges.get()
    units = make_units(run, 3, kind=WorkUnit.Kind.JUDGE)
    WorkUnit.objects.filter(run=run).update(run_judge=judge, state="done")
    call_outcomes = [("ok", "0.50", None), ("cached", "0", "0.30"), ("cached", "0", None)]
    for unit, (outcome, cost, saved) in zip(units, call_outcomes, strict=True):
        attempt = Attempt.objects.create(unit=unit, fence=1, round=0, number=1)
        Reply.objects.create(attempt=attempt, outcome=outcome, cost=cost, saved=saved)
    calls: list[dict[str, object]] = [{"cost": "0.25"}, {"cost": None}]
    Preflight.objects.create(
        run=run,
        judge_version=judge.judge_version,
        outcome="ok",
        response_format="text",
        judge_hash="h",
        calls=2,
        detail=calls,
    )
    client = client_with_role(Role.VIEWER, run)
    facts = page_text(run_page(client, run).partition('id="provenance"')[2])
    assert "Cost ≥ $0.75 · 3 calls" in facts
    assert "Cost: answer_quality $0.50 · 1 call," in facts
    assert "Cost: preflight ≥ $0.25 · 2 calls" in facts
    assert "Cache 2 calls answered from the cache (saved: ≥ $0.30)" in facts
    set_state(run, "running")
    progress = page_text(client.get(reverse("run-progress", args=[run.pk])).content.decode())
    assert "≥ $0.75 · 2 calls answered from the cache (saved: ≥ $0.30)" in progress


def page_text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_run_out_of_budget_resumes_with_larger_budget(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(state="paused", reason="budget", budget=Decimal("2.5"))
    client, address = client_with_role(Role.EVALUATOR, run), reverse("run-resume", args=[run.pk])
    page = run_page(client, run)
    assert "of $2.50" in page
    assert 'name="budget"' in page
    assert "Enter a number." in client.post(address, {"budget": "a lot"}, follow=True).content.decode()
    client.post(address, {"budget": "5"})
    run.refresh_from_db()
    assert (run.state != "paused", run.budget) == (True, Decimal(5))


def test_lead_exports_records_for_another_tool(run: Run) -> None:
    lead, address = client_with_role(Role.LEAD, run), reverse("run-records", args=[run.pk])
    assert address in run_page(lead, run)
    assert address not in run_page(client_with_role(Role.EVALUATOR, run), run)
    response = lead.get(address, {"form": "ragas"})
    assert response["Content-Disposition"] == f'attachment; filename="run-{run.pk}-ragas.jsonl"'
    rows = [json.loads(line) for line in b"".join(response).splitlines()]
    assert [row["user_input"] for row in rows] == list(
        run.answer_set.question_set.questions.order_by("position").values_list("text", flat=True)
    )
    rest_response = lead.get(f"/api/v1/runs/{run.pk}/records/", {"form": "ragas"})
    assert [json.loads(line) for line in b"".join(rest_response).splitlines()] == rows
    assert lead.get(address, {"form": "no form"}).status_code == 404
    assert lead.get(f"/api/v1/runs/{run.pk}/records/", {"form": "no form"}).status_code == 400


@pytest.mark.parametrize("form", form_names())
def test_every_record_format_has_an_extension_and_can_be_written(run: Run, form: str) -> None:
    response = client_with_role(Role.LEAD, run).get(reverse("run-records", args=[run.pk]), {"form": form})
    ending = response["Content-Disposition"].rstrip('"').rpartition(".")[2]
    text = b"".join(response).decode()
    if ending == "json":
        json.loads(text)
    elif ending == "jsonl":
        assert all(json.loads(line) for line in text.splitlines())
    else:
        assert form.startswith("trec")
