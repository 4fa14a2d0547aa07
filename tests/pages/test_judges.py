"""The page of judges and criteria shows cached figures and computes none."""

from __future__ import annotations

import json
import sys
import time
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.criteria.services import deactivate
from evaluation.judges.shipped import baseline_judge, save_judge
from evaluation.models import Endpoint, JudgeVersion, Preflight, Run, User
from evaluation.scoring import adhoc
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
from tests.judge_server.actions import drip, status
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
    while assignment := next_assignment(queue, user):
        value = run.scores.filter(answer=assignment.item.answer, metric__name="correctness").get().value
        rating = RatingInput(expert_says if value == judge_says else 1)
        submit(assignment, {"correctness": rating, "faithfulness": rating}, idempotency_key=str(assignment.pk), by=user)
    return run


def run_judge(run: Run) -> JudgeVersion:
    return run.judges.get().judge_version


def test_judge_list_shows_cached_agreement_and_computes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    run = rated_run(judge_says=4, expert_says=5)
    client = Client()
    client.force_login(make_user(Role.LEAD, run.project))
    computed: list[int] = []
    original = run_agreement.compute_agreement
    monkeypatch.setattr(run_agreement, "compute_agreement", lambda *a, **k: computed.append(1) or original(*a, **k))
    card = client.get(reverse("judge-list")).context["judges"][0]
    assert (card.record.measured_run, card.record.has_agreement, computed) == (run, False, [])
    assert {line.record.trust for line in card.metrics} == {None}
    cached_agreement(run, resamples=0)
    assert computed == [1]
    card = client.get(reverse("judge-list")).context["judges"][0]
    assert (card.record.measured_run, card.record.has_agreement, computed) == (run, True, [1])
    line = next(candidate for candidate in card.metrics if candidate.record.spec.name == "correctness")
    # three answers are 1 and 1, three 4 and 5: observed squared distance 3/6 = .5; expected from the margins
    # (1: .5, 4: .5) and (1: .5, 5: .5): (0 + 16 + 9 + 1) / 4 = 6.5; kappa = 1 - .5/6.5 = .923
    trust = line.record.trust
    assert (plain(trust.value), signed(line.record.bias)) == ("0.92", "\N{MINUS SIGN}0.50")
    assert (trust.n, line.trust.chip) == (6, "cannot tell yet: 14 more ratings")


def test_judge_card_falls_back_to_earlier_run_with_agreement() -> None:
    first_run = rated_run()
    second_run = make_scored_run(first_run.answer_set, judge=run_judge(first_run))
    cached_agreement(first_run, resamples=0)
    assert judge_card(judge_records([run_judge(first_run)])[0]).record.measured_run == first_run
    cached_agreement(second_run, resamples=0)
    assert judge_card(judge_records([run_judge(first_run)])[0]).record.measured_run == second_run


def test_cached_agreements_equal_single_ones_and_prefer_intervals() -> None:
    runs = [rated_run(questions=3), rated_run(questions=4), make_scored_run()]
    for run in runs[:2]:
        cached_agreement(run, resamples=0)
    cached_agreement(runs[0], by=Breakdown.CATEGORY)
    agreements = cached_agreements(runs)
    assert agreements.keys() == {runs[0].pk, runs[1].pk}
    assert agreements[runs[0].pk] == agreement_if_cached(runs[0], by=Breakdown.CATEGORY)
    assert agreements[runs[1].pk] == agreement_if_cached(runs[1], resamples=0)


def test_new_ratings_invalidate_cached_agreement() -> None:
    run = rated_run()
    cached_agreement(run, resamples=0)
    assert cached_agreements([run])
    question = run.answer_set.question_set.questions.first()
    assert question is not None
    row = {"question_id": question.external_id, "metric": "correctness", "value": 2, "rater": "human", "author": "ann"}
    import_ratings(run, json.dumps(row).encode(), "ratings.jsonl")
    assert cached_agreements([run]) == {}


def test_judge_card_warns_of_each_problem(settings: Any, tmp_path: Any) -> None:
    project = make_project()
    endpoint = Endpoint.objects.create(name="e", base_url="https://judge.example/v1")
    first_version = save_judge(project, "far", endpoint, model="m-1", language="en")
    second_version = save_judge(project, "far", endpoint, model="m-2", language="ko")
    run = make_scored_run(make_answer_set(make_question_set(project)), judge=first_version)
    Preflight.objects.create(run=run, judge_version=first_version, outcome="unauthorised")
    prices = tmp_path / "prices.yaml"
    prices.write_text("prices:\n- {model: m-2, since: 2020-01-01, input: 2.5, output: 10}\n")
    settings.CONCORD_PRICES = str(prices)
    first_card, second_card = (judge_card(record) for record in judge_records([first_version, second_version]))
    assert [phrase for warning in first_card.warnings for phrase in WARNINGS if phrase in warning] == [
        "The price of its model is unknown",
        "Its last check failed",
        "Newer version of this judge: 2",
        "reliability is unknown",
    ]
    assert not second_card.warnings
    assert second_card.price == "$2.5 in, $10 out per million tokens"
    (record,) = judge_records([second_version])
    assert record.price is not None
    assert record.price.output == Decimal(10)


WARNINGS = (
    "The price of its model is unknown",
    "Its last check failed",
    "Newer version of this judge: 2",
    "reliability is unknown",
    "agrees weakly",
)


def test_judge_card_shows_its_verdict() -> None:
    run = rated_run(judge_says=2, expert_says=5, questions=24)
    cached_agreement(run, resamples=0)
    card = judge_card(judge_records([run_judge(run)])[0])
    # 1 and 1 on half of the answers, 2 and 5 on the other: (9/2) / ((0 + 16 + 1 + 9) / 4) = .692; kappa = .308
    trust_lines = [(line.record.trust, line.record.bias, line.trust) for line in card.metrics if line.record.trust]
    # judge minus experts: 0 and -3 in turn, a mean of -1.5, while the correlation is 1
    assert {(plain(agreed.value), bias, trust.chip) for agreed, bias, trust in trust_lines if agreed.n == 24} == {
        ("0.31", -1.5, "with care: too strict by 1.50")
    }


def test_agreement_of_an_earlier_model_is_a_warning() -> None:
    run = rated_run()
    judge = run_judge(run)
    cached_agreement(run, resamples=0)
    pinned = {"judge_version": judge, "outcome": "ok", "response_format": "tool", "judge_hash": "0" * 64}
    Preflight.objects.create(run=run, model_returned="m-1", **pinned)
    assert judge_records([judge])[0].model_change is None
    later_run = make_scored_run(make_answer_set(run.answer_set.question_set), judge=judge)
    Preflight.objects.create(run=later_run, model_returned="m-2", **pinned)
    (record,) = judge_records([judge])
    assert (record.measured_run, record.model_change) == (run, ("m-1", "m-2"))
    assert any("m-1" in warning for warning in judge_card(record).warnings)


def test_page_lists_active_criteria_only() -> None:
    world = make_world()
    active, inactive, draft = in_force(world.project), in_force(world.project), drafted(world.project)
    deactivate(inactive.criterion, by=None)
    foreign = in_force(make_project())
    page = world.client("evaluator").get(reverse("judge-list"))
    assert [line.spec.name for line in page.context["criteria"]] == [active.criterion.name]
    text = page.content.decode()
    assert all(criterion_version.criterion.name not in text for criterion_version in (inactive, draft, foreign))


def test_judges_of_other_projects_are_hidden() -> None:
    world, foreign = make_world(), make_scored_run()
    client = world.client("lead")
    listed = {card.record.judge.pk for card in client.get(reverse("judge-list")).context["judges"]}
    assert listed == {run_judge(world.run).pk}
    assert client.get(reverse("judge", args=[run_judge(foreign).pk])).status_code == 404


def test_judge_list_is_paged_and_linked_in_navigation() -> None:
    world = make_world()
    endpoint = Endpoint.objects.create(name="e", base_url="https://judge.example/v1")
    for number in range(12):
        save_judge(world.project, f"judge-{number}", endpoint, model="m", language="en")
    client = world.client("lead")
    first_page, second_page = (
        client.get(reverse("judge-list"), {"page": page_number}).context for page_number in (0, 1)
    )
    assert (len(first_page["judges"]), len(second_page["judges"])) == (10, 3)
    assert (first_page["older"], second_page["newer"]) == ("?page=1", "?page=0")
    assert f'href="{reverse("judge-list")}"' in client.get(reverse("home")).content.decode()
    assert f'href="{reverse("judge-list")}"' not in world.client("viewer").get(reverse("home")).content.decode()


def test_judge_page_shows_parameters_and_other_versions() -> None:
    world = make_world()
    endpoint = Endpoint.objects.create(name="e", base_url="https://judge.example/v1")
    first_version, second_version = (
        save_judge(world.project, "far", endpoint, model="m", language="en", params={"temperature": heat})
        for heat in (0, 1)
    )
    page = world.client("evaluator").get(reverse("judge", args=[first_version.pk])).context
    assert page["parameters"] == [("temperature", "0")]
    assert page["versions"] == [(second_version.pk, "v2")]


@pytest.fixture
def remote(settings: Any, judge_server: JudgeServer) -> JudgeVersion:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    endpoint = Endpoint.objects.create(name="llm", base_url=judge_server.base_url)
    return save_judge(make_project(), "gpt", endpoint, model="m", language="en")


def try_judge(judge: JudgeVersion, role: Role = Role.EVALUATOR) -> Any:
    client = Client()
    client.force_login(make_user(role, judge.project))
    return client.post(reverse("judge-try", args=[judge.pk]), follow=True)


def test_trying_a_judge_stores_nothing(remote: JudgeVersion, judge_server: JudgeServer) -> None:
    page = try_judge(remote).content.decode()
    assert "It responds." in page
    assert "json_schema" in page
    assert judge_server.preflights + judge_server.calls > 0
    assert not Preflight.objects.exists()


def test_judge_that_drips_bytes_ends_its_trial_in_time(
    remote: JudgeVersion, judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adhoc, "TRY_SECONDS", 1)
    judge_server.behave(drip())
    start = time.monotonic()
    assert "answer within 1 seconds" in try_judge(remote).content.decode()
    assert time.monotonic() - start < 10


def test_failed_judge_trial_shows_a_message(remote: JudgeVersion, judge_server: JudgeServer) -> None:
    judge_server.behave(status(401))
    page = try_judge(remote).content.decode()
    assert "It responds." not in page
    assert "401" in page
    remote.endpoint.base_url = "http://127.0.0.1:1/v1"  # type: ignore[union-attr]
    remote.endpoint.save()  # type: ignore[union-attr]
    assert "CONCORD_JUDGE_ORIGINS" in try_judge(remote).content.decode()


def test_trial_needs_permission_and_a_remote_judge(remote: JudgeVersion, judge_server: JudgeServer) -> None:
    preflight_count = judge_server.preflights
    assert try_judge(remote, Role.VIEWER).status_code == 403
    assert "Nothing to test" in try_judge(baseline_judge(remote.project, "en")).content.decode()
    assert judge_server.preflights == preflight_count


def test_judge_page_and_back_office_link_to_each_other(remote: JudgeVersion) -> None:
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, remote.project))
    page, row = reverse("judge", args=[remote.pk]), reverse("admin:evaluation_judgeversion_change", args=[remote.pk])
    assert f'href="{row}"' in client.get(page).content.decode()
    assert f'href="{page}"' in client.get(row).content.decode()
    question_set = make_question_set(remote.project)
    content = client.get(reverse("admin:evaluation_questionset_change", args=[question_set.pk])).content.decode()
    assert f'href="{reverse("question-set", args=[question_set.pk])}"' in content


def add_judge(client: Client, judge: JudgeVersion, **fields: Any) -> Any:
    defaults = {
        "project": judge.project_id,
        "name": "plain",
        "endpoint": judge.endpoint_id,
        "model": "m",
        "language": "en",
    }
    return client.post(
        reverse("admin:evaluation_judgeversion_add"), defaults | {"method": "said", "params": "{}"} | fields
    )


def test_usual_judge_parameters_have_separate_fields(remote: JudgeVersion) -> None:
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, remote.project))
    reply = add_judge(client, remote, temperature="0", max_tokens="800", params='{"reasoning_effort": "low"}')
    assert reply.status_code == 302, reply.context["adminform"].form.errors
    judge = JudgeVersion.objects.get(name="plain")
    assert judge.params == {"temperature": 0, "max_tokens": 800, "reasoning_effort": "low"}
    content = client.get(reverse("admin:evaluation_judgeversion_change", args=[judge.pk])).content.decode()
    assert "reasoning_effort" in content
    assert "None" not in content  # no field beside the column that says it
    form = client.get(reverse("admin:evaluation_judgeversion_add"), {"from": judge.pk}).context["adminform"].form
    assert (form.initial["temperature"], form.initial["params"]) == (0, {"reasoning_effort": "low"})
    add_judge(client, remote, temperature="0.0", max_tokens="800", params='{"reasoning_effort": "low"}')
    assert JudgeVersion.objects.filter(name="plain").count() == 1  # 0 and 0.0 are one
    for invalid_fields in (
        {"temperature": "3"},
        {"temperature": "1", "params": '{"temperature": 1}'},
        {"params": "[1]"},
        {"max_tokens": "0"},
    ):
        assert add_judge(client, remote, **invalid_fields).status_code == 200, invalid_fields
    assert JudgeVersion.objects.filter(name="plain").count() == 1


def save_and_try(person: User, kind: str, pk: str, **fields: object) -> str:
    """The page of the form after *Save and try*."""
    client = Client()
    client.force_login(person)
    address = reverse(f"admin:evaluation_{kind}_{'change' if pk else 'add'}", args=[pk] if pk else [])
    return client.post(address, fields | {"_try": "1"}, follow=True).content.decode()


def test_judge_and_endpoint_are_tried_from_their_forms(remote: JudgeVersion, judge_server: JudgeServer) -> None:
    fields = {"project": remote.project_id, "name": "new", "endpoint": remote.endpoint_id, "model": "m"}
    page = save_and_try(
        make_user(Role.EVALUATOR, remote.project), "judgeversion", "", **fields, language="en", method="said"
    )
    assert "Reply:" in page
    assert JudgeVersion.objects.filter(name="new").count() == 1
    admin = make_user(Role.ADMIN, remote.project)
    about = {"name": "llm", "provider": "openai", "base_url": remote.endpoint.base_url, "max_concurrency": 4}  # type: ignore[union-attr]
    assert "Reply:" in save_and_try(admin, "endpoint", str(remote.endpoint_id), **about, try_model="m")
    judge_server.behave(status(401))
    assert "401" in save_and_try(admin, "endpoint", str(remote.endpoint_id), **about)
    assert not Preflight.objects.exists()


def test_signed_calls_without_the_extra_name_it(remote: JudgeVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    admin = make_user(Role.ADMIN, remote.project)
    url = remote.endpoint.base_url  # type: ignore[union-attr]
    about = {"name": "aws", "provider": "bedrock", "base_url": url, "max_concurrency": 4, "try_model": "m"}
    assert "concord-eval[bedrock]" in save_and_try(admin, "endpoint", "", **about)


def test_provider_without_a_setting_refuses_it(remote: JudgeVersion) -> None:
    admin = make_user(Role.ADMIN, remote.project)
    url = remote.endpoint.base_url  # type: ignore[union-attr]
    about = {"name": "g", "provider": "gemini", "base_url": url, "max_concurrency": 4, "embedding_model": "e"}
    page = save_and_try(admin, "endpoint", "", **about)
    assert "The provider does not have this setting." in page
    assert "https://generativelanguage.googleapis.com/v1beta" in page
    assert not Endpoint.objects.filter(name="g").exists()
