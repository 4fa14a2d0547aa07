"""REST endpoint ``runs/``: start (202), control and read; the response has the fields of the generation profile's
source."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from evaluation.judges.shipped import save_judge
from evaluation.models import Attempt, Endpoint, MetricDefinition, Preflight, Reply, Run, Score, WorkUnit
from evaluation.worker.lifecycle import start
from review.models import Exposure
from tests.evaluation.rest.clients import Caller, evaluator, viewer
from tests.factories import (
    make_answer_set,
    make_draft_run,
    make_judge,
    make_project,
    make_question_set,
    make_queue,
    make_scored_run,
    make_units,
    make_user,
    question_spec,
)

pytestmark = pytest.mark.django_db

SHAPE = {
    "id",
    "dataset_id",
    "status",
    "k",
    "evaluation_type",
    "metrics",
    "mean_faithfulness",
    "mean_answer_relevancy",
    "error_message",
    "results",
    "created_at",
    "updated_at",
}
RESULT = {
    "id",
    "test_case_id",
    "retrieved_chunk_ids",
    "precision",
    "recall",
    "hit",
    "reciprocal_rank",
    "generated_answer",
    "faithfulness",
    "answer_relevancy",
}


def test_starting_a_run_is_202_with_id_status_progress_and_links() -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    response = caller.post("runs/", {"answer_set": answers.pk, "judge": None, "name": "nightly"})
    body = response.json()
    assert response.status_code == 202
    run = Run.objects.get()
    assert (body["id"], body["status"], body["name"], run.created_by) == (run.pk, "running", "nightly", caller.user)
    assert (body["progress"]["total"], body["progress"]["ended"], body["progress"]["share"]) == (6, 0, 0.0)
    assert set(body["links"]) == {"self", "answers", "pause", "resume", "cancel", "retry_failed"}
    assert caller.client.get(body["links"]["self"]).status_code == 200
    assert caller.client.get(body["links"]["answers"]).status_code == 200
    assert caller.client.post(body["links"]["pause"]).json()["status"] == "paused"


def test_profile_defaults_to_that_of_the_project() -> None:
    answers = make_answer_set()
    answers.project.default_profile = "graphrag"
    answers.project.save()
    caller = evaluator(answers.project)
    for fields, expected in [({}, "graphrag"), ({"profile": ""}, "graphrag"), ({"profile": "ragas"}, "ragas")]:
        run_id = caller.post("runs/", {"answer_set": answers.pk, "judge": None, **fields}).json()["id"]
        assert Run.objects.get(pk=run_id).profile_version.name == expected


def test_judge_is_the_default_a_named_one_or_none() -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    save_judge(answers.project, "strict", None, model="m", language="ko")
    for fields, expected in [
        ({}, ["baseline@1"]),
        ({"judge": "strict"}, ["strict@1", "baseline@2"]),
        ({"judge": None}, []),
    ]:
        run_id = caller.post("runs/", {"answer_set": answers.pk, **fields}).json()["id"]
        judge_names = [str(judge.judge_version) for judge in Run.objects.get(pk=run_id).judges.all()]
        assert list(dict.fromkeys(judge_names)) == expected  # one for each rubric family


def test_run_options_are_stored() -> None:
    answers = make_answer_set()
    options = {"repeat": 2, "max_concurrency": 4, "use_cache": False, "budget": "1.5000", "limit": 3}
    run_id = evaluator(answers.project).post("runs/", {"answer_set": answers.pk, **options}).json()["id"]
    run = Run.objects.get(pk=run_id)
    assert {name: run.config[name] for name in ("repeat", "max_concurrency", "use_cache")} == {
        "repeat": 2,
        "max_concurrency": 4,
        "use_cache": False,
    }
    assert (str(run.budget), run.config["question_ids"]) == ("1.5000", ["q1", "q2", "q3"])


def test_dry_run_estimates_cost_and_creates_nothing() -> None:
    answers = make_answer_set()
    reply = evaluator(answers.project).post("runs/", {"answer_set": answers.pk, "judge": None, "dry_run": True})
    estimate = reply.json()
    assert (reply.status_code, estimate["answers"], estimate["cost"], estimate["paid"]) == (
        200,
        answers.answers.count(),
        "0.0000",
        [],
    )
    assert not Run.objects.exists()


def test_repeated_start_token_returns_the_first_run() -> None:
    """A double click on the start button sends one token twice."""
    answers = make_answer_set()
    caller = evaluator(answers.project)
    body = {"answer_set": answers.pk, "judge": None, "start_token": str(uuid.uuid4())}
    assert caller.post("runs/", body).json()["id"] == caller.post("runs/", body).json()["id"]
    assert Run.objects.count() == 1
    other_answers = make_answer_set(answers.question_set)
    assert caller.post("runs/", body | {"answer_set": other_answers.pk}).json()["code"] == "start_token_used"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"answer_set": "x"}, 400),
        ({"answer_set": 10**30}, 404),
        ({"profile": "none such"}, 400),
        ({"judge": "none such"}, 400),
        ({"repeat": 0}, 400),
        ({"repeat": True}, 400),
        ({"max_concurrency": 1001}, 400),
        ({"budget": "-1"}, 400),
        ({"budget": "NaN"}, 400),
        ({"question_ids": ["none such"]}, 409),
        ({"name": "a\x00b"}, 400),
        ({"start_token": "x"}, 400),
        ({"state": "completed"}, 400),
        ({"created_by": 1}, 400),
        ({"config": {"k": 50}}, 400),
        ([], 400),
        ("text", 400),
    ],
    ids=str,
)
def test_invalid_bodies_create_no_run(body: Any, status: int) -> None:
    answers = make_answer_set()
    if isinstance(body, dict) and body and "answer_set" not in body:
        body = {"answer_set": answers.pk, **body}
    assert evaluator(answers.project).post("runs/", body).status_code == status
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        b'{"answer_set": 1, "answer_set": 2}',
        b'{"answer_set": NaN}',
        b"[" * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"name": "\\ud800"}',
        b'{"answer_set": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        b"",
        b"{",
    ],
    ids=["twice", "NaN", "open", "deep", "surrogate", "digits", "bytes", "empty", "cut"],
)
def test_ambiguous_or_invalid_json_is_400(body: bytes) -> None:
    caller = evaluator(make_project())
    assert caller.send("runs/", body).status_code == 400


def test_a_body_of_another_type_is_415_and_a_huge_one_413() -> None:
    caller = evaluator(make_project())
    assert caller.send("runs/", b"a=1", "application/x-www-form-urlencoded").status_code == 415
    assert caller.send("runs/", b" " * 2_000_000).status_code == 413


def test_pause_resume_and_cancel_follow_the_run_state() -> None:
    run = make_draft_run()
    start(run)
    caller = evaluator(run.project)
    steps = [("pause", "paused"), ("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")]
    for verb, status in steps:
        response = caller.post(f"runs/{run.pk}/{verb}/")
        assert (response.status_code, response.json()["status"]) == (200, status)
    conflict = caller.post(f"runs/{run.pk}/resume/")
    assert (conflict.status_code, conflict.json()["code"]) == (409, "run_not_paused")
    assert "cancelled" in conflict.json()["detail"]
    assert caller.client.get(f"/api/v1/runs/{run.pk}/pause/").status_code == 405


def test_paused_run_resumes_with_another_budget() -> None:
    run = make_draft_run()
    start(run)
    caller = evaluator(run.project)
    caller.post(f"runs/{run.pk}/pause/")
    assert caller.post(f"runs/{run.pk}/resume/", {"budget": "a lot"}).status_code == 400
    used_up = caller.post(f"runs/{run.pk}/resume/", {"budget": "0"})
    assert (used_up.status_code, used_up.json()["code"]) == (409, "budget_used_up")
    assert caller.get(f"runs/{run.pk}/").json()["budget"] is None  # refused, and nothing kept of it
    body = caller.post(f"runs/{run.pk}/resume/", {"budget": "2.5"}).json()
    assert (body["status"], body["budget"]) == ("running", "2.5000")


def test_retry_failed_requeues_failed_units() -> None:
    run = make_draft_run()
    start(run)
    run.units.update(state="failed", reason="timeout")
    caller = evaluator(run.project)
    body = caller.post(f"runs/{run.pk}/retry-failed/").json()
    assert (body["status"], body["progress"]["failed"]) == ("running", 0)
    assert caller.post(f"runs/{run.pk}/retry-failed/").json()["code"] == "nothing_failed"


def store_scores(run: Run, name: str, values: list[float]) -> None:
    metric = MetricDefinition.objects.create(name=name, version=1, kind="rule", scale="0..1:real")
    for answer, value in zip(run.answer_set.answers.order_by("id"), values, strict=False):
        Score.objects.create(
            run=run, answer=answer, metric=metric, origin=f"{name}{answer.pk}", status="scored", value=value
        )


def test_run_response_matches_the_worked_example() -> None:
    """One of five retrieved passages is relevant and ranked first: precision .2, recall 1, hit, reciprocal rank 1."""
    run = make_draft_run(make_answer_set(make_question_set(specs=2)))
    names = (
        "precision_at_k",
        "recall_at_k",
        "hit_at_k",
        "reciprocal_rank",
        "generation_faithfulness",
        "answer_relevancy",
    )
    for name, first_result in zip(names, (0.2, 1.0, 1.0, 1.0, 0.9, 0.85), strict=True):
        store_scores(run, name, [first_result, 0.0])
    body = viewer(run.project).get(f"runs/{run.pk}/").json()
    assert set(body) >= SHAPE
    # Means of two answers, the second 0 throughout: .2 / 2 = .1, 1 / 2 = .5, .9 / 2 = .45, .85 / 2 = .425.
    assert body["metrics"] == {
        "precision_at_k": 0.1,
        "recall_at_k": 0.5,
        "hit_rate_at_k": 0.5,
        "mrr": 0.5,
        "k": 5,
    }
    assert (body["mean_faithfulness"], body["mean_answer_relevancy"]) == (0.45, 0.425)
    assert (body["dataset_id"], body["status"], body["error_message"]) == (
        run.answer_set.question_set_id,
        "draft",
        None,
    )
    first_result, second_result = body["results"]
    assert set(first_result) >= RESULT
    assert first_result == {
        "id": first_result["id"],
        "test_case_id": "q1",
        "sample": 1,
        "retrieved_chunk_ids": ["c1"],
        "precision": 0.2,
        "recall": 1.0,
        "hit": True,
        "reciprocal_rank": 1.0,
        "generated_answer": "The capital is city 1.",
        "faithfulness": 0.9,
        "answer_relevancy": 0.85,
    }
    assert (second_result["hit"], second_result["precision"]) == (False, 0.0)


def test_missing_means_are_null_and_computed_means_are_listed() -> None:
    run = make_scored_run(values=[1, None])
    body = viewer(run.project).get(f"runs/{run.pk}/").json()
    assert body["metrics"] == {"precision_at_k": None, "recall_at_k": None, "hit_rate_at_k": None, "mrr": None, "k": 5}
    assert (body["mean_faithfulness"], body["mean_answer_relevancy"]) == (None, None)
    assert body["means"]["faithfulness"] == {"mean": 1.0, "scored": 3, "failed": 3, "not_applicable": 0}


def test_results_come_in_pages() -> None:
    run = make_draft_run(make_answer_set(make_question_set(specs=5)))
    caller = viewer(run.project)
    page = caller.get(f"runs/{run.pk}/", page_size=2).json()
    listed = [r["test_case_id"] for r in page["results"]]
    while page["results_next"]:
        page = caller.client.get(page["results_next"]).json()
        listed += [r["test_case_id"] for r in page["results"]]
    assert listed == ["q1", "q2", "q3", "q4", "q5"]


def test_pause_reason_is_a_sentence() -> None:
    run = make_draft_run()
    Run.objects.filter(pk=run.pk).update(state="paused", reason="unauthorised")
    body = viewer(run.project).get(f"runs/{run.pk}/").json()
    assert body["error_message"] == "The endpoint did not accept the key."


def test_run_list_has_a_constant_number_of_queries(django_assert_num_queries: Any) -> None:
    project = make_project()
    answers = make_answer_set(make_question_set(project))
    for _ in range(3):
        make_scored_run(answers)
    caller = viewer(project)
    with django_assert_num_queries(5):  # the token, the page, units, calls and preflights of all its runs
        assert len(caller.get("runs/").json()["results"]) == 3


def test_run_detail_has_a_constant_number_of_queries(django_assert_num_queries: Any) -> None:
    counts = []
    for number in (3, 30):
        run = make_scored_run(make_answer_set(make_question_set(specs=[question_spec(n) for n in range(number)])))
        caller = viewer(run.project)
        with django_assert_num_queries(25, exact=False) as queries:
            caller.get(f"runs/{run.pk}/", page_size=500)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_run_reports_costs_of_calls_and_savings_of_the_cache() -> None:
    answers = make_answer_set()
    endpoint = Endpoint.objects.create(name="e", base_url="http://e")
    run = make_scored_run(answers, judge=make_judge(answers.project, endpoint=endpoint))
    judge = run.judges.get()
    units = make_units(run, 2, kind=WorkUnit.Kind.JUDGE)
    WorkUnit.objects.filter(run=run).update(run_judge=judge, state="done")
    for unit, (outcome, cost, saved) in zip(units, [("ok", "0.5", None), ("cached", "0", "0.3")], strict=True):
        attempt = Attempt.objects.create(unit=unit, fence=1, round=0, number=1)
        Reply.objects.create(attempt=attempt, outcome=outcome, cost=cost, saved=saved)
    detail: list[dict[str, object]] = [{"cost": None}]
    Preflight.objects.create(run=run, judge_version=judge.judge_version, outcome="timeout", calls=1, detail=detail)
    body = viewer(run.project).get(f"runs/{run.pk}/").json()
    nothing = {"calls": 0, "cost": "0.00000000", "unknown_costs": 0, "cached": 0, "unknown_savings": 0}
    saved = {"saved": "0.30000000", "cached": 1}
    assert body["costs"] == {
        "answer_quality": nothing | saved | {"calls": 1, "cost": "0.50000000"},
        "preflight": nothing | {"calls": 1, "unknown_costs": 1, "saved": "0.00000000"},
    }
    total = nothing | saved | {"calls": 2, "cost": "0.50000000", "unknown_costs": 1}
    assert {name: body["progress"][name] for name in total} == total


def test_answers_come_with_contexts_scores_and_verdicts() -> None:
    run = make_scored_run(values=[2])
    score = Score.objects.filter(run=run, metric__name="correctness").order_by("answer_id").first()
    assert score is not None
    score.findings.create(kind="claim", position=0, text="city 1", verdict="supported", context=0, start=15, end=21)
    store_scores(run, "precision_at_k", [0.5])
    first_answer = viewer(run.project).get(f"runs/{run.pk}/answers/").json()["results"][0]
    assert (first_answer["question_id"], first_answer["answer"], first_answer["status"]) == (
        "q1",
        "The capital is city 1.",
        "ok",
    )
    assert first_answer["contexts"][0]["chunk_id"] == "c1"
    scores = {s["metric"]: s for s in first_answer["scores"]}
    judged = scores["correctness"]
    assert (judged["value"], judged["reason"], judged["counts"]) == (2.0, "The judge's reason.", True)
    assert judged["judge"].endswith("@1")
    assert judged["rubric"].startswith("answer_quality")
    verdict = judged["verdicts"][0]
    assert (verdict["verdict"], verdict["start"], verdict["end"], verdict["context"]) == ("supported", 15, 21, 0)
    rule = scores["precision_at_k"]
    assert (rule["judge"], rule["is_baseline"], rule["counts"], rule["value"]) == (None, False, True, 0.5)


def test_failed_score_has_a_sentence_instead_of_a_value() -> None:
    run = make_scored_run(values=[None])
    first_answer = viewer(run.project).get(f"runs/{run.pk}/answers/").json()["results"][0]
    assert {(s["status"], s["value"]) for s in first_answer["scores"]} == {("failed", None)}
    assert first_answer["scores"][0]["reason"] == "The call took longer than allowed."


def test_answers_are_filtered_by_category_question_and_status() -> None:
    run = make_scored_run(make_answer_set(make_question_set(specs=6)))
    caller = viewer(run.project)

    def ids(**query: str) -> list[str]:
        return [a["question_id"] for a in caller.get(f"runs/{run.pk}/answers/", **query).json()["results"]]

    assert ids(question="q4") == ["q4"]
    assert ids(category="negative") == ["q2", "q5"]
    assert ids(status="failed") == []
    assert len(ids(status="ok")) == 6


def test_page_of_answers_has_a_constant_number_of_queries(django_assert_num_queries: Any) -> None:
    run = make_scored_run(make_answer_set(make_question_set(specs=9)))
    caller = viewer(run.project)
    caller.get(f"runs/{run.pk}/answers/")
    # Token; run, roles, run again; answers, contexts, scores, findings; who is a member of a queue; primary judges.
    with django_assert_num_queries(10):
        assert len(caller.get(f"runs/{run.pk}/answers/").json()["results"]) == 9


def test_exposure_is_recorded_for_whoever_reads_scores() -> None:
    run = make_scored_run()
    lead = make_user("lead", run.project)
    Caller(None, run.project, user=lead).get(f"runs/{run.pk}/answers/", page_size=2)
    exposed_ids = set(Exposure.objects.filter(user=lead, scope="answer").values_list("object_id", flat=True))
    assert exposed_ids == set(run.answer_set.answers.order_by("id").values_list("pk", flat=True)[:2])


def test_rule_scores_expose_no_reviewer() -> None:
    judged = make_scored_run()
    lead = make_user("lead", judged.project)
    make_queue(judged, reviewers=[lead])
    rules = make_draft_run(judged.answer_set)
    store_scores(rules, "precision_at_k", [0.5] * 6)
    caller = Caller(None, judged.project, user=lead)
    assert caller.get(f"runs/{rules.pk}/answers/").json()["results"][0]["scores"]
    caller.get(f"runs/{rules.pk}/")
    assert not Exposure.objects.exists()
    store_scores(rules, "answer_relevancy", [0.0])
    caller.get(f"runs/{rules.pk}/")
    first_answer = rules.answer_set.answers.order_by("id").first()
    assert first_answer is not None
    assert [row.object_id for row in Exposure.objects.all()] == [first_answer.pk]
