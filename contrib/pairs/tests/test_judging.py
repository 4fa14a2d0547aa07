"""Judges comparing pairs over real sockets: every call is recorded, retried, paid once, and made only by the lease
holder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from contrib.pairs.figures import pair_figures
from contrib.pairs.judging import ComparisonResult, judge_pairs, judge_spending
from contrib.pairs.models import Pair, PairAttempt, PairJudging, PairPreflight, PairReply, PairSet, Preference
from contrib.pairs.services import make_pairs
from contrib.pairs.session import JudgingLease
from contrib.pairs.tests.test_pairing import make_comparison, two_runs
from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.judges.shipped import baseline_judge, jury_row, save_judge
from evaluation.judging.formulas import JuryRule
from evaluation.models import Endpoint, JudgeVersion, Run
from evaluation.models.work import EndpointQuotaLease
from evaluation.network import retrying
from evaluation.worker import sessions
from tests.factories import make_user
from tests.judge_server import JudgeServer, ReceivedRequest, actions
from tests.judge_server.fixture import judge_server

__all__ = ["judge_server"]
pytestmark = pytest.mark.django_db
A_BETTER = actions.text('{"preference": {"reason": "r", "label": "FIRST_BETTER"}}')


@pytest.fixture
def server(judge_server: JudgeServer, settings: Any) -> Iterator[JudgeServer]:
    """Put the server on the allow-list; check that all quota leases are released."""
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    yield judge_server
    assert not EndpointQuotaLease.objects.exists()


def judge_of(pair_set: PairSet, server: JudgeServer, **options: Any) -> JudgeVersion:
    endpoint = Endpoint.objects.filter(base_url=server.base_url).first() or Endpoint.objects.create(
        name="e", base_url=server.base_url, max_concurrency=options.pop("at_once", 8)
    )
    return save_judge(pair_set.project, "remote", endpoint, model="m", language="en", **options)


def outcomes() -> Counter[str]:
    return Counter(PairReply.objects.values_list("outcome", flat=True))


def shown_first(request: ReceivedRequest) -> str:
    return str(request.block["first"])


def test_every_call_is_recorded_with_its_usage(server: JudgeServer) -> None:
    pair_set = make_comparison()
    judge = judge_of(pair_set, server)
    assert judge_pairs(pair_set, judge) == ComparisonResult(6)
    assert (server.preflights, server.calls) == (1, 12)
    assert (PairAttempt.objects.count(), outcomes()) == (12, {"ok": 12})
    assert set(PairAttempt.objects.values_list("round", "number")) == {(0, 1), (0, 2)}
    reply = PairReply.objects.first()
    assert reply is not None
    assert (reply.tokens_in, reply.tokens_out, reply.model_returned, reply.cost) == (900, 60, "m", None)
    spending = judge_spending(pair_set, judge)
    assert (spending.calls, spending.tokens_in, spending.unknown_calls) == (13, 13 * 900, 13)  # with the preflight
    assert Preference.objects.filter(pair__pair_set=pair_set, value__isnull=False).count() == 6
    assert judge_pairs(pair_set, judge) == ComparisonResult(0)
    assert server.calls == 12


def test_both_orders_are_judged_in_sequence_and_joined(server: JudgeServer) -> None:
    server.otherwise = A_BETTER
    pair_set = make_comparison(size=1)
    judge_pairs(pair_set, judge := judge_of(pair_set, server))
    pair = pair_set.pairs.get()
    assert [shown_first(request) for request in server.requests] == [pair.text_a, pair.text_b]
    row = Preference.objects.get(by_judge=True)
    assert (row.value, row.detail) == (0.0, {"forward": -1.0, "backward": -1.0, "orders_disagree": True})
    assert pair_figures(pair_set)["preference"].disagreeing_orders[str(judge)] == 1.0


def test_reply_without_a_verdict_is_repaired_once_and_retried_later(server: JudgeServer) -> None:
    server.otherwise = actions.text("both are nice")
    pair_set = make_comparison()
    judge = judge_of(pair_set, server)
    assert judge_pairs(pair_set, judge) == ComparisonResult(6)
    assert (server.calls, outcomes()) == (12, {"parse": 12})  # one try and one repair of the first order
    figures = pair_figures(pair_set)["preference"].judges[str(judge)]
    assert (figures.n, figures.failed) == (0, 6)
    server.reset()
    assert judge_pairs(pair_set, judge) == ComparisonResult(6)
    assert server.calls == 12
    assert pair_figures(pair_set)["preference"].judges[str(judge)].failed == 0
    assert Counter(PairAttempt.objects.values_list("round", flat=True)) == {0: 12, 1: 12}


def test_transient_fault_is_retried_and_counted(server: JudgeServer) -> None:
    server.enqueue(actions.status(429, retry_after="0.05"), actions.disconnect())
    pair_set = make_comparison()
    assert judge_pairs(pair_set, judge_of(pair_set, server)) == ComparisonResult(6)
    assert outcomes() == {"ok": 12, "rate_limited": 1, "connection": 1}
    assert PairAttempt.objects.count() == server.calls == 14


def test_response_format_is_chosen_once_per_comparison(server: JudgeServer) -> None:
    server.behave(actions.without("json_schema"))
    server.when(lambda request: not request.is_preflight and server.calls <= 2, actions.text("prose"))
    pair_set = make_comparison()
    judge = judge_of(pair_set, server)
    judge_pairs(pair_set, judge)
    pinned = PairPreflight.objects.get()
    assert (pinned.outcome, pinned.response_format, pinned.logprobs) == ("ok", "tool", True)
    first_requests = server.requests[:]
    server.reset()
    judge_pairs(pair_set, judge)  # the pair that failed; the server could do better now
    assert server.preflights == 0
    assert {request.response_format for request in (*first_requests, *server.requests)} == {"tool"}


@pytest.mark.parametrize(
    ("action", "reason"),
    [(actions.status(401), "unauthorised: HTTP 401: scripted"), (actions.text("Fine."), "no_rung: HTTP 200: Fine.")],
)
def test_unreachable_judge_is_reported_before_a_pair_is_sent(
    server: JudgeServer, action: actions.Action, reason: str
) -> None:
    server.preflight = action
    pair_set = make_comparison()
    judge = judge_of(pair_set, server)
    assert judge_pairs(pair_set, judge) == ComparisonResult(0, 6, reason)
    assert (server.calls, PairAttempt.objects.count()) == (0, 0)
    server.preflight = actions.valid_reply()
    assert judge_pairs(pair_set, judge) == ComparisonResult(6)


def test_comparison_stops_for_a_person_and_resumes_without_paying_twice(server: JudgeServer) -> None:
    pair_set = make_comparison(questions=12, size=12)
    judge = judge_of(pair_set, server, at_once=2)
    server.when(lambda request: server.calls == 9, actions.status(401))
    first_result = judge_pairs(pair_set, judge)
    assert first_result.reason == "unauthorised: HTTP 401: scripted"
    assert first_result.compared + first_result.remaining == 12
    assert first_result.remaining > 0
    reply_count = outcomes()["ok"]
    server.reset()
    assert judge_pairs(pair_set, judge) == ComparisonResult(first_result.remaining)
    assert reply_count + server.calls == 24  # each order of each pair once
    assert outcomes()["ok"] == 24
    assert Preference.objects.filter(by_judge=True).values("pair").distinct().count() == 12
    assert Preference.objects.filter(by_judge=True).count() == 12


def test_answered_order_is_not_requested_again(server: JudgeServer) -> None:
    pair_set = make_comparison(size=1)
    judge = judge_of(pair_set, server)
    server.enqueue(A_BETTER, actions.status(401))
    assert judge_pairs(pair_set, judge).reason == "unauthorised: HTTP 401: scripted"
    server.requests.clear()
    server.enqueue(actions.text('{"preference": {"reason": "r", "label": "SECOND_BETTER"}}'))
    judge_pairs(pair_set, judge)
    assert [shown_first(request) for request in server.requests] == [pair_set.pairs.get().text_b]
    assert Preference.objects.get(by_judge=True).value == -1.0


def test_rate_limited_endpoint_is_left_alone(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (retrying, sessions):
        monkeypatch.setattr(module, "MAX_WORKER_WAIT_SECONDS", 0.2)
    server.enqueue(actions.status(429, retry_after="0.6"))
    pair_set = make_comparison(size=2)
    assert judge_pairs(pair_set, judge_of(pair_set, server, at_once=1)) == ComparisonResult(2)
    assert {name: outcomes()[name] for name in ("rate_limited", "ok")} == {"rate_limited": 1, "ok": 4}
    refused_at, *later_times = (request.at for request in server.requests)
    assert min(later_times) - refused_at >= 0.6


def test_comparison_runs_in_a_single_process(server: JudgeServer) -> None:
    pair_set = make_comparison()
    judge = judge_of(pair_set, server)
    judge_pairs(pair_set, judge)
    Pair.objects.create(pair_set=pair_set, external_id="new", position=99, question_text="?", text_a="a", text_b="b")
    other_lease = JudgingLease(PairJudging.objects.get())
    assert other_lease.acquire()
    with pytest.raises(DomainError, match="comparison_in_work"):
        judge_pairs(pair_set, judge)
    PairJudging.objects.update(lease_until=Now() - timedelta(seconds=1))  # the other one was killed
    assert judge_pairs(pair_set, judge) == ComparisonResult(1)
    assert not other_lease.keep_alive()


def test_lost_lease_ends_the_work_without_a_second_preference(server: JudgeServer) -> None:
    pair_set = make_comparison(questions=12, size=12)
    judge = judge_of(pair_set, server, at_once=1)

    leases: list[JudgingLease] = []

    def on_progress(done: int, of: int) -> None:
        if not leases:
            PairJudging.objects.update(lease_until=Now() - timedelta(seconds=1))
            leases.append(JudgingLease(PairJudging.objects.get()))
            assert leases[0].acquire()

    server.latency = 0.05
    result = judge_pairs(pair_set, judge, on_progress=on_progress)
    assert (result.reason, result.remaining > 0) == ("turn_lost", True)
    assert leases[0].keep_alive()  # not ended by the one who lost it
    leases[0].release()
    judge_pairs(pair_set, judge)
    assert Preference.objects.filter(by_judge=True).count() == 12


def test_equal_pair_in_another_comparison_is_not_paid_again(server: JudgeServer) -> None:
    a, b = two_runs(3)
    first = make_comparison_of(a, b, "first")
    judge = judge_of(first, server)
    judge_pairs(first, judge)
    second_set = make_comparison_of(a, b, "again")
    assert judge_pairs(second_set, judge) == ComparisonResult(3)
    assert server.calls == 6
    assert outcomes() == {"ok": 6, "cached": 6}
    spending = judge_spending(second_set, judge)
    assert (spending.calls, spending.hits) == (1, 6)  # its own preflight
    assert values_of(second_set) == values_of(first)
    judge_pairs(make_comparison_of(a, b, "anew"), judge, use_cache=False)
    assert server.calls == 12


def values_of(pair_set: PairSet) -> list[float | None]:
    return list(pair_set.pairs.order_by("external_id").values_list("preferences__value", flat=True))


def make_comparison_of(a: Run, b: Run, name: str) -> PairSet:
    return make_pairs(a, b, name=name, reviewers=[make_user(Role.REVIEWER, a.project)], size=3, seed=1)


def lose_attempts(pair_set: PairSet, judge: JudgeVersion, pair: Pair, count: int) -> None:
    """Leave attempts as a process does that was killed ``count`` times with the pair in hand."""
    row = PairJudging.objects.get(pair_set=pair_set, judge_version=judge)
    for number in range(1, count + 1):
        PairAttempt.objects.create(judging=row, pair=pair, round=0, number=number)


def comparison_with_a_new_pair(server: JudgeServer) -> tuple[PairSet, JudgeVersion, Pair]:
    pair_set = make_comparison(size=2)
    judge = judge_of(pair_set, server)
    judge_pairs(pair_set, judge)
    pair = Pair.objects.create(
        pair_set=pair_set, external_id="n", position=9, question_text="?", text_a="a", text_b="b"
    )
    server.requests.clear()
    return pair_set, judge, pair


def test_pair_with_lost_calls_is_requested_again(server: JudgeServer) -> None:
    pair_set, judge, pair = comparison_with_a_new_pair(server)
    lose_attempts(pair_set, judge, pair, 4)
    assert judge_pairs(pair_set, judge) == ComparisonResult(1)
    assert len(server.requests) == 2
    assert list(pair.attempts.order_by("number").values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6]
    assert judge_spending(pair_set, judge).unknown_calls == server.calls + server.preflights + 4  # may have been billed


def test_pair_is_given_up_after_five_lost_calls(server: JudgeServer) -> None:
    pair_set, judge, pair = comparison_with_a_new_pair(server)
    lose_attempts(pair_set, judge, pair, 5)
    assert judge_pairs(pair_set, judge) == ComparisonResult(1)
    assert server.requests == []
    assert Preference.objects.get(pair=pair).failure == "crash_loop"
    assert judge_pairs(pair_set, judge) == ComparisonResult(1)  # asked for again by a person: the next round
    assert Preference.objects.filter(pair=pair, value__isnull=False).count() == 1


def test_suspect_pair_is_sent_alone(server: JudgeServer) -> None:
    pair_set, judge, pair = comparison_with_a_new_pair(server)
    for n in range(4):
        Pair.objects.create(
            pair_set=pair_set, external_id=f"m{n}", position=20 + n, question_text=f"{n}?", text_a="a", text_b="b"
        )
    lose_attempts(pair_set, judge, pair, 2)
    server.latency = 0.05
    in_flight_by_question: dict[str, int] = {}
    server.when(
        lambda request: bool(in_flight_by_question.setdefault(request.block["question"], server.in_flight)) and False,
        A_BETTER,
    )
    judge_pairs(pair_set, judge)
    assert in_flight_by_question["?"] == 1
    assert max(in_flight_by_question.values()) > 1


def test_interruption_marks_open_calls_and_costs_no_attempt(server: JudgeServer) -> None:
    pair_set = make_comparison(questions=12, size=12)
    judge = judge_of(pair_set, server, at_once=4)
    server.latency = 0.3

    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge_pairs(pair_set, judge, on_progress=interrupt)
    assert not PairAttempt.objects.filter(reply__isnull=True).exists()
    assert set(outcomes()) <= {"interrupted", "not_sent", "ok"}
    server.latency = 0.0
    assert judge_pairs(pair_set, judge).remaining == 0
    assert Preference.objects.filter(by_judge=True, value__isnull=False).count() == 12


def test_ledger_refuses_repeated_and_deleted_calls(server: JudgeServer) -> None:
    pair_set = make_comparison(size=1)
    judge_pairs(pair_set, judge_of(pair_set, server))
    row = PairAttempt.objects.first()
    assert row is not None
    with pytest.raises(IntegrityError), transaction.atomic():
        PairAttempt.objects.create(judging=row.judging, pair=row.pair, round=row.round, number=row.number)
    for rows in (PairAttempt.objects, PairReply.objects, PairPreflight.objects):
        with pytest.raises(IntegrityError), transaction.atomic():
            rows.all().delete()


def test_baseline_compares_without_calls_and_reports_failures_once(server: JudgeServer) -> None:
    pair_set = make_comparison()
    Pair.objects.create(pair_set=pair_set, external_id="n", position=9, question_text="?", text_a="a", text_b="b")
    judge = baseline_judge(pair_set.project, "en")
    assert judge_pairs(pair_set, judge) == ComparisonResult(7)
    assert judge_pairs(pair_set, judge) == ComparisonResult(0)
    figures = pair_figures(pair_set)["preference"]
    assert figures.judges[str(judge)].mean == -2.0  # the answers of A name the expected city
    assert (figures.judges[str(judge)].failed, figures.disagreeing_orders[str(judge)]) == (1, 0.0)
    assert (server.calls, PairAttempt.objects.count()) == (0, 0)


def test_jury_compares_nothing(server: JudgeServer) -> None:
    pair_set = make_comparison()
    baseline = baseline_judge(pair_set.project, "en")
    with pytest.raises(DomainError, match="jury_compares_nothing"):
        judge_pairs(pair_set, jury_row(pair_set.project, [baseline, judge_of(pair_set, server)], JuryRule.MEAN))


def test_command_prints_its_result_and_the_reason_for_stopping(server: JudgeServer) -> None:
    pair_set = make_comparison(size=2)
    judge_of(pair_set, server)
    output = StringIO()
    call_command("judge_pairs", str(pair_set.pk), stdout=output)
    assert output.getvalue().strip() == "remote@1: 2 pairs compared; 5 calls so far, at least $0.0000"
    Pair.objects.create(pair_set=pair_set, external_id="n", position=9, question_text="?", text_a="a", text_b="b")
    server.otherwise = actions.status(401)
    with pytest.raises(CommandError, match="1 pairs left: The endpoint did not accept the key"):
        call_command("judge_pairs", pair_set.name, "--judge", "remote", stdout=output)
