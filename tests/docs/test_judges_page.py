"""The commands of docs/judges.md that no other test runs as a command do what the page says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluation.judges.shipped import save_judge
from evaluation.models import Endpoint, Reply, Run
from tests.evaluation.runs.remote import make_answers
from tests.judge_server import JudgeServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge(tmp_path: Path, settings: Any) -> Iterator[JudgeServer]:
    (prices := tmp_path / "prices.yaml").write_text(
        "prices:\n- {model: judge-1, since: 2025-01-01, input: 1, output: 1}\n"
    )
    with JudgeServer() as server:
        settings.CONCORD_JUDGE_ORIGINS, settings.CONCORD_PRICES = [server.origin], str(prices)
        yield server


@pytest.fixture
def run_options(judge: JudgeServer) -> list[str]:
    """The options that say what ``evaluate`` is about: three answers, and a judge whose calls have a price."""
    answers = make_answers(3)
    endpoint = Endpoint.objects.create(name="e", base_url=judge.base_url)
    save_judge(answers.project, "mini", endpoint, model="judge-1", language="en")
    system = answers.system_version.system.name
    options = {
        "questions": answers.question_set.name,
        "system": system,
        "project": answers.project.name,
        "judge": "mini",
    }
    return [f"--{name}={value}" for name, value in options.items()]


def evaluate(*options: str) -> Run:
    with suppress(SystemExit):  # of a run that did not end complete, which the state tells
        call_command("evaluate", *options, stdout=StringIO(), stderr=StringIO())
    return Run.objects.latest("pk")


@pytest.mark.slow
def test_no_cache_option_repeats_every_call(judge: JudgeServer, run_options: list[str]) -> None:
    evaluate(*run_options)
    first_calls = judge.calls
    assert evaluate(*run_options).state == Run.State.COMPLETED
    assert judge.calls == first_calls
    assert Reply.objects.filter(outcome="cached").exists()
    assert evaluate(*run_options, "--no-cache").state == Run.State.COMPLETED
    assert judge.calls == 2 * first_calls


@pytest.mark.slow
def test_run_pauses_at_budget_and_resumes_with_larger_budget(judge: JudgeServer, run_options: list[str]) -> None:
    run = evaluate(*run_options, "--budget=0")
    assert (run.state, run.budget, judge.calls) == (Run.State.PAUSED, Decimal(0), 0)
    call_command("resume_run", str(run.pk), "--budget=1", stdout=StringIO(), stderr=StringIO())
    run.refresh_from_db()
    assert (run.state, run.budget) == (Run.State.COMPLETED, Decimal(1))
