"""Runs of judges at each provider, from the provisioning file to the report, against servers of their wire format."""

from __future__ import annotations

from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from evaluation.core.errors import InvalidFile
from evaluation.judging.providers.catalogue import provider_named
from evaluation.models import AnswerSet, Endpoint, JudgeVersion, Preflight, Reply, Run
from evaluation.runs.provisioning import ProvisionFile, provision
from tests.evaluation.runs.remote import make_answers
from tests.judge_server import JudgeServer, aws
from tests.judge_server.actions import Action
from tests.judge_server.formats import FORMATS
from tests.judge_server.wire import native_reply, respond

pytestmark = pytest.mark.django_db
KEY = "key-secret-0123456789"
PRICES = {"prices": [{"model": "model-1", "since": "2026-01-01", "input": "1", "output": "10"}]}


@pytest.fixture(autouse=True)
def site(settings: Any, judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The operator's settings: the allowed origin, a key and prices."""
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    monkeypatch.setenv("CONCORD_KEY_JUDGE", KEY)
    prices = tmp_path / "prices.yaml"
    prices.write_text(yaml.safe_dump(PRICES))
    settings.CONCORD_PRICES = str(prices)


def site_file(server: JudgeServer, answers: AnswerSet, provider: str, key: str, **judge: Any) -> ProvisionFile:
    endpoint = {"name": "e", "provider": provider, "base_url": f"{server.origin}/other", "key_env": key}
    judges = [{"name": "mini", "endpoint": "e", "model": "model-1", "params": {"temperature": 0}} | judge]
    return ProvisionFile.model_validate({"project": answers.project.name, "endpoints": [endpoint], "judges": judges})


def evaluate(answers: AnswerSet, **options: Any) -> str:
    output = StringIO()
    names = {"questions": answers.question_set.name, "system": answers.system_version.system.name}
    call_command(
        "evaluate",
        **names,
        project=answers.project.name,
        judge=["mini"],
        profile="graphrag",
        stdout=output,
        stderr=StringIO(),
        **options,
    )
    return output.getvalue()


def prepare_site(
    provider: str, server: JudgeServer, monkeypatch: pytest.MonkeyPatch, folder: Path, otherwise: Action | None = None
) -> AnswerSet:
    """A provisioned site whose server answers, for Bedrock only with a valid signature."""
    answers, key = make_answers(3), "CONCORD_KEY_JUDGE"
    action = otherwise or native_reply()
    if provider == "bedrock":
        aws.set_credentials(monkeypatch, folder)
        key, action = "", aws.signed_only(action)
    server.behave(action)
    changes = provision(site_file(server, answers, provider, key)).changes
    assert changes == ["+ endpoint e", "+ judge mini@1"]
    return answers


def replies() -> Any:
    """Replies to calls, without those of the preflight and the cache."""
    return Reply.objects.filter(http_status__isnull=False)


@pytest.mark.parametrize("provider", FORMATS)
def test_evaluate_command_scores_answers_with_recorded_calls_and_cost(
    provider: str, judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = prepare_site(provider, judge_server, monkeypatch, tmp_path)
    output = evaluate(answers, budget=Decimal("1"))
    run = Run.objects.get()
    assert run.state == Run.State.COMPLETED
    assert "correctness" in output
    assert (judge_server.preflights, judge_server.calls, replies().count()) == (1, 3, 3)
    assert Preflight.objects.get().response_format == provider_named(provider).response_formats[0]
    assert KEY not in output
    # (900 * 1 + 60 * 10) / 1,000,000 dollars a call
    assert {reply.cost for reply in replies()} == {Decimal("0.0015")}
    assert set(replies().values_list("tokens_in", "tokens_out")) == {(900, 60)}
    # The same calls are not made again.
    evaluate(answers)
    assert judge_server.calls == 3


@pytest.mark.parametrize("provider", FORMATS)
def test_throttled_calls_are_repeated_and_each_attempt_is_recorded(
    provider: str, judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = prepare_site(provider, judge_server, monkeypatch, tmp_path)
    judge_server.enqueue(respond(429, {}, Retry_After="0.05"))
    evaluate(answers)
    assert Run.objects.get().state == Run.State.COMPLETED
    assert judge_server.calls == 4
    assert sorted(replies().values_list("outcome", flat=True)) == ["ok", "ok", "ok", "rate_limited"]


def test_expired_aws_credentials_pause_the_run_with_the_servers_words(
    judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = prepare_site("bedrock", judge_server, monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_SESSION_TOKEN", aws.EXPIRED_TOKEN)
    with pytest.raises((CommandError, SystemExit)):
        evaluate(answers)
    run = Run.objects.get()
    assert run.state == Run.State.PAUSED
    assert run.reason.startswith("unauthorised: HTTP 403 ExpiredTokenException: The security token")
    assert judge_server.calls == 0


def test_missing_aws_credentials_pause_the_run_before_any_call(
    judge_server: JudgeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = prepare_site("bedrock", judge_server, monkeypatch, tmp_path)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises((CommandError, SystemExit)):
        evaluate(answers)
    assert (Run.objects.get().state, Run.objects.get().reason) == (Run.State.PAUSED, "aws_credentials_missing")
    assert judge_server.preflights == 0


@pytest.mark.parametrize(
    ("provider", "judge", "message"),
    [
        (
            "anthropic",
            {"params": {"seed": 1, "temperature": 0}},
            "Anthropic doesn't take these judge parameters: seed.",
        ),
        ("bedrock", {"params": {"top_k": 1}}, "additionalModelRequestFields"),
        ("gemini", {"params": {"logit_bias": {}}}, "logit_bias"),
        ("gemini", {"method": "expected"}, "returns no log probabilities"),
    ],
)
def test_parameters_that_a_provider_lacks_are_refused_at_set_up(
    judge_server: JudgeServer, provider: str, judge: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidFile) as error:
        provision(site_file(judge_server, make_answers(1), provider, "CONCORD_KEY_JUDGE", **judge))
    (problem,) = error.value.problems
    assert problem.field == "judges.0"
    assert message in str(problem.params["error"])
    assert not JudgeVersion.objects.exists()


def test_change_of_the_provider_pauses_runs_whose_judge_it_does_not_fit(judge_server: JudgeServer) -> None:
    answers = make_answers(1)
    provision(site_file(judge_server, answers, "openai", "CONCORD_KEY_JUDGE", params={"seed": 1}))
    Endpoint.objects.update(provider="anthropic")
    with pytest.raises((CommandError, SystemExit)):
        evaluate(answers)
    assert (Run.objects.get().reason, judge_server.preflights) == ("parameters_unsupported", 0)
