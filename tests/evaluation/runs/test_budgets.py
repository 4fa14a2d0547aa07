"""A budget pauses a run, exceeded by at most the calls in flight; the run resumes when the budget is raised."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluation.core.errors import DomainError
from evaluation.models import Attempt, AuditEvent, Reply, Run, WorkUnit
from evaluation.runs.budgets import BUDGET_USED_UP, COST_UNKNOWN, BudgetGuard, estimated_spending, set_budget
from evaluation.runs.creation import resume_run
from evaluation.runs.execution import drain
from evaluation.runs.progress import spending
from evaluation.worker.units import State
from tests.evaluation.runs.remote import remote_run, start_and_drain
from tests.installed import needs
from tests.judge_server import JudgeServer
from tests.judge_server.actions import valid_reply

pytestmark = pytest.mark.django_db(transaction=True)
# The test server tells 900 tokens in and 60 out: at a dollar a million each, (900 + 60) / 1,000,000.
CALL = Decimal("0.00096")


@pytest.fixture
def priced(tmp_path: Path, settings: Any) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text("prices:\n- {model: judge-1, since: 2025-01-01, input: '1', output: '1'}\n")
    settings.CONCORD_PRICES = str(file)


@pytest.fixture
def unpriced(settings: Any) -> None:
    settings.CONCORD_PRICES = ""


def test_run_pauses_at_its_budget_and_resumes_with_a_larger_one(judge: JudgeServer, priced: None) -> None:
    run = start_and_drain(remote_run(judge, 20, concurrency=4, budget=Decimal("0.01")))
    assert (run.state, run.reason) == (Run.State.PAUSED, BUDGET_USED_UP)
    cost = spending(run).known
    assert 7 * CALL <= cost <= Decimal("0.01") + 4 * CALL  # at most the four places beyond it, or below
    assert not WorkUnit.objects.filter(run=run, state=State.LEASED).exists()
    with pytest.raises(DomainError, match="budget_used_up"):
        resume_run(run, None, Decimal("0.001"))
    assert Run.objects.get(pk=run.pk).budget == Decimal("0.01")
    calls = spending(run).calls
    resume_run(run, None, Decimal("1"))
    resumed = drain(run.pk, seconds=30)
    assert resumed.state == Run.State.COMPLETED
    assert spending(resumed).calls > calls
    assert AuditEvent.objects.filter(verb="run.budget").count() == 1


def test_budget_of_0_makes_no_call(judge: JudgeServer, priced: None) -> None:
    run = start_and_drain(remote_run(judge, 3, budget=Decimal(0)))
    assert (run.state, run.reason) == (Run.State.PAUSED, BUDGET_USED_UP)
    assert judge.stats()["calls"] == judge.stats()["preflights"] == 0


def test_sufficient_budget_changes_nothing(judge: JudgeServer, priced: None) -> None:
    assert start_and_drain(remote_run(judge, 3, budget=Decimal(1))).state == Run.State.COMPLETED


def test_replies_without_a_count_of_tokens_pause_the_run(judge: JudgeServer, priced: None) -> None:
    judge.behave(valid_reply(usage=None))
    run = start_and_drain(remote_run(judge, 20, concurrency=2, budget=Decimal(1)))
    assert (run.state, run.reason) == (Run.State.PAUSED, COST_UNKNOWN)
    assert spending(run).calls < 20


def test_budget_without_prices_is_refused(judge: JudgeServer, unpriced: None) -> None:
    with pytest.raises(DomainError, match="budget_unpriced") as error:
        remote_run(judge, 2, budget=Decimal(1))
    assert error.value.params["models"] == ["judge-1"]


@needs("batches")
def test_a_budget_and_batches_exclude_each_other(judge: JudgeServer, priced: None) -> None:
    with pytest.raises(DomainError, match="budget_of_batches"):
        remote_run(judge, 2, budget=Decimal(1), batch=True)


def test_estimate_equals_known_costs_without_calls_in_flight(judge: JudgeServer, priced: None) -> None:
    run = remote_run(judge, 3, budget=Decimal(1))
    run = start_and_drain(run)
    run_spending = spending(run)
    assert estimated_spending(run) == (run_spending.known, "")


def test_budget_guard_checks_as_often_as_the_spending_rate_requires(
    judge: JudgeServer, priced: None, monkeypatch: Any
) -> None:
    run = remote_run(judge, 2, budget=Decimal(10))
    now, money, checked_at = [0.0], [Decimal(0)], []
    monkeypatch.setattr("evaluation.runs.budgets.time.monotonic", lambda: now[0])
    monkeypatch.setattr(
        "evaluation.runs.budgets.estimated_spending", lambda _: checked_at.append(now[0]) or (money[0], "")
    )
    guard = BudgetGuard(run)
    # A dollar a second: at first a look is due each second, and at 9.6 dollars, with 0.4 s left, after 0.1 s.
    for seconds in (0.0, 2.0, 2.5, 3.1, 9.6, 9.65, 9.71, 10.0):
        now[0], money[0] = seconds, Decimal(str(seconds))
        reason = guard.stop_reason()
    assert checked_at == [0.0, 2.0, 3.1, 9.6, 9.71, 10.0]
    assert reason == BUDGET_USED_UP


def test_raised_budget_requires_prices(judge: JudgeServer, priced: None, settings: Any) -> None:
    run = start_and_drain(remote_run(judge, 4, budget=Decimal(0)))
    settings.CONCORD_PRICES = ""
    with pytest.raises(DomainError, match="budget_unpriced"):
        set_budget(run, Decimal(2), None)


def test_resume_run_command_takes_a_budget(judge: JudgeServer, priced: None, capsys: Any) -> None:
    run = start_and_drain(remote_run(judge, 4, budget=Decimal(0)))
    with pytest.raises(CommandError, match="US dollar amount"):
        call_command("resume_run", str(run.pk), "--budget", "a lot")
    call_command("resume_run", str(run.pk), "--budget", "1.5")
    run.refresh_from_db()
    assert (run.state, run.budget) == (Run.State.COMPLETED, Decimal("1.5"))


def test_budget_counts_judge_calls_and_ignores_system_calls(judge: JudgeServer, priced: None) -> None:
    run = start_and_drain(remote_run(judge, 3, budget=Decimal(1)))
    known_cost = spending(run).known
    units = list(WorkUnit.objects.filter(run=run, kind=WorkUnit.Kind.JUDGE))
    reply_fields = {"created_at": timezone.now(), "outcome": "ok", "cost": None}
    question_unit = WorkUnit.objects.create(
        run=run, kind=WorkUnit.Kind.ASK, question=units[0].question, key="asked", state=State.DONE
    )
    for number in range(3):
        Reply.objects.create(
            attempt=Attempt.objects.create(unit=question_unit, fence=1, round=0, number=number), **reply_fields
        )
    assert estimated_spending(run) == (known_cost, "")  # what the system cost is not known and is no part of it
    Reply.objects.create(attempt=Attempt.objects.create(unit=units[0], fence=9, round=0, number=9), **reply_fields)
    assert estimated_spending(run) == (known_cost + CALL, "")  # one call more, at the mean of the judge's


@pytest.mark.parametrize("usage", [{"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 900}, None])
def test_inconsistent_token_counts_pause_the_run(judge: JudgeServer, priced: None, usage: Any) -> None:
    judge.behave(valid_reply(usage=usage))
    run = start_and_drain(remote_run(judge, 12, concurrency=2, budget=Decimal(1)))
    assert (run.state, run.reason) == (Run.State.PAUSED, COST_UNKNOWN)


def test_reasoning_tokens_outside_the_output_count_towards_cost(judge: JudgeServer, priced: None) -> None:
    judge.behave(valid_reply(usage={"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 2960}))
    run = start_and_drain(remote_run(judge, 12, concurrency=2, budget=Decimal("0.01")))
    assert (run.state, run.reason) == (Run.State.PAUSED, BUDGET_USED_UP)
    cost = spending(run)
    assert cost.known == cost.calls * Decimal("0.00296")  # 900 in and 2,060 out at a dollar a million each
