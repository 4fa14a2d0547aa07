"""Source 002's calls as its document writes them."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.roles import Role
from evaluation.judges.shipped import save_judge
from evaluation.models import Endpoint, QuestionSet, Reply, Run, WorkUnit
from evaluation.runs.execution import drain
from examples.rag_service import RagService
from tests.evaluation.rest.clients import Caller
from tests.evaluation.systems.asking import questions, toy_system
from tests.judge_server import JudgeServer

pytestmark = pytest.mark.django_db


class Source(Caller):
    """Calls the source's addresses, as its examples do."""

    def run(self, dataset: QuestionSet, **body: Any) -> Any:
        return self.client.post(f"/evaluation/datasets/{dataset.pk}/runs", body, format="json")

    def read(self, run: int) -> Any:
        return self.client.get(f"/evaluation/runs/{run}").json()


def caller(asked: QuestionSet) -> Source:
    return Source(Role.EVALUATOR, asked.project)


def test_what_is_left_out_asks_the_retriever_and_no_model(asked: RagService) -> None:
    dataset = questions(2)
    toy_system(asked, dataset)
    source = caller(dataset)
    made = source.run(dataset)
    assert made.status_code == 201, made.content
    run = made.json()
    assert (run["dataset_id"], run["k"], run["evaluation_type"], run["results"]) == (
        dataset.pk,
        5,
        "retrieval_only",
        [],
    )
    assert drain(run["id"], seconds=30).state == Run.State.COMPLETED
    read = source.read(run["id"])
    assert (read["status"], read["mean_faithfulness"], read["mean_answer_relevancy"]) == ("completed", None, None)
    assert set(read["metrics"]) == {"precision_at_k", "recall_at_k", "hit_rate_at_k", "mrr", "k"}
    assert [len(one["retrieved_chunk_ids"]) for one in read["results"]] == [5, 5]
    assert [one["generated_answer"] for one in read["results"]] == [None, None]
    assert not Reply.objects.exclude(attempt__unit__kind="ask").exists()


def test_full_rag_takes_three_calls_a_question(asked: RagService, settings: Any) -> None:
    dataset = questions(2)
    toy_system(asked, dataset)
    with JudgeServer() as server:
        settings.CONCORD_JUDGE_ORIGINS = [server.origin]
        endpoint = Endpoint.objects.create(name="local", base_url=server.base_url)
        save_judge(dataset.project, "remote", endpoint, model="judge-1", language="en", params=None, method="said")
        source = caller(dataset)
        made = source.run(dataset, k=3, evaluation_type="full_rag")
        assert made.status_code == 201, made.content
        assert drain(made.json()["id"], seconds=60).state == Run.State.COMPLETED
        units = WorkUnit.objects.filter(run_judge__judge_version__name="remote", answer__isnull=False)
        assert units.count() == 2 * 2  # beside one to the system, which answers
        assert server.calls <= 2 * 2 + server.preflights
    read = source.read(made.json()["id"])
    assert sum(asked.asked.values()) == 2
    assert read["metrics"]["k"] == 3
    assert all(one["generated_answer"] and one["faithfulness"] is not None for one in read["results"])


def test_what_cannot_be_asked_is_said(asked: RagService) -> None:
    dataset = questions(1)
    source = caller(dataset)
    nobody = source.run(dataset)
    assert (nobody.status_code, list(nobody.json()["errors"])) == (400, ["system"])
    toy_system(asked, dataset)
    assert source.run(dataset, k=51).status_code == 400
    assert source.run(dataset, evaluation_type="half_rag").status_code == 400
    assert source.run(dataset, notebook="n").status_code == 400
    assert source.run(dataset, system="nobody").status_code == 400
    assert source.client.get("/evaluation/runs/999999").status_code == 404
