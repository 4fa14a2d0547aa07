"""The reply cache over real sockets: identical calls are paid once, and different calls are never served from it."""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from evaluation.judging.calls import Price, PriceTable
from evaluation.models import AnswerSet, Attempt, Endpoint, Reply, Run, Score
from evaluation.runs.execution import drain
from evaluation.runs.progress import PREFLIGHT, spending_by_rubric
from evaluation.worker.lifecycle import retry_failed
from tests.evaluation.runs.remote import make_answers, remote_run, start_and_drain
from tests.factories import make_answer, make_answer_set, unique
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]


@pytest.fixture
def judge(judge_server: JudgeServer, settings: Any) -> JudgeServer:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    return judge_server


def judge_values(run: Run) -> list[tuple[int, str, float | None]]:
    judged = Score.objects.filter(run=run, judge_version__isnull=False).order_by("answer_id", "metric__name")
    return list(judged.values_list("answer_id", "metric__name", "value"))


def outcomes(run: Run) -> Counter[str]:
    return Counter(Reply.objects.filter(attempt__unit__run=run).values_list("outcome", flat=True))


def test_repeated_run_makes_no_call_and_has_equal_scores(judge: JudgeServer) -> None:
    answers = make_answers(5)
    first_run = start_and_drain(remote_run(judge, answers))
    repeated_run = start_and_drain(remote_run(judge, answers))
    assert repeated_run.state == Run.State.COMPLETED
    assert judge.calls == 5
    assert judge_values(repeated_run) == judge_values(first_run)
    assert outcomes(repeated_run) == {"cached": 5}
    spending = spending_by_rubric(repeated_run)
    assert {name: (part.calls, part.hits) for name, part in spending.items()} == {
        "answer_quality": (0, 5),
        PREFLIGHT: (1, 0),
    }
    cached_reply = Reply.objects.filter(attempt__unit__run=repeated_run).first()
    assert cached_reply is not None
    assert (cached_reply.cost, cached_reply.tokens_in, cached_reply.model_returned) == (0, 0, "judge-1")
    assert cached_reply.raw != ""


def test_savings_equal_the_cost_of_the_original_calls(judge: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    prices = PriceTable([Price(model="judge-1", since=date(2020, 1, 1), input=Decimal(1000), output=Decimal(0))])
    monkeypatch.setattr("evaluation.scoring.replies.price_table", lambda: prices)
    answers = make_answers(5)
    start_and_drain(remote_run(judge, answers))
    monkeypatch.undo()
    rubric_spending = spending_by_rubric(start_and_drain(remote_run(judge, answers)))["answer_quality"]
    # 900 tokens a call at 1000 USD for a million
    assert (rubric_spending.known, rubric_spending.hits, rubric_spending.saved, rubric_spending.unpriced_hits) == (
        0,
        5,
        Decimal("4.5"),
        0,
    )


def test_run_without_the_cache_makes_every_call(judge: JudgeServer) -> None:
    answers = make_answers(3)
    start_and_drain(remote_run(judge, answers))
    repeated_run = start_and_drain(remote_run(judge, answers, use_cache=False))
    assert judge.calls == 6
    assert outcomes(repeated_run) == {"ok": 3}


@pytest.mark.parametrize("change", [{"model": "judge-2"}, {"params": {"temperature": 0.5}}])
def test_different_model_or_parameter_misses_the_cache(judge: JudgeServer, change: dict[str, Any]) -> None:
    answers = make_answers(2)
    start_and_drain(remote_run(judge, answers))
    start_and_drain(remote_run(judge, answers, **change))
    assert judge.calls == 4


def test_different_response_format_misses_the_cache(judge: JudgeServer) -> None:
    answers = make_answers(2)
    start_and_drain(remote_run(judge, answers))
    judge.behave(actions.without("json_schema"))
    start_and_drain(remote_run(judge, answers))
    assert judge.calls == 4


def test_other_endpoints_and_projects_miss_the_cache(judge: JudgeServer, settings: Any) -> None:
    answers = make_answers(2)
    start_and_drain(remote_run(judge, answers))
    start_and_drain(remote_run(judge, make_answers(2)))  # equal content, another project
    assert judge.calls == 4
    with JudgeServer() as other_server:
        settings.CONCORD_JUDGE_ORIGINS = [judge.origin, other_server.origin]
        Endpoint.objects.create(name=unique("e"), base_url=other_server.base_url)
        start_and_drain(remote_run(other_server, answers))
        assert other_server.calls == 2


def test_repeats_are_cached_by_number(judge: JudgeServer) -> None:
    answers = make_answers(2)
    first_run = start_and_drain(remote_run(judge, answers, repeat=2))
    assert judge.calls == 4  # the second repeat is no copy of the first
    second_run = start_and_drain(remote_run(judge, answers, repeat=3))
    assert judge.calls == 6  # only the third repeats are new
    assert outcomes(second_run) == {"cached": 4, "ok": 2}
    hashes = Reply.objects.filter(attempt__unit__run=first_run).values_list("attempt__unit__repeat", "request_hash")
    cached_replies = Reply.objects.filter(attempt__unit__run=second_run, outcome="cached")
    assert set(cached_replies.values_list("attempt__unit__repeat", "request_hash")) == set(hashes)


def test_failures_are_never_cached(judge: JudgeServer) -> None:
    answers = make_answers(2)
    judge.otherwise = actions.text("Prose.")
    first_run = start_and_drain(remote_run(judge, answers))
    assert first_run.state == Run.State.INCOMPLETE
    judge.otherwise = actions.valid_reply()
    first_calls = judge.calls
    second_run = start_and_drain(remote_run(judge, answers))
    assert second_run.state == Run.State.COMPLETED
    assert judge.calls == first_calls + 2


def test_retry_of_a_score_off_its_scale_calls_the_judge(judge: JudgeServer) -> None:
    judge.otherwise = actions.verdicts(correctness=9, faithfulness=4, completeness=4)
    run = start_and_drain(remote_run(judge, 2))
    assert run.state == Run.State.INCOMPLETE
    judge.otherwise = actions.verdicts(correctness=3, faithfulness=4, completeness=4)
    assert retry_failed(run) == 2
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert judge.calls == 4


def make_duplicate_answers() -> AnswerSet:
    """An answer set in which one question has two equal answers."""
    answers = make_answer_set(make_answers(1).question_set)
    make_answer(answers, answers.question_set.questions.get(), sample=2)
    return answers


def test_concurrent_identical_calls_are_made_once(judge: JudgeServer) -> None:
    judge.latency = 0.1
    run = start_and_drain(remote_run(judge, make_duplicate_answers()))
    assert run.state == Run.State.COMPLETED
    assert judge.calls == 1
    assert outcomes(run) == {"ok": 1, "cached": 1}
    assert len(judge_values(run)) == 6


def test_identical_call_is_made_if_the_first_fails(judge: JudgeServer) -> None:
    judge.enqueue(actions.status(400))
    run = start_and_drain(remote_run(judge, make_duplicate_answers()))
    assert judge.calls == 2
    assert outcomes(run) == {"bad_request": 1, "ok": 1}


def test_pause_releases_units_that_wait_for_an_identical_call(judge: JudgeServer) -> None:
    judge.latency = 0.2
    judge.enqueue(actions.status(401))
    run = start_and_drain(remote_run(judge, make_duplicate_answers()))
    assert (run.state, run.reason) == (Run.State.PAUSED, "unauthorised: HTTP 401: scripted")
    assert set(run.units.filter(kind="judge").values_list("state", flat=True)) == {"todo"}
    assert judge.calls == 1
    assert outcomes(run) == {"unauthorised": 1, "not_sent": 1}
    assert Attempt.objects.filter(reply__isnull=True).count() == 0
