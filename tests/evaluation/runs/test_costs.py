"""What the calls of a run cost: sums by hand, unknown costs that stay unknown, and what is still to come."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evaluation.errors import InvalidFile
from evaluation.judges.models import Endpoint, RubricVersion
from evaluation.judges.prices import price_table
from evaluation.runs.costs import EMBEDDINGS, expected_cost, spending, spending_by_answer, spending_by_rubric
from evaluation.runs.models import Answer, Run, RunJudge
from evaluation.runs.watching import calls_of
from evaluation.work.models import Attempt, Reply, WorkUnit
from tests.factories import make_answer_set, make_draft_run, make_judge, make_units

pytestmark = pytest.mark.django_db


def judged_run(**endpoint: Any) -> tuple[Run, list[WorkUnit]]:
    """A run of two answers, each with a unit of the rubrics ``alpha`` and ``beta``, and one of embeddings."""
    run = make_draft_run(make_answer_set())
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


def call(unit: WorkUnit, cost: str | None, number: int = 1, outcome: str = "ok", **tokens: int) -> None:
    attempt = Attempt.objects.create(unit=unit, fence=1, round=0, number=number)
    Reply.objects.create(attempt=attempt, outcome=outcome, cost=cost and Decimal(cost), **tokens)


def test_costs_and_tokens_are_summed_and_calls_never_sent_are_left_out() -> None:
    run, units = judged_run()
    call(units[0], "0.10", tokens_in=100, tokens_out=10, tokens_cached=60, tokens_reasoning=4)
    call(units[1], "0.02", number=1, outcome="parse", tokens_in=50, tokens_out=5)
    call(units[1], "0.03", number=2, tokens_in=50, tokens_out=5)
    call(units[2], "0", outcome="not_sent")
    found = spending(run)
    assert (found.calls, found.known, found.at_least) == (3, Decimal("0.15"), False)  # 0.10 + 0.02 + 0.03
    assert (found.tokens_in, found.tokens_out, found.tokens_cached, found.tokens_reasoning) == (200, 20, 60, 4)


def test_a_call_without_a_reply_or_a_price_makes_the_sum_a_lower_bound() -> None:
    run, units = judged_run()
    call(units[0], "0.10")
    call(units[1], None)
    Attempt.objects.create(unit=units[2], fence=1, round=0, number=1)
    found = spending(run)
    assert (found.calls, found.known, found.unknown_calls, found.at_least) == (3, Decimal("0.10"), 2, True)


def test_costs_are_told_by_rubric_and_by_answer() -> None:
    run, units = judged_run()
    for unit, cost in zip(units, ["0.10", "0.20", "0.01", "0.02", "0.005"], strict=True):
        call(unit, cost)
    by_rubric = {name: part.known for name, part in spending_by_rubric(run).items()}
    assert by_rubric == {"alpha": Decimal("0.30"), "beta": Decimal("0.03"), EMBEDDINGS: Decimal("0.005")}
    first, second = units[0].answer_id, units[1].answer_id
    by_answer = {answer: part.known for answer, part in spending_by_answer(run).items()}
    assert by_answer == {first: Decimal("0.115"), second: Decimal("0.22")}  # 0.10 + 0.01 + 0.005; 0.20 + 0.02


def test_the_expected_cost_takes_open_units_at_the_mean_of_their_own_rubric() -> None:
    run, units = judged_run()
    assert expected_cost(run) is None  # nothing has ended yet
    WorkUnit.objects.filter(pk__in=[units[0].pk, units[2].pk, units[4].pk]).update(state=WorkUnit.State.DONE)
    call(units[0], "0.10", number=1, outcome="parse")
    call(units[0], "0.10", number=2)
    call(units[2], "0.01")
    call(units[4], "0.005")
    # 0.215 so far; one open unit of alpha at 0.20 (two calls a unit), one of beta at 0.01
    assert expected_cost(run) == Decimal("0.425")
    WorkUnit.objects.update(state=WorkUnit.State.DONE)
    assert expected_cost(run) == Decimal("0.215")


def test_a_rubric_without_a_known_cost_leaves_the_expected_cost_unknown() -> None:
    run, units = judged_run()
    call(units[0], "0.10")
    call(units[2], None)
    assert expected_cost(run) is None


def test_calls_in_flight_their_limit_and_their_troubles_are_told() -> None:
    run, units = judged_run(max_concurrency=7)
    call(units[0], "0", outcome="rate_limited", number=1)
    call(units[0], "0", outcome="rate_limited", number=2)
    call(units[0], "0", number=3)
    call(units[1], "0", outcome="parse")
    leased = {"state": WorkUnit.State.LEASED, "lease_token": run.start_token, "lease_until": run.created_at, "fence": 1}
    WorkUnit.objects.filter(pk=units[2].pk).update(**leased)
    Attempt.objects.create(unit=units[2], fence=1, round=0, number=1)
    now = calls_of(run)
    assert (now.in_flight, now.limit, now.resting_until) == (1, 7, None)
    assert now.pace == pytest.approx(4 / 30)
    assert list(now.troubles.items()) == [("rate_limited", 2), ("parse", 1)]


def test_the_operators_prices_are_read_from_their_file(settings: Any, tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text('prices: [{model: m, since: 2026-01-01, input: "1", output: "2"}]')
    settings.CONCORD_PRICES = str(file)
    (price,) = price_table()._prices
    assert (price.model, price.output) == ("m", Decimal(2))
    settings.CONCORD_PRICES = str(tmp_path / "bad.yaml")
    (tmp_path / "bad.yaml").write_text("prices: [{model: m, since: yesterday, input: 1, output: 2}]")
    with pytest.raises(InvalidFile, match="prices_invalid"):
        price_table()
