"""Doubts about a run's judge, over real sockets: shown on the page, in the report and by the commands."""

from __future__ import annotations

import json
import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from evaluation.core.roles import Role
from evaluation.judges.shipped import baseline_judge
from evaluation.models import AnswerSet, Preflight, Run, SystemVersion
from review.comparisons.comparison import compare
from review.comparisons.gates import run_gate
from review.comparisons.values import differing_versions
from review.reports.as_json import summary_json
from review.reports.as_markdown import markdown_summary
from review.reports.gate import Gate, GateRequest, gate_reasons
from review.reports.provenance import Doubt, ServedModel
from review.statistics.paired_tests.gate import GateVerdict
from tests.evaluation.runs.remote import make_answers, remote_run, start_and_drain
from tests.factories import make_answer_set, make_scored_run, make_user
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server
from tests.review.builders import make_report
from tests.review.clients import Caller

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]


@pytest.fixture
def judge(judge_server: JudgeServer, settings: Any) -> JudgeServer:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    return judge_server


def doubt_codes(run: Run) -> list[str]:
    return [doubt.code for doubt in make_report(run).doubts]


def page_of(run: Run) -> str:
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, run.project))
    return client.get(f"/runs/{run.pk}/", headers={"accept-language": "en"}).content.decode()


def test_consistent_judge_raises_no_doubt(judge: JudgeServer) -> None:
    assert doubt_codes(start_and_drain(remote_run(judge))) == []


def test_answer_by_another_model_raises_a_doubt(judge: JudgeServer) -> None:
    judge.behave(actions.valid_reply(model="judge-1-cheap"))
    run = start_and_drain(remote_run(judge))
    assert make_report(run).doubts == (
        Doubt("other_model", {"judge": "remote@1", "asked": "judge-1", "answered": "judge-1-cheap"}),
    )
    sentence = "remote@1 was asked for the model judge-1, but judge-1-cheap answered."
    assert sentence in page_of(run)
    assert "⚠️ remote@\u200b1 was asked for the model judge-1" in markdown_summary(make_report(run), None)
    assert summary_json(make_report(run))["doubts"][0]["code"] == "other_model"


def test_model_change_during_the_run_raises_a_doubt(judge: JudgeServer) -> None:
    judge.enqueue(*[actions.valid_reply(model="judge-1-2026-01-01")] * 3)
    run = start_and_drain(remote_run(judge))
    report = make_report(run)
    (doubt,) = report.doubts
    assert (doubt.code, doubt.params["answered"]) == ("several_models", "judge-1 (3), judge-1-2026-01-01 (3)")
    assert "(number of replies in brackets): judge-1 (3), judge-1-2026-01-01 (3)." in page_of(run)
    (used_judge,) = [
        judge_entry for judge_entry in summary_json(report)["provenance"]["judges"] if judge_entry["primary"]
    ]
    assert used_judge["served"] == [
        {"model": "judge-1", "replies": 3},
        {"model": "judge-1-2026-01-01", "replies": 3},
    ]
    assert differing_versions([report, report]).keys() == {"served_model"}  # even beside itself it is no one series


def test_empty_replies_make_no_second_series(judge: JudgeServer) -> None:
    judge.enqueue(actions.text("Mostly right.", model="another"))
    report = make_report(start_and_drain(remote_run(judge)))
    (used_judge,) = [judge_entry for judge_entry in report.provenance.judges if judge_entry.primary]
    assert (used_judge.models_returned, used_judge.served) == (("another", "judge-1"), (ServedModel("judge-1", 6),))
    assert [doubt.code for doubt in report.doubts] == ["other_model"]


@pytest.mark.slow
def test_runs_by_different_models_are_not_compared_as_one_series(judge: JudgeServer) -> None:
    answers = make_answers(3)
    judge.behave(actions.valid_reply(model="judge-1-2026-01-01"))
    first = start_and_drain(remote_run(judge, answers))
    repeated_run = start_and_drain(remote_run(judge, answers, use_cache=False))
    judge.behave(actions.valid_reply(model="judge-1-2026-06-01"))
    second = start_and_drain(remote_run(judge, answers, use_cache=False))
    assert compare([first, repeated_run]).differences[0].differs == {}
    comparison = compare([first, second]).differences[0]
    assert comparison.differs == {"served_model": ["judge-1-2026-01-01 (3)", "judge-1-2026-06-01 (3)"]}
    by_name = {metric_difference.name: metric_difference.differs for metric_difference in comparison.metrics}
    assert (by_name["correctness"], by_name["keyword_hit"]) == (("served_model",), ())
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, first.project))
    page = client.get(f"/runs/compare/?runs={first.pk},{second.pk}", headers={"accept-language": "en"}).content.decode()
    assert "different served model" in page
    assert "judge-1-2026-06-01 (3)" in page
    cached_run = start_and_drain(remote_run(judge, answers))  # by the newest replies, whatever answers now
    assert differing_versions([make_report(second), make_report(cached_run)]) == {}


def judged_by(model: str, judge: JudgeServer, answers: AnswerSet, different: int = 0) -> Run:
    """A run answered by this model, with ``different`` answers unlike its usual ones."""
    judge.behave(actions.valid_reply(model=model))
    judge.enqueue(*[actions.weighted_levels({}, model=model)] * different)
    return start_and_drain(remote_run(judge, answers, use_cache=False))


def gate(run: Run, request: GateRequest) -> Gate:
    result = run_gate(run, request)
    assert result is not None
    return result


def test_gate_is_undecided_between_runs_of_different_models(judge: JudgeServer) -> None:
    answers = make_answers(8)
    first = judged_by("judge-1-2026-01-01", judge, answers)
    repeated_run = judged_by("judge-1-2026-01-01", judge, answers, different=2)
    second = judged_by("judge-1-2026-06-01", judge, answers, different=2)
    request = GateRequest(baseline=first, max_drop=0.9)
    across = request.model_copy(update={"across_models": True})
    same_model_gate, other_model_gate, allowed = (
        gate(repeated_run, request),
        gate(second, request),
        gate(second, across),
    )
    assert same_model_gate.verdict is allowed.verdict is GateVerdict.PASSED
    assert (other_model_gate.verdict, other_model_gate.checks[0].reason) == (GateVerdict.UNDECIDED, "served_model")
    assert other_model_gate.checks[0].value == allowed.checks[0].value
    assert re.fullmatch(
        r"drop of at most 0\.900 against the baseline: undecided at -0\.\d+ \(.* to .*\)\. Different models"
        r" answered under the same judge name, .* request the gate across models\.",
        gate_reasons(other_model_gate)[0],
    )
    assert gate(second, GateRequest(fail_under=0.01)).verdict is GateVerdict.PASSED  # nothing is compared


@pytest.mark.slow
def test_commands_and_rest_can_gate_across_models(judge: JudgeServer) -> None:
    answers = make_answers(8)
    first = judged_by("judge-1-2026-01-01", judge, answers)
    second = judged_by("judge-1-2026-06-01", judge, answers, different=2)
    arguments = ["compare", str(first.pk), str(second.pk), "--max-drop", "0.9"]
    with pytest.raises(SystemExit, match="100"):
        call_command(*arguments, stdout=StringIO())
    call_command(*arguments, "--across-models", stdout=StringIO())
    caller = Caller(make_user(Role.VIEWER, first.project))
    compared = f"runs/compare/?runs={first.pk},{second.pk}&max_drop=0.9"
    report = f"runs/{second.pk}/report/?baseline={first.pk}&max_drop=0.9"
    for query, verdict in (("", "undecided"), ("&across_models=true", "pass")):
        assert caller.get(compared + query).json()["gates"][str(second.pk)]["verdict"] == verdict
        assert json.loads(b"".join(caller.get(report + query).streaming_content))["gate"]["verdict"] == verdict


def test_model_change_since_an_earlier_run_raises_a_doubt(judge: JudgeServer) -> None:
    answers = make_answers(3)
    judge.behave(actions.valid_reply(model="judge-1-2026-01-01"))
    first = start_and_drain(remote_run(judge, answers))
    judge.behave(actions.valid_reply(model="judge-1-2026-06-01"))
    second = start_and_drain(remote_run(judge, answers, use_cache=False))
    assert doubt_codes(first) == []
    (doubt,) = make_report(second).doubts
    assert doubt.code == "changed_model"
    assert (doubt.params["earlier"], doubt.params["answered"]) == ("judge-1-2026-01-01", "judge-1-2026-06-01")


def test_judge_without_usage_raises_a_doubt_and_has_no_cost(judge: JudgeServer) -> None:
    judge.behave(actions.valid_reply(usage=None))
    run = start_and_drain(remote_run(judge))
    assert doubt_codes(run) == ["no_usage"]
    assert make_report(run).provenance.cost.unknown_calls == 6 + 1  # the preflight's call is one of the run's


def test_judge_and_system_of_one_family_raise_a_doubt(judge: JudgeServer) -> None:
    answers = make_answers(2)
    version = SystemVersion.objects.create(
        system=answers.system_version.system, version=2, config={"llm_model": "gpt-4o"}, content_hash="0" * 64
    )
    AnswerSet.objects.filter(pk=answers.pk).update(system_version=version)
    answers.refresh_from_db()
    run = start_and_drain(remote_run(judge, answers, model="gpt-4.1"))
    assert make_report(run).doubts == (Doubt("same_family", {"family": "gpt"}),)


def test_scores_that_grow_with_length_raise_a_doubt_with_an_interval() -> None:
    texts = ["word " * (n + 1) for n in range(30)]
    answers = make_answer_set(make_answers(30).question_set, texts=texts)
    run = make_scored_run(answers, values=[1 + n // 6 for n in range(30)], judge=baseline_judge(answers.project, "en"))
    params_by_metric = {doubt.params["metric"]: doubt.params for doubt in make_report(run).doubts}
    assert params_by_metric.keys() == {"correctness", "faithfulness"}
    assert params_by_metric["correctness"]["n"] == 30
    assert float(params_by_metric["correctness"]["low"]) > 0.9
    assert "increases with answer length" in page_of(run)


def test_constant_scores_and_few_answers_raise_no_length_doubt() -> None:
    answers = make_answer_set(make_answers(30).question_set, texts=["word " * (n + 1) for n in range(30)])
    assert doubt_codes(make_scored_run(answers, values=[3])) == []
    assert doubt_codes(make_scored_run(make_answers(1), values=[3])) == []


def test_page_shows_the_preflight(judge: JudgeServer) -> None:
    judge.behave(actions.without("json_schema", "logprobs"))
    run = start_and_drain(remote_run(judge, 2))
    page = page_of(run)
    assert "remote@1 · forced tool call · answered by judge-1 · returns token counts · no log probabilities" in page
    assert Preflight.objects.get().judge_hash[:12] in page


@pytest.mark.parametrize(
    ("action", "advice"),
    [
        (actions.status(401), "Enter a valid key for the endpoint"),
        (actions.status(404, error_code="model_not_found"), "the judge&#x27;s model name"),
        (actions.status(402), "Add credit"),
        (actions.text("Fine."), "test it with attack_judge"),
    ],
)
def test_paused_run_shows_the_required_action(judge: JudgeServer, action: actions.Action, advice: str) -> None:
    judge.behave(action)
    run = start_and_drain(remote_run(judge))
    assert run.state == Run.State.PAUSED
    page = page_of(run)
    assert 'role="alert"' in page
    assert advice in page


def test_expired_key_pauses_the_run_at_once(judge: JudgeServer) -> None:
    judge.enqueue(actions.valid_reply(), actions.status(401))
    run = start_and_drain(remote_run(judge, 40, concurrency=4))
    assert (run.state, run.reason) == (Run.State.PAUSED, "unauthorised: HTTP 401: scripted")
    assert judge.calls <= 2 + 4 + 8  # those that were out or ready, not five tries for each of forty answers
    assert "Enter a valid key for the endpoint" in page_of(run)


def test_judge_that_replies_in_prose_has_no_headline(judge: JudgeServer) -> None:
    judge.when(
        lambda request: not request.is_preflight and request.digest[0] % 5 < 3, actions.text("Mostly right, I think.")
    )
    run = start_and_drain(remote_run(judge, 30))
    assert run.state == Run.State.INCOMPLETE
    report = make_report(run)
    assert report.header.complete is False
    assert report.overall.judge_only.value is None
    (line,) = [metric_line for metric_line in report.metrics if metric_line.name == "correctness"]
    assert line.coverage.failed > 5
    assert not re.search(r"\b(nan|inf)\b", page_of(run), re.IGNORECASE)
