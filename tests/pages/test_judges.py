"""The page of judges and criteria: what stands there is what is at hand, and nothing is computed for it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.criteria.services import deactivate
from evaluation.judges.shipped import baseline_judge, save_judge
from evaluation.models import Endpoint, JudgeVersion, Preflight, Run, User
from review.agreement import run_agreement
from review.agreement.run_agreement import Breakdown, agreement_if_cached, cached_agreement, cached_agreements
from review.comparisons.trend import judge_records
from review.evidence.rating_input import RatingInput
from review.judges.pages import judge_card
from review.ratings.import_files import import_ratings
from review.ratings.leases import next_assignment
from review.ratings.submitting import submit
from review.templatetags.figures import plain, signed
from tests.evaluation.criteria.written import drafted, in_force
from tests.factories import make_answer_set, make_project, make_question_set, make_queue, make_scored_run, make_user
from tests.judge_server.actions import status
from tests.judge_server.fixture import judge_server
from tests.judge_server.server import JudgeServer
from tests.pages.world import make_world

__all__ = ["judge_server"]

pytestmark = pytest.mark.django_db


def rated_run(judge_says: int = 4, expert_says: int = 4, questions: int = 6, **fields: Any) -> Run:
    """A scored run whose answers an expert has rated, correctness 1 and 5 by turns where nothing else is said."""
    run = make_scored_run(make_answer_set(make_question_set(specs=questions)), values=[1, judge_says], **fields)
    user = make_user(Role.REVIEWER, run.project)
    queue = make_queue(run, [user], reveal="never")
    while held := next_assignment(queue, user):
        value = run.scores.filter(answer=held.item.answer, metric__name="correctness").get().value
        said = RatingInput(expert_says if value == judge_says else 1)
        submit(held, {"correctness": said, "faithfulness": said}, idempotency_key=str(held.pk), by=user)
    return run


def judge_of(run: Run) -> JudgeVersion:
    return run.judges.get().judge_version


def test_agreement_stands_there_once_somebody_has_looked_and_is_never_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = rated_run(judge_says=4, expert_says=5)
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    computed: list[int] = []
    original = run_agreement.compute_agreement
    monkeypatch.setattr(run_agreement, "compute_agreement", lambda *a, **k: computed.append(1) or original(*a, **k))
    card = client.get(reverse("judge-list")).context["judges"][0]
    assert (card.record.measured, card.record.has_agreement, computed) == (run, False, [])
    assert {line.record.trust for line in card.metrics} == {None}
    cached_agreement(run, resamples=0)
    assert computed == [1]
    card = client.get(reverse("judge-list")).context["judges"][0]
    assert (card.record.measured, card.record.has_agreement, computed) == (run, True, [1])
    line = next(one for one in card.metrics if one.record.spec.name == "correctness")
    # three answers are 1 and 1, three 4 and 5: observed squared distance 3/6 = .5; expected from the margins
    # (1: .5, 4: .5) and (1: .5, 5: .5): (0 + 16 + 9 + 1) / 4 = 6.5; kappa = 1 - .5/6.5 = .923
    trust = line.record.trust
    assert (plain(trust.value), signed(line.record.bias)) == ("0.92", "\N{MINUS SIGN}0.50")
    assert (trust.n, line.trust.chip) == (6, "cannot tell yet: 14 more ratings")


def test_an_earlier_run_is_shown_where_the_newest_has_nothing_at_hand() -> None:
    first = rated_run()
    again = make_scored_run(first.answer_set, judge=judge_of(first))
    cached_agreement(first, resamples=0)
    assert judge_card(judge_records([judge_of(first)])[0]).record.measured == first
    cached_agreement(again, resamples=0)
    assert judge_card(judge_records([judge_of(first)])[0]).record.measured == again


def test_what_is_kept_of_several_runs_is_what_is_kept_of_each_and_intervals_come_first() -> None:
    runs = [rated_run(questions=3), rated_run(questions=4), make_scored_run()]
    for run in runs[:2]:
        cached_agreement(run, resamples=0)
    cached_agreement(runs[0], by=Breakdown.CATEGORY)
    found = cached_agreements(runs)
    assert found.keys() == {runs[0].pk, runs[1].pk}
    assert found[runs[0].pk] == agreement_if_cached(runs[0], by=Breakdown.CATEGORY)
    assert found[runs[1].pk] == agreement_if_cached(runs[1], resamples=0)


def test_new_ratings_make_kept_figures_old() -> None:
    run = rated_run()
    cached_agreement(run, resamples=0)
    assert cached_agreements([run])
    question = run.answer_set.question_set.questions.first()
    assert question is not None
    row = {"question_id": question.external_id, "metric": "correctness", "value": 2, "rater": "human", "author": "ann"}
    import_ratings(run, json.dumps(row).encode(), "ratings.jsonl")
    assert cached_agreements([run]) == {}


def test_each_thing_to_mind_is_a_warning(settings: Any, tmp_path: Any) -> None:
    project = make_project()
    endpoint = Endpoint.objects.create(name="e", base_url="https://judge.example/v1")
    first = save_judge(project, "far", endpoint, model="m-1", language="en")
    second = save_judge(project, "far", endpoint, model="m-2", language="ko")
    run = make_scored_run(make_answer_set(make_question_set(project)), judge=first)
    Preflight.objects.create(run=run, judge_version=first, outcome="unauthorised")
    prices = tmp_path / "prices.yaml"
    prices.write_text("prices:\n- {model: m-2, since: 2020-01-01, input: 2.5, output: 10}\n")
    settings.CONCORD_PRICES = str(prices)
    one, other = (judge_card(record) for record in judge_records([first, second]))
    assert [part for warning in one.warnings for part in WARNINGS if part in warning] == [
        "No price",
        "Its last check failed",
        "Version 2",
        "Nobody has rated",
    ]
    assert [part for warning in other.warnings for part in WARNINGS if part in warning] == ["No run"]
    assert other.price == "$2.5 in, $10 out for a million tokens"
    (record,) = judge_records([second])
    assert record.price is not None
    assert record.price.output == Decimal(10)


WARNINGS = ("No price", "Its last check failed", "Version 2", "Nobody has rated", "No run", "agrees weakly")


def test_the_card_of_a_judge_shows_its_verdict() -> None:
    run = rated_run(judge_says=2, expert_says=5, questions=24)
    cached_agreement(run, resamples=0)
    card = judge_card(judge_records([judge_of(run)])[0])
    # 1 and 1 on half of the answers, 2 and 5 on the other: (9/2) / ((0 + 16 + 1 + 9) / 4) = .692; kappa = .308
    told = [(line.record.trust, line.record.bias, line.trust) for line in card.metrics if line.record.trust]
    # judge minus experts: 0 and -3 in turn, a mean of -1.5, while the correlation is 1
    assert {(plain(agreed.value), bias, trust.chip) for agreed, bias, trust in told if agreed.n == 24} == {
        ("0.31", -1.5, "with care: too strict by 1.50")
    }


def test_c7_agreement_of_another_model_than_answers_now_is_a_warning() -> None:
    run = rated_run()
    judge = judge_of(run)
    cached_agreement(run, resamples=0)
    pinned = {"judge_version": judge, "outcome": "ok", "rung": "tool", "judge_hash": "0" * 64}
    Preflight.objects.create(run=run, model_returned="m-1", **pinned)
    assert judge_records([judge])[0].model_change is None
    later = make_scored_run(make_answer_set(run.answer_set.question_set), judge=judge)
    Preflight.objects.create(run=later, model_returned="m-2", **pinned)
    (record,) = judge_records([judge])
    assert (record.measured, record.model_change) == (run, ("m-1", "m-2"))
    assert any("that of m-1, but m-2 answers" in warning for warning in judge_card(record).warnings)


def test_criteria_in_force_stand_there_and_drafts_and_others_do_not() -> None:
    world = make_world()
    shown, out, draft = in_force(world.project), in_force(world.project), drafted(world.project)
    deactivate(out.criterion, by=None)
    foreign = in_force(make_project())
    page = world.client("evaluator").get(reverse("judge-list"))
    assert [line.spec.name for line in page.context["criteria"]] == [shown.criterion.name]
    text = page.content.decode()
    assert all(one.criterion.name not in text for one in (out, draft, foreign))


def test_judges_of_other_projects_are_not_there() -> None:
    world, foreign = make_world(), make_scored_run()
    client = world.client("lead")
    shown = {card.record.judge.pk for card in client.get(reverse("judge-list")).context["judges"]}
    assert shown == {judge_of(world.run).pk}
    assert client.get(reverse("judge", args=[judge_of(foreign).pk])).status_code == 404


def test_the_list_is_paged_and_the_navigation_leads_to_it() -> None:
    world = make_world()
    endpoint = Endpoint.objects.create(name="e", base_url="https://judge.example/v1")
    for number in range(12):
        save_judge(world.project, f"judge-{number}", endpoint, model="m", language="en")
    client = world.client("lead")
    first, second = (client.get(reverse("judge-list"), {"page": at}).context for at in (0, 1))
    assert (len(first["judges"]), len(second["judges"])) == (10, 3)
    assert (first["older"], second["newer"]) == ("?page=1", "?page=0")
    assert f'href="{reverse("judge-list")}"' in client.get(reverse("home")).content.decode()
    assert f'href="{reverse("judge-list")}"' not in world.client("viewer").get(reverse("home")).content.decode()


def test_a_judges_page_has_its_parameters_and_other_versions() -> None:
    world = make_world()
    endpoint = Endpoint.objects.create(name="e", base_url="https://judge.example/v1")
    one, other = (
        save_judge(world.project, "far", endpoint, model="m", language="en", params={"temperature": heat})
        for heat in (0, 1)
    )
    page = world.client("evaluator").get(reverse("judge", args=[one.pk])).context
    assert page["parameters"] == [("temperature", "0")]
    assert page["versions"] == [(other.pk, "v2")]


@pytest.fixture
def remote(settings: Any, judge_server: JudgeServer) -> JudgeVersion:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    endpoint = Endpoint.objects.create(name="llm", base_url=judge_server.base_url)
    return save_judge(make_project(), "gpt", endpoint, model="m", language="en")


def tried(judge: JudgeVersion, role: Role = Role.EVALUATOR) -> Any:
    client = Client()
    client.force_login(make_user(role, judge.project))
    return client.post(reverse("judge-try", args=[judge.pk]), follow=True)


def test_a_judge_is_tried_and_nothing_is_kept(remote: JudgeVersion, judge_server: JudgeServer) -> None:
    page = tried(remote).content.decode()
    assert "It answers." in page
    assert "json_schema" in page
    assert judge_server.preflights + judge_server.calls > 0
    assert not Preflight.objects.exists()


def test_a_judge_that_does_not_answer_says_why_in_words(remote: JudgeVersion, judge_server: JudgeServer) -> None:
    judge_server.behave(status(401))
    page = tried(remote).content.decode()
    assert "It answers." not in page
    assert "401" in page
    remote.endpoint.base_url = "http://127.0.0.1:1/v1"  # type: ignore[union-attr]
    remote.endpoint.save()  # type: ignore[union-attr]
    assert "CONCORD_JUDGE_ORIGINS" in tried(remote).content.decode()


def test_the_baseline_and_strangers_are_not_asked(remote: JudgeVersion, judge_server: JudgeServer) -> None:
    asked = judge_server.preflights
    assert tried(remote, Role.VIEWER).status_code == 403
    assert "nobody to ask" in tried(baseline_judge(remote.project, "en")).content.decode()
    assert judge_server.preflights == asked


def test_page_and_back_office_lead_to_each_other(remote: JudgeVersion) -> None:
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, remote.project))
    page, row = reverse("judge", args=[remote.pk]), reverse("admin:evaluation_judgeversion_change", args=[remote.pk])
    assert f'href="{row}"' in client.get(page).content.decode()
    assert f'href="{page}"' in client.get(row).content.decode()
    asked = make_question_set(remote.project)
    shown = client.get(reverse("admin:evaluation_questionset_change", args=[asked.pk])).content.decode()
    assert f'href="{reverse("question-set", args=[asked.pk])}"' in shown


def added(client: Client, judge: JudgeVersion, **fields: Any) -> Any:
    asked = {
        "project": judge.project_id,
        "name": "plain",
        "endpoint": judge.endpoint_id,
        "model": "m",
        "language": "en",
    }
    return client.post(
        reverse("admin:evaluation_judgeversion_add"), asked | {"method": "said", "params": "{}"} | fields
    )


def test_the_usual_parameters_of_a_judge_have_fields_of_their_own(remote: JudgeVersion) -> None:
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, remote.project))
    reply = added(client, remote, temperature="0", max_tokens="800", params='{"reasoning_effort": "low"}')
    assert reply.status_code == 302, reply.context["adminform"].form.errors
    made = JudgeVersion.objects.get(name="plain")
    assert made.params == {"temperature": 0, "max_tokens": 800, "reasoning_effort": "low"}
    looked_at = client.get(reverse("admin:evaluation_judgeversion_change", args=[made.pk])).content.decode()
    assert "reasoning_effort" in looked_at
    assert "None" not in looked_at  # no field beside the column that says it
    form = client.get(reverse("admin:evaluation_judgeversion_add"), {"from": made.pk}).context["adminform"].form
    assert (form.initial["temperature"], form.initial["params"]) == (0, {"reasoning_effort": "low"})
    added(client, remote, temperature="0.0", max_tokens="800", params='{"reasoning_effort": "low"}')
    assert JudgeVersion.objects.filter(name="plain").count() == 1  # 0 and 0.0 are one
    for wrong in (
        {"temperature": "3"},
        {"temperature": "1", "params": '{"temperature": 1}'},
        {"params": "[1]"},
        {"max_tokens": "0"},
    ):
        assert added(client, remote, **wrong).status_code == 200, wrong
    assert JudgeVersion.objects.filter(name="plain").count() == 1


def saved_and_tried(person: User, kind: str, pk: str, **fields: object) -> str:
    """The page of the form after *Save and try*."""
    client = Client()
    client.force_login(person)
    address = reverse(f"admin:evaluation_{kind}_{'change' if pk else 'add'}", args=[pk] if pk else [])
    return client.post(address, fields | {"_try": "1"}, follow=True).content.decode()


def test_a_judge_and_an_endpoint_are_tried_from_their_forms(remote: JudgeVersion, judge_server: JudgeServer) -> None:
    fields = {"project": remote.project_id, "name": "new", "endpoint": remote.endpoint_id, "model": "m"}
    page = saved_and_tried(
        make_user(Role.EVALUATOR, remote.project), "judgeversion", "", **fields, language="en", method="said"
    )
    assert "It said:" in page
    assert JudgeVersion.objects.filter(name="new").count() == 1
    admin = make_user(Role.ADMIN, remote.project)
    about = {"name": "llm", "provider": "openai", "base_url": remote.endpoint.base_url, "max_concurrency": 4}  # type: ignore[union-attr]
    assert "It said:" in saved_and_tried(admin, "endpoint", str(remote.endpoint_id), **about, try_model="m")
    judge_server.behave(status(401))
    assert "401" in saved_and_tried(admin, "endpoint", str(remote.endpoint_id), **about)
    assert not Preflight.objects.exists()
