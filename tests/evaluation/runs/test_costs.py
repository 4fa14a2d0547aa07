"""Costs of the calls of a run: sums by hand, unknown costs and expected costs."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management.base import BaseCommand

from evaluation.core.errors import InvalidFile
from evaluation.judges.prices import price_table
from evaluation.judging.embedding.similarity import EmbeddingChoice
from evaluation.management.output import print_run_report
from evaluation.models import Answer, Attempt, Endpoint, Preflight, Reply, RubricVersion, Run, RunJudge, WorkUnit
from evaluation.runs.monitoring import exposition
from evaluation.runs.progress import (
    EMBEDDINGS,
    PREFLIGHT,
    Spending,
    call_status,
    expected_cost,
    progress,
    spending,
    spending_by_answer,
    spending_by_rubric,
    total_spending,
)
from evaluation.worker.lifecycle import RunConfig
from tests.factories import make_answer_set, make_draft_run, make_judge, make_units

pytestmark = pytest.mark.django_db


def make_judged_run(**endpoint: Any) -> tuple[Run, list[WorkUnit]]:
    """A run of two answers, each with a unit of the rubrics ``alpha`` and ``beta``, and one of embeddings."""
    config = RunConfig(rules=("keyword_hit",), embedding=EmbeddingChoice(endpoint=1, model="e"))
    run = make_draft_run(make_answer_set(), config=config)
    judge = make_judge(run.project, endpoint=Endpoint.objects.create(name="e", base_url="http://e", **endpoint))
    answers = list(Answer.objects.filter(answer_set=run.answer_set).order_by("id"))[:2]
    units = make_units(run, 5, kind=WorkUnit.Kind.JUDGE)
    for unit, (family, answer) in zip(units, [("alpha", 0), ("alpha", 1), ("beta", 0), ("beta", 1)], strict=False):
        rubric, _ = RubricVersion.objects.get_or_create(
            family=family, language="en", version=1, defaults={"spec": {}, "content_hash": family}
        )
        unit.run_judge, _ = RunJudge.objects.get_or_create(run=run, judge_version=judge, rubric_version=rubric)
        unit.answer = answers[answer]
    units[4].kind, units[4].answer = WorkUnit.Kind.EMBED, answers[0]
    for unit in units:
        unit.save()
    return run, units


def record_call(unit: WorkUnit, cost: str | None, number: int = 1, outcome: str = "ok", **fields: Any) -> None:
    attempt = Attempt.objects.create(unit=unit, fence=1, round=0, number=number)
    Reply.objects.create(attempt=attempt, outcome=outcome, cost=cost and Decimal(cost), **fields)


def record_preflight(run: Run, cost: str | None, *costs: str | None, outcome: str = "ok") -> None:
    """Store a preflight with one call of ten tokens for each of ``costs``."""
    pinned = {"response_format": "text", "judge_hash": "h"} if outcome == "ok" else {}
    detail = [{"tokens_in": 10, "tokens_out": 1, "cost": call_cost} for call_cost in costs]
    Preflight.objects.create(
        run=run, judge_version=run.judges.all()[0].judge_version, outcome=outcome, calls=len(costs),
        cost=cost and Decimal(cost), detail=detail, **pinned,
    )  # fmt: skip


def test_costs_and_tokens_are_summed_without_unsent_calls() -> None:
    run, units = make_judged_run()
    record_call(units[0], "0.10", tokens_in=100, tokens_out=10, tokens_cached=60, tokens_reasoning=4)
    record_call(units[1], "0.02", number=1, outcome="parse", tokens_in=50, tokens_out=5)
    record_call(units[1], "0.03", number=2, tokens_in=50, tokens_out=5)
    record_call(units[2], "0", outcome="not_sent")
    run_spending = spending(run)
    assert (run_spending.calls, run_spending.known, run_spending.at_least) == (
        3,
        Decimal("0.15"),
        False,
    )  # 0.10 + 0.02 + 0.03
    assert (
        run_spending.tokens_in,
        run_spending.tokens_out,
        run_spending.tokens_cached,
        run_spending.tokens_reasoning,
    ) == (200, 20, 60, 4)


def test_calls_of_the_offline_baseline_are_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    run, units = make_judged_run(max_concurrency=3)
    gamma = RubricVersion.objects.create(family="gamma", language="en", version=1, spec={}, content_hash="gamma")
    baseline = RunJudge.objects.create(run=run, judge_version=make_judge(run.project, "offline"), rubric_version=gamma)
    record_call(units[0], "0.10", tokens_in=100)
    for unit in units[1:3]:
        unit.run_judge = baseline
        unit.save()
        record_call(unit, "0", tokens_in=0)
    Attempt.objects.create(unit=units[2], fence=1, round=0, number=2)
    record_call(units[4], "0.01")
    assert (spending(run).calls, spending(run).known, spending(run).at_least) == (2, Decimal("0.11"), False)
    assert set(spending_by_rubric(run)) == {"alpha", EMBEDDINGS}
    assert set(spending_by_answer(run)) == {units[0].answer_id}
    assert call_status(run).pace == 2 / 30
    metrics = exposition([run.project_id]).decode()
    assert 'concord_calls_total{outcome="ok",work="runs"} 2.0' in metrics
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETED)
    print_run_report(BaseCommand(), Run.objects.get(pk=run.pk), "text")
    assert "0 failed, 2 calls" in capsys.readouterr().out


def test_a_call_without_a_reply_or_a_price_makes_the_sum_a_lower_bound() -> None:
    run, units = make_judged_run()
    record_call(units[0], "0.10")
    record_call(units[1], None)
    Attempt.objects.create(unit=units[2], fence=1, round=0, number=1)
    run_spending = spending(run)
    assert (run_spending.calls, run_spending.known, run_spending.unknown_calls, run_spending.at_least) == (
        3,
        Decimal("0.10"),
        2,
        True,
    )


def test_costs_are_summed_by_rubric_and_by_answer() -> None:
    run, units = make_judged_run()
    for unit, cost in zip(units, ["0.10", "0.20", "0.01", "0.02", "0.005"], strict=True):
        record_call(unit, cost)
    by_rubric = {name: part.known for name, part in spending_by_rubric(run).items()}
    assert by_rubric == {"alpha": Decimal("0.30"), "beta": Decimal("0.03"), EMBEDDINGS: Decimal("0.005")}
    first_id, second_id = units[0].answer_id, units[1].answer_id
    by_answer = {answer: part.known for answer, part in spending_by_answer(run).items()}
    assert by_answer == {first_id: Decimal("0.115"), second_id: Decimal("0.22")}  # 0.10 + 0.01 + 0.005; 0.20 + 0.02


def test_preflight_calls_are_part_of_the_cost_of_a_run() -> None:
    run, units = make_judged_run()
    record_call(units[0], "0.10", tokens_in=100, tokens_out=10)
    record_call(units[4], "0.005")
    record_preflight(run, None, None, "0.01", outcome="server_error")
    record_preflight(run, "0.02", "0.02")
    expected = Spending(5, Decimal("0.135"), 1, tokens_in=130, tokens_out=13)  # 0.10 + 0.005 + 0.01 + 0.02
    assert spending(run) == progress(run).spent == total_spending(spending_by_rubric(run).values()) == expected
    assert spending(run).at_least
    assert spending_by_rubric(run)[PREFLIGHT] == Spending(3, Decimal("0.03"), 1, tokens_in=30, tokens_out=3)
    assert set(spending_by_rubric(run)) == {"alpha", EMBEDDINGS, PREFLIGHT}


def test_preflight_of_an_earlier_version_has_only_a_total_cost() -> None:
    run, _ = make_judged_run()
    judge = run.judges.all()[0].judge_version
    Preflight.objects.create(
        run=run, judge_version=judge, outcome="timeout", calls=2, cost=None, detail=[{"tokens_in": 5}] * 2
    )
    Preflight.objects.create(
        run=run, judge_version=judge, outcome="server_error", calls=1, cost=Decimal("0.3"), detail=[{"tokens_in": 5}]
    )
    assert spending(run) == Spending(3, Decimal("0.3"), 2, tokens_in=15)


def test_known_savings_of_the_cache_are_reported() -> None:
    run, units = make_judged_run()
    record_call(units[0], "0.10")
    record_call(units[1], "0", outcome="cached", saved=Decimal("0.30"))
    record_call(units[2], "0", outcome="cached", saved=None)
    run_spending = spending(run)
    assert (run_spending.calls, run_spending.known, run_spending.at_least) == (1, Decimal("0.10"), False)
    assert (run_spending.hits, run_spending.saved, run_spending.unpriced_hits, run_spending.saved_at_least) == (
        2,
        Decimal("0.30"),
        1,
        True,
    )
    by_rubric = spending_by_rubric(run)
    assert (by_rubric["alpha"].hits, by_rubric["beta"].hits) == (1, 1)
    assert set(spending_by_answer(run)) == {units[0].answer_id}


def test_expected_cost_uses_the_mean_of_each_rubric_for_open_units() -> None:
    run, units = make_judged_run()
    assert expected_cost(run) is None  # nothing has ended yet
    WorkUnit.objects.filter(pk__in=[units[0].pk, units[2].pk, units[4].pk]).update(state=WorkUnit.State.DONE)
    record_call(units[0], "0.10", number=1, outcome="parse")
    record_call(units[0], "0.10", number=2)
    record_call(units[2], "0.01")
    record_call(units[4], "0.005")
    # 0.215 so far; one open unit of alpha at 0.20 (two calls a unit), one of beta at 0.01
    assert expected_cost(run) == Decimal("0.425")
    WorkUnit.objects.update(state=WorkUnit.State.DONE)
    assert expected_cost(run) == Decimal("0.215")


def test_expected_cost_of_embeddings_is_the_mean_over_all_units() -> None:
    run, units = make_judged_run()
    WorkUnit.objects.exclude(pk=units[4].pk).delete()
    embedding_units = make_units(run, 9, kind=WorkUnit.Kind.EMBED)
    WorkUnit.objects.filter(pk__in=[unit.pk for unit in embedding_units[:4]]).update(state=WorkUnit.State.DONE)
    WorkUnit.objects.filter(pk=units[4].pk).update(state=WorkUnit.State.DONE)
    record_call(units[4], "0.05")  # in the name of the first, for all five that are done
    assert expected_cost(run) == Decimal("0.10")  # five more at 0.01


def test_local_embeddings_add_no_expected_cost() -> None:
    run, units = make_judged_run()
    Run.objects.filter(pk=run.pk).update(config=RunConfig(embedding=EmbeddingChoice(model="local")).model_dump())
    run.refresh_from_db()
    WorkUnit.objects.exclude(pk=units[4].pk).delete()
    record_preflight(run, "0.02", "0.02")
    assert expected_cost(run) == Decimal("0.02")


def test_expected_cost_is_unknown_for_a_rubric_without_known_cost() -> None:
    run, units = make_judged_run()
    record_call(units[0], "0.10")
    record_call(units[2], None)
    assert expected_cost(run) is None


def test_call_status_reports_calls_in_flight_limit_and_failures() -> None:
    run, units = make_judged_run(max_concurrency=7)
    record_call(units[0], "0", outcome="rate_limited", number=1)
    record_call(units[0], "0", outcome="rate_limited", number=2)
    record_call(units[0], "0", number=3)
    record_call(units[1], "0", outcome="parse")
    leased = {"state": WorkUnit.State.LEASED, "lease_token": run.start_token, "lease_until": run.created_at, "fence": 1}
    WorkUnit.objects.filter(pk=units[2].pk).update(**leased)
    Attempt.objects.create(unit=units[2], fence=1, round=0, number=1)
    status = call_status(run)
    assert (status.in_flight, status.limit, status.resting_until) == (1, 7, None)
    assert status.pace == pytest.approx(4 / 30)
    assert list(status.troubles.items()) == [("rate_limited", 2), ("parse", 1)]


def test_prices_are_read_from_the_configured_file(settings: Any, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text('prices: [{model: m, since: 2026-01-01, input: "1", output: "2"}]')
    settings.CONCORD_PRICES = str(file)
    price = price_table().price("m", date(2026, 1, 1))
    assert price is not None
    assert (price.model, price.output) == ("m", Decimal(2))
    assert price_table().price("m", date(2025, 12, 31)) is None
    settings.CONCORD_PRICES = str(tmp_path / "bad.yaml")
    (tmp_path / "bad.yaml").write_text("prices: [{model: m, since: yesterday, input: 1, output: 2}]")
    with pytest.raises(InvalidFile, match="prices_invalid"):
        price_table()
