"""Judges comparing pairs over real sockets: every call in the ledger, tried again, paid for once, and only by whoever
has the turn."""

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
from contrib.pairs.tests.test_pairing import compared, two_runs
from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.judges.shipped import baseline_judge, jury_row, save_judge
from evaluation.judging.formulas import JuryRule
from evaluation.models import Endpoint, JudgeVersion, Run
from evaluation.models.work import EndpointQuotaLease
from evaluation.network import retrying
from evaluation.worker import sessions
from tests.factories import make_user
from tests.judge_server import JudgeServer, Received, actions
from tests.judge_server.fixture import judge_server

__all__ = ["judge_server"]
pytestmark = pytest.mark.django_db
A_BETTER = actions.text('{"preference": {"reason": "r", "label": "FIRST_BETTER"}}')


@pytest.fixture
def server(judge_server: JudgeServer, settings: Any) -> Iterator[JudgeServer]:
    """On the allow-list; whoever is done has left his places."""
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    yield judge_server
    assert not EndpointQuotaLease.objects.exists()


def judge_of(found: PairSet, server: JudgeServer, **options: Any) -> JudgeVersion:
    endpoint = Endpoint.objects.filter(base_url=server.base_url).first() or Endpoint.objects.create(
        name="e", base_url=server.base_url, max_concurrency=options.pop("at_once", 8)
    )
    return save_judge(found.project, "remote", endpoint, model="m", language="en", **options)


def outcomes() -> Counter[str]:
    return Counter(PairReply.objects.values_list("outcome", flat=True))


def shown_first(request: Received) -> str:
    return str(request.block["first"])


def test_every_call_stands_in_the_ledger_with_what_it_used(server: JudgeServer) -> None:
    found = compared()
    judge = judge_of(found, server)
    assert judge_pairs(found, judge) == ComparisonResult(6)
    assert (server.preflights, server.calls) == (1, 12)
    assert (PairAttempt.objects.count(), outcomes()) == (12, {"ok": 12})
    assert set(PairAttempt.objects.values_list("round", "number")) == {(0, 1), (0, 2)}
    reply = PairReply.objects.first()
    assert reply is not None
    assert (reply.tokens_in, reply.tokens_out, reply.model_returned, reply.cost) == (900, 60, "m", None)
    spent = judge_spending(found, judge)
    assert (spent.calls, spent.tokens_in, spent.unknown_calls) == (13, 13 * 900, 13)  # with the preflight
    assert Preference.objects.filter(pair__pair_set=found, value__isnull=False).count() == 6
    assert judge_pairs(found, judge) == ComparisonResult(0)
    assert server.calls == 12


def test_both_orders_are_asked_one_after_the_other_and_joined(server: JudgeServer) -> None:
    server.otherwise = A_BETTER
    found = compared(size=1)
    judge_pairs(found, judge := judge_of(found, server))
    pair = found.pairs.get()
    assert [shown_first(request) for request in server.requests] == [pair.text_a, pair.text_b]
    row = Preference.objects.get(by_judge=True)
    assert (row.value, row.detail) == (0.0, {"forward": -1.0, "backward": -1.0, "orders_disagree": True})
    assert pair_figures(found)["preference"].disagreeing_orders[str(judge)] == 1.0


def test_a_reply_without_a_verdict_is_repaired_once_then_fails_and_is_asked_again_later(server: JudgeServer) -> None:
    server.otherwise = actions.text("both are nice")
    found = compared()
    judge = judge_of(found, server)
    assert judge_pairs(found, judge) == ComparisonResult(6)
    assert (server.calls, outcomes()) == (12, {"parse": 12})  # one try and one repair of the first order
    figures = pair_figures(found)["preference"].judges[str(judge)]
    assert (figures.n, figures.failed) == (0, 6)
    server.reset()
    assert judge_pairs(found, judge) == ComparisonResult(6)
    assert server.calls == 12
    assert pair_figures(found)["preference"].judges[str(judge)].failed == 0
    assert Counter(PairAttempt.objects.values_list("round", flat=True)) == {0: 12, 1: 12}


def test_a_passing_fault_is_tried_again_and_counted(server: JudgeServer) -> None:
    server.enqueue(actions.status(429, retry_after="0.05"), actions.disconnect())
    found = compared()
    assert judge_pairs(found, judge_of(found, server)) == ComparisonResult(6)
    assert outcomes() == {"ok": 12, "rate_limited": 1, "connection": 1}
    assert PairAttempt.objects.count() == server.calls == 14


def test_the_way_of_asking_is_found_before_and_kept_for_the_whole_comparison(server: JudgeServer) -> None:
    server.behave(actions.without("json_schema"))
    server.when(lambda request: not request.is_preflight and server.calls <= 2, actions.text("prose"))
    found = compared()
    judge = judge_of(found, server)
    judge_pairs(found, judge)
    pinned = PairPreflight.objects.get()
    assert (pinned.outcome, pinned.rung, pinned.logprobs) == ("ok", "tool", True)
    seen = server.requests[:]
    server.reset()
    judge_pairs(found, judge)  # the pair that failed; the server could do better now
    assert server.preflights == 0
    assert {request.rung for request in (*seen, *server.requests)} == {"tool"}


@pytest.mark.parametrize(
    ("action", "reason"),
    [(actions.status(401), "unauthorised: HTTP 401: scripted"), (actions.text("Fine."), "no_rung: HTTP 200: Fine.")],
)
def test_a_judge_that_cannot_be_asked_is_told_before_a_pair_is_sent(
    server: JudgeServer, action: actions.Action, reason: str
) -> None:
    server.preflight = action
    found = compared()
    judge = judge_of(found, server)
    assert judge_pairs(found, judge) == ComparisonResult(0, 6, reason)
    assert (server.calls, PairAttempt.objects.count()) == (0, 0)
    server.preflight = actions.fitting()
    assert judge_pairs(found, judge) == ComparisonResult(6)


def test_where_a_person_is_needed_it_stops_and_goes_on_without_paying_twice(server: JudgeServer) -> None:
    found = compared(questions=12, size=12)
    judge = judge_of(found, server, at_once=2)
    server.when(lambda request: server.calls == 9, actions.status(401))
    stopped = judge_pairs(found, judge)
    assert stopped.reason == "unauthorised: HTTP 401: scripted"
    assert stopped.compared + stopped.remaining == 12
    assert stopped.remaining > 0
    answered = outcomes()["ok"]
    server.reset()
    assert judge_pairs(found, judge) == ComparisonResult(stopped.remaining)
    assert answered + server.calls == 24  # each order of each pair once
    assert outcomes()["ok"] == 24
    assert Preference.objects.filter(by_judge=True).values("pair").distinct().count() == 12
    assert Preference.objects.filter(by_judge=True).count() == 12


def test_an_order_that_was_answered_is_not_asked_again(server: JudgeServer) -> None:
    found = compared(size=1)
    judge = judge_of(found, server)
    server.enqueue(A_BETTER, actions.status(401))
    assert judge_pairs(found, judge).reason == "unauthorised: HTTP 401: scripted"
    server.requests.clear()
    server.enqueue(actions.text('{"preference": {"reason": "r", "label": "SECOND_BETTER"}}'))
    judge_pairs(found, judge)
    assert [shown_first(request) for request in server.requests] == [found.pairs.get().text_b]
    assert Preference.objects.get(by_judge=True).value == -1.0


def test_c1_an_endpoint_that_wants_to_be_left_alone_is(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (retrying, sessions):
        monkeypatch.setattr(module, "MAX_WORKER_WAIT_SECONDS", 0.2)
    server.enqueue(actions.status(429, retry_after="0.6"))
    found = compared(size=2)
    assert judge_pairs(found, judge_of(found, server, at_once=1)) == ComparisonResult(2)
    assert {name: outcomes()[name] for name in ("rate_limited", "ok")} == {"rate_limited": 1, "ok": 4}
    refused, *later = (request.at for request in server.requests)
    assert min(later) - refused >= 0.6


def test_one_process_at_a_time(server: JudgeServer) -> None:
    found = compared()
    judge = judge_of(found, server)
    judge_pairs(found, judge)
    Pair.objects.create(pair_set=found, external_id="new", position=99, question_text="?", text_a="a", text_b="b")
    other = JudgingLease(PairJudging.objects.get())
    assert other.acquire()
    with pytest.raises(DomainError, match="comparison_in_work"):
        judge_pairs(found, judge)
    PairJudging.objects.update(lease_until=Now() - timedelta(seconds=1))  # the other one was killed
    assert judge_pairs(found, judge) == ComparisonResult(1)
    assert not other.keep_alive()


def test_a_turn_that_is_lost_ends_the_work_without_a_second_preference(server: JudgeServer) -> None:
    found = compared(questions=12, size=12)
    judge = judge_of(found, server, at_once=1)

    taken: list[JudgingLease] = []

    def told(done: int, of: int) -> None:
        if not taken:
            PairJudging.objects.update(lease_until=Now() - timedelta(seconds=1))
            taken.append(JudgingLease(PairJudging.objects.get()))
            assert taken[0].acquire()

    server.latency = 0.05
    stopped = judge_pairs(found, judge, on_progress=told)
    assert (stopped.reason, stopped.remaining > 0) == ("turn_lost", True)
    assert taken[0].keep_alive()  # not ended by the one who lost it
    taken[0].release()
    judge_pairs(found, judge)
    assert Preference.objects.filter(by_judge=True).count() == 12


def test_the_same_pair_in_another_comparison_is_not_paid_for_again(server: JudgeServer) -> None:
    a, b = two_runs(3)
    first = compared_again(a, b, "first")
    judge = judge_of(first, server)
    judge_pairs(first, judge)
    again = compared_again(a, b, "again")
    assert judge_pairs(again, judge) == ComparisonResult(3)
    assert server.calls == 6
    assert outcomes() == {"ok": 6, "cached": 6}
    spent = judge_spending(again, judge)
    assert (spent.calls, spent.hits) == (1, 6)  # its own preflight
    assert values_of(again) == values_of(first)
    judge_pairs(compared_again(a, b, "anew"), judge, use_cache=False)
    assert server.calls == 12


def values_of(found: PairSet) -> list[float | None]:
    return list(found.pairs.order_by("external_id").values_list("preferences__value", flat=True))


def compared_again(a: Run, b: Run, name: str) -> PairSet:
    return make_pairs(a, b, name=name, reviewers=[make_user(Role.REVIEWER, a.project)], size=3, seed=1)


def lose_attempts(found: PairSet, judge: JudgeVersion, pair: Pair, count: int) -> None:
    """As a process leaves them that was killed so many times with the pair in hands."""
    row = PairJudging.objects.get(pair_set=found, judge_version=judge)
    for number in range(1, count + 1):
        PairAttempt.objects.create(judging=row, pair=pair, round=0, number=number)


def with_a_new_pair(server: JudgeServer) -> tuple[PairSet, JudgeVersion, Pair]:
    found = compared(size=2)
    judge = judge_of(found, server)
    judge_pairs(found, judge)
    pair = Pair.objects.create(pair_set=found, external_id="n", position=9, question_text="?", text_a="a", text_b="b")
    server.requests.clear()
    return found, judge, pair


def test_a_pair_whose_calls_died_with_their_process_is_asked_about_again(server: JudgeServer) -> None:
    found, judge, pair = with_a_new_pair(server)
    lose_attempts(found, judge, pair, 4)
    assert judge_pairs(found, judge) == ComparisonResult(1)
    assert len(server.requests) == 2
    assert list(pair.attempts.order_by("number").values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6]
    assert judge_spending(found, judge).unknown_calls == server.calls + server.preflights + 4  # may have been billed


def test_after_five_times_it_is_given_up(server: JudgeServer) -> None:
    found, judge, pair = with_a_new_pair(server)
    lose_attempts(found, judge, pair, 5)
    assert judge_pairs(found, judge) == ComparisonResult(1)
    assert server.requests == []
    assert Preference.objects.get(pair=pair).failure == "crash_loop"
    assert judge_pairs(found, judge) == ComparisonResult(1)  # asked for again by a person: the next round
    assert Preference.objects.filter(pair=pair, value__isnull=False).count() == 1


def test_a_suspect_is_sent_alone(server: JudgeServer) -> None:
    found, judge, pair = with_a_new_pair(server)
    for n in range(4):
        Pair.objects.create(
            pair_set=found, external_id=f"m{n}", position=20 + n, question_text=f"{n}?", text_a="a", text_b="b"
        )
    lose_attempts(found, judge, pair, 2)
    server.latency = 0.05
    out: dict[str, int] = {}
    server.when(lambda request: bool(out.setdefault(request.block["question"], server.in_flight)) and False, A_BETTER)
    judge_pairs(found, judge)
    assert out["?"] == 1
    assert max(out.values()) > 1


def test_an_interruption_marks_what_was_out_and_costs_no_try(server: JudgeServer) -> None:
    found = compared(questions=12, size=12)
    judge = judge_of(found, server, at_once=4)
    server.latency = 0.3

    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge_pairs(found, judge, on_progress=interrupt)
    assert not PairAttempt.objects.filter(reply__isnull=True).exists()
    assert set(outcomes()) <= {"interrupted", "not_sent", "ok"}
    server.latency = 0.0
    assert judge_pairs(found, judge).remaining == 0
    assert Preference.objects.filter(by_judge=True, value__isnull=False).count() == 12


def test_the_ledger_takes_no_call_twice_and_forgets_none(server: JudgeServer) -> None:
    found = compared(size=1)
    judge_pairs(found, judge_of(found, server))
    row = PairAttempt.objects.first()
    assert row is not None
    with pytest.raises(IntegrityError), transaction.atomic():
        PairAttempt.objects.create(judging=row.judging, pair=row.pair, round=row.round, number=row.number)
    for rows in (PairAttempt.objects, PairReply.objects, PairPreflight.objects):
        with pytest.raises(IntegrityError), transaction.atomic():
            rows.all().delete()


def test_the_baseline_compares_without_a_call_and_says_once_what_it_cannot(server: JudgeServer) -> None:
    found = compared()
    Pair.objects.create(pair_set=found, external_id="n", position=9, question_text="?", text_a="a", text_b="b")
    judge = baseline_judge(found.project, "en")
    assert judge_pairs(found, judge) == ComparisonResult(7)
    assert judge_pairs(found, judge) == ComparisonResult(0)
    figures = pair_figures(found)["preference"]
    assert figures.judges[str(judge)].mean == -2.0  # the answers of A name the expected city
    assert (figures.judges[str(judge)].failed, figures.disagreeing_orders[str(judge)]) == (1, 0.0)
    assert (server.calls, PairAttempt.objects.count()) == (0, 0)


def test_a_jury_compares_nothing(server: JudgeServer) -> None:
    found = compared()
    baseline = baseline_judge(found.project, "en")
    with pytest.raises(DomainError, match="jury_compares_nothing"):
        judge_pairs(found, jury_row(found.project, [baseline, judge_of(found, server)], JuryRule.MEAN))


def test_the_command_tells_what_it_did_and_why_it_stopped(server: JudgeServer) -> None:
    found = compared(size=2)
    judge_of(found, server)
    out = StringIO()
    call_command("judge_pairs", str(found.pk), stdout=out)
    assert out.getvalue().strip() == "remote@1: 2 pairs compared; 5 calls so far, at least $0.0000"
    Pair.objects.create(pair_set=found, external_id="n", position=9, question_text="?", text_a="a", text_b="b")
    server.otherwise = actions.status(401)
    with pytest.raises(CommandError, match="1 pairs left: The endpoint did not accept the key"):
        call_command("judge_pairs", found.name, "--judge", "remote", stdout=out)
