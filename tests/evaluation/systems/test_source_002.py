"""REST calls as documented by the source of the generation profile."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.roles import Role
from evaluation.judges.shipped import save_judge
from evaluation.models import Endpoint, QuestionSet, Reply, Run, WorkUnit
from evaluation.runs.execution import drain
from examples.rag_service import RagService
from tests.evaluation.rest.clients import Caller
from tests.evaluation.systems.asking import make_questions, toy_system
from tests.judge_server import JudgeServer

pytestmark = pytest.mark.django_db


class SourceCaller(Caller):
    """A caller that uses the addresses of the source's examples."""

    def start_run(self, dataset: QuestionSet, **body: Any) -> Any:
        return self.client.post(f"/evaluation/datasets/{dataset.pk}/runs", body, format="json")

    def get_run(self, run: int) -> Any:
        return self.client.get(f"/evaluation/runs/{run}").json()


def caller(question_set: QuestionSet) -> SourceCaller:
    return SourceCaller(Role.EVALUATOR, question_set.project)


def test_default_run_is_retrieval_only(rag_service: RagService) -> None:
    dataset = make_questions(2)
    toy_system(rag_service, dataset)
    source = caller(dataset)
    response = source.start_run(dataset)
    assert response.status_code == 201, response.content
    run = response.json()
    assert (run["dataset_id"], run["k"], run["evaluation_type"], run["results"]) == (
        dataset.pk,
        5,
        "retrieval_only",
        [],
    )
    assert drain(run["id"], seconds=30).state == Run.State.COMPLETED
    report = source.get_run(run["id"])
    assert (report["status"], report["mean_faithfulness"], report["mean_answer_relevancy"]) == ("completed", None, None)
    assert set(report["metrics"]) == {"precision_at_k", "recall_at_k", "hit_rate_at_k", "mrr", "k"}
    assert [len(result["retrieved_chunk_ids"]) for result in report["results"]] == [5, 5]
    assert [result["generated_answer"] for result in report["results"]] == [None, None]
    assert not Reply.objects.exclude(attempt__unit__kind="ask").exists()


def test_full_rag_makes_three_calls_per_question(rag_service: RagService, settings: Any) -> None:
    dataset = make_questions(2)
    toy_system(rag_service, dataset)
    with JudgeServer() as server:
        settings.CONCORD_JUDGE_ORIGINS = [server.origin]
        endpoint = Endpoint.objects.create(name="local", base_url=server.base_url)
        save_judge(dataset.project, "remote", endpoint, model="judge-1", language="en", params=None, method="said")
        source = caller(dataset)
        response = source.start_run(dataset, k=3, evaluation_type="full_rag")
        assert response.status_code == 201, response.content
        assert drain(response.json()["id"], seconds=60).state == Run.State.COMPLETED
        units = WorkUnit.objects.filter(run_judge__judge_version__name="remote", answer__isnull=False)
        assert units.count() == 2 * 2  # beside one to the system, which answers
        assert server.calls <= 2 * 2 + server.preflights
    report = source.get_run(response.json()["id"])
    assert sum(rag_service.asked.values()) == 2
    assert report["metrics"]["k"] == 3
    assert all(result["generated_answer"] and result["faithfulness"] is not None for result in report["results"])


def test_invalid_requests_are_refused(rag_service: RagService) -> None:
    dataset = make_questions(1)
    source = caller(dataset)
    response = source.start_run(dataset)
    assert (response.status_code, list(response.json()["errors"])) == (400, ["system"])
    toy_system(rag_service, dataset)
    assert source.start_run(dataset, k=51).status_code == 400
    assert source.start_run(dataset, evaluation_type="half_rag").status_code == 400
    assert source.start_run(dataset, notebook="n").status_code == 400
    assert source.start_run(dataset, system="nobody").status_code == 400
    assert source.client.get("/evaluation/runs/999999").status_code == 404
