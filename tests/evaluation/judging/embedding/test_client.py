"""The embeddings client against real sockets: one call is one request, and every fault is an outcome."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from evaluation.core.errors import DomainError
from evaluation.judging.embedding.client import EndpointEmbedder
from evaluation.judging.embedding.similarity import EmbeddingResult
from evaluation.network.outcomes import Outcome
from evaluation.network.transport import Deadlines
from tests.judge_server import JudgeServer, actions

QUICK = Deadlines(connect=1.0, read=0.3, total=0.6)
KEY = "sk-secret-0123456789"


def embedder(server: JudgeServer, **options: Any) -> EndpointEmbedder:
    given = {"base_url": server.base_url, "model": "e5", "key": KEY, "allowed_origins": [server.origin]}
    return EndpointEmbedder(**{**given, "deadlines": QUICK, **options})


def asked(server: JudgeServer, *scripted: actions.Action, **options: Any) -> EmbeddingResult:
    server.enqueue_embeddings(*scripted)
    with embedder(server, **options) as client:
        return client.embed(["하나", "two"])


def test_it_may_be_opened_again_by_any_thread(judge_server: JudgeServer) -> None:
    client = embedder(judge_server)

    def once(_: int) -> EmbeddingResult:
        with client:
            return client.embed(["one"])

    assert once(0).outcome == "ok"
    with ThreadPoolExecutor(1) as pool:
        assert [found.outcome for found in pool.map(once, range(2))] == ["ok", "ok"]


def test_a_good_call_gives_a_vector_for_each_text(judge_server: JudgeServer) -> None:
    judge_server.vector_of = lambda text, model: [float(len(text)), float(len(model))]
    made = asked(judge_server)
    assert [vector.tolist() for vector in made.vectors] == [[2.0, 2.0], [3.0, 2.0]]
    assert (made.outcome, made.http_status, made.model_returned, made.tokens_in) == (Outcome.OK, 200, "e5", 2)
    (request,) = judge_server.requests
    assert request.body == {"model": "e5", "input": ["하나", "two"], "encoding_format": "float"}
    assert request.headers["Authorization"] == f"Bearer {KEY}"


def test_azure_embeds_by_the_deployment_of_the_model(judge_server: JudgeServer) -> None:
    assert asked(judge_server, base_url=judge_server.origin, azure="2024-10-21").outcome is Outcome.OK
    (request,) = judge_server.requests
    assert request.path == "/openai/deployments/e5/embeddings"
    assert request.headers["api-key"] == KEY


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (actions.status(429, retry_after="7"), Outcome.RATE_LIMITED),
        (actions.status(503), Outcome.OVERLOADED),
        (actions.status(500), Outcome.SERVER_ERROR),
        (actions.status(401), Outcome.UNAUTHORISED),
        (actions.status(400), Outcome.BAD_REQUEST),
        (actions.status(404, error_code="model_not_found"), Outcome.NOT_FOUND),
        (actions.redirect("http://169.254.169.254/"), Outcome.REDIRECT),
        (actions.hang(), Outcome.TIMEOUT),
        (actions.drip(), Outcome.TIMEOUT),
        (actions.html(), Outcome.WRONG_CONTENT),
        (actions.fitting(), Outcome.WRONG_CONTENT),  # a chat completion
        (actions.disconnect(), Outcome.CONNECTION),
    ],
)
def test_a_fault_is_an_outcome(judge_server: JudgeServer, fault: actions.Action, outcome: Outcome) -> None:
    made = asked(judge_server, fault)
    assert (made.outcome, made.vectors) == (outcome, ())
    assert len(judge_server.requests) == 1
    assert made.detail or made.raw  # whoever looks for the fault finds something
    assert KEY not in f"{made.detail}{made.raw}"


def test_the_wait_that_a_server_asks_for_is_heard(judge_server: JudgeServer) -> None:
    assert asked(judge_server, actions.status(429, retry_after="7")).retry_after == 7.0


def test_an_endpoint_that_may_not_be_called_is_refused_before_anything_is_sent(judge_server: JudgeServer) -> None:
    with pytest.raises(DomainError) as refused:
        embedder(judge_server, allowed_origins=["https://elsewhere.example"])
    assert refused.value.code == "origin_not_allowed"
    assert judge_server.requests == []


def test_model_address_and_dimensions_make_the_space(judge_server: JudgeServer) -> None:
    made = [embedder(judge_server), embedder(judge_server, model="e6"), embedder(judge_server, dimensions=64)]
    assert len({one.space for one in made}) == 3
    assert made[0].space == embedder(judge_server, key="another").space
    assert dict(made[2].provenance) == {
        "kind": "endpoint",
        "model": "e5",
        "origin": judge_server.origin,
        "dimensions": 64,
    }
    for one in made:
        with one:
            pass
