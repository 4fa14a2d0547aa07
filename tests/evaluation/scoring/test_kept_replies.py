"""The cache over real sockets: an identical call is not paid for twice, and nothing else is served."""

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
from tests.evaluation.runs.remote import answers_to, remote_run, worked_off
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


def values(run: Run) -> list[tuple[int, str, float | None]]:
    judged = Score.objects.filter(run=run, judge_version__isnull=False).order_by("answer_id", "metric__name")
    return list(judged.values_list("answer_id", "metric__name", "value"))


def outcomes(run: Run) -> Counter[str]:
    return Counter(Reply.objects.filter(attempt__unit__run=run).values_list("outcome", flat=True))


def test_the_same_run_again_makes_no_call_and_has_the_same_scores(judge: JudgeServer) -> None:
    answers = answers_to(5)
    first = worked_off(remote_run(judge, answers))
    again = worked_off(remote_run(judge, answers))
    assert again.state == Run.State.COMPLETED
    assert judge.calls == 5
    assert values(again) == values(first)
    assert outcomes(again) == {"cached": 5}
    spent = spending_by_rubric(again)
    assert {name: (part.calls, part.hits) for name, part in spent.items()} == {
        "answer_quality": (0, 5),
        PREFLIGHT: (1, 0),
    }
    marked = Reply.objects.filter(attempt__unit__run=again).first()
    assert marked is not None
    assert (marked.cost, marked.tokens_in, marked.model_returned) == (0, 0, "judge-1")
    assert marked.raw != ""


def test_what_was_saved_is_what_the_calls_had_cost(judge: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    dear = PriceTable([Price(model="judge-1", since=date(2020, 1, 1), input=Decimal(1000), output=Decimal(0))])
    monkeypatch.setattr("evaluation.scoring.replies.price_table", lambda: dear)
    answers = answers_to(5)
    worked_off(remote_run(judge, answers))
    monkeypatch.undo()
    spent = spending_by_rubric(worked_off(remote_run(judge, answers)))["answer_quality"]
    # 900 tokens a call at 1000 USD for a million
    assert (spent.known, spent.hits, spent.saved, spent.unpriced_hits) == (0, 5, Decimal("4.5"), 0)


def test_without_the_cache_every_call_is_made(judge: JudgeServer) -> None:
    answers = answers_to(3)
    worked_off(remote_run(judge, answers))
    again = worked_off(remote_run(judge, answers, use_cache=False))
    assert judge.calls == 6
    assert outcomes(again) == {"ok": 3}


@pytest.mark.parametrize("change", [{"model": "judge-2"}, {"params": {"temperature": 0.5}}])
def test_another_model_or_parameter_is_another_call(judge: JudgeServer, change: dict[str, Any]) -> None:
    answers = answers_to(2)
    worked_off(remote_run(judge, answers))
    worked_off(remote_run(judge, answers, **change))
    assert judge.calls == 4


def test_another_way_of_asking_is_another_call(judge: JudgeServer) -> None:
    answers = answers_to(2)
    worked_off(remote_run(judge, answers))
    judge.behave(actions.without("json_schema"))
    worked_off(remote_run(judge, answers))
    assert judge.calls == 4


def test_another_endpoint_and_another_project_are_asked_themselves(judge: JudgeServer, settings: Any) -> None:
    answers = answers_to(2)
    worked_off(remote_run(judge, answers))
    worked_off(remote_run(judge, answers_to(2)))  # equal content, another project
    assert judge.calls == 4
    with JudgeServer() as other:
        settings.CONCORD_JUDGE_ORIGINS = [judge.origin, other.origin]
        Endpoint.objects.create(name=unique("e"), base_url=other.base_url)
        worked_off(remote_run(other, answers))
        assert other.calls == 2


def test_repeat_i_is_served_by_repeat_i_alone(judge: JudgeServer) -> None:
    answers = answers_to(2)
    first = worked_off(remote_run(judge, answers, repeat=2))
    assert judge.calls == 4  # the second repeat is no copy of the first
    again = worked_off(remote_run(judge, answers, repeat=3))
    assert judge.calls == 6  # only the third repeats are new
    assert outcomes(again) == {"cached": 4, "ok": 2}
    hashes = Reply.objects.filter(attempt__unit__run=first).values_list("attempt__unit__repeat", "request_hash")
    served = Reply.objects.filter(attempt__unit__run=again, outcome="cached")
    assert set(served.values_list("attempt__unit__repeat", "request_hash")) == set(hashes)


def test_failures_are_never_kept(judge: JudgeServer) -> None:
    answers = answers_to(2)
    judge.otherwise = actions.text("Prose.")
    first = worked_off(remote_run(judge, answers))
    assert first.state == Run.State.INCOMPLETE
    judge.otherwise = actions.fitting()
    asked = judge.calls
    again = worked_off(remote_run(judge, answers))
    assert again.state == Run.State.COMPLETED
    assert judge.calls == asked + 2


def test_a_retry_after_a_score_off_its_scale_asks_again(judge: JudgeServer) -> None:
    judge.otherwise = actions.verdicts(correctness=9, faithfulness=4, completeness=4)
    run = worked_off(remote_run(judge, 2))
    assert run.state == Run.State.INCOMPLETE
    judge.otherwise = actions.verdicts(correctness=3, faithfulness=4, completeness=4)
    assert retry_failed(run) == 2
    assert drain(run.pk, seconds=30).state == Run.State.COMPLETED
    assert judge.calls == 4


def twice_the_same() -> AnswerSet:
    """One question answered twice in the same words."""
    answers = make_answer_set(answers_to(1).question_set)
    make_answer(answers, answers.question_set.questions.get(), sample=2)
    return answers


def test_identical_calls_of_one_run_are_made_once_although_both_are_ready_at_once(judge: JudgeServer) -> None:
    judge.latency = 0.1
    run = worked_off(remote_run(judge, twice_the_same()))
    assert run.state == Run.State.COMPLETED
    assert judge.calls == 1
    assert outcomes(run) == {"ok": 1, "cached": 1}
    assert len(values(run)) == 6


def test_the_second_of_two_identical_calls_is_made_where_the_first_fails(judge: JudgeServer) -> None:
    judge.enqueue(actions.status(400))
    run = worked_off(remote_run(judge, twice_the_same()))
    assert judge.calls == 2
    assert outcomes(run) == {"bad_request": 1, "ok": 1}


def test_a_pause_while_identical_calls_wait_leaves_no_unit_behind(judge: JudgeServer) -> None:
    judge.latency = 0.2
    judge.enqueue(actions.status(401))
    run = worked_off(remote_run(judge, twice_the_same()))
    assert (run.state, run.reason) == (Run.State.PAUSED, "unauthorised: HTTP 401: scripted")
    assert set(run.units.filter(kind="judge").values_list("state", flat=True)) == {"todo"}
    assert judge.calls == 1
    assert outcomes(run) == {"unauthorised": 1, "not_sent": 1}
    assert Attempt.objects.filter(reply__isnull=True).count() == 0
