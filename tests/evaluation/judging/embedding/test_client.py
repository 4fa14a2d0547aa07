"""The embeddings client against real sockets: one request per call, and every fault is an outcome."""

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
from tests.judge_server.wire import respond

QUICK = Deadlines(connect=1.0, read=0.3, total=0.6)
KEY = "sk-secret-0123456789"


def embedder(server: JudgeServer, **options: Any) -> EndpointEmbedder:
    defaults = {"base_url": server.base_url, "model": "e5", "key": KEY, "allowed_origins": [server.origin]}
    return EndpointEmbedder(**{**defaults, "deadlines": QUICK, **options})


def embed(server: JudgeServer, *scripted: actions.Action, **options: Any) -> EmbeddingResult:
    server.enqueue_embeddings(*scripted)
    with embedder(server, **options) as client:
        return client.embed(["하나", "two"])


def test_client_can_be_reopened_by_any_thread(judge_server: JudgeServer) -> None:
    client = embedder(judge_server)

    def embed_once(_: int) -> EmbeddingResult:
        with client:
            return client.embed(["one"])

    assert embed_once(0).outcome == "ok"
    with ThreadPoolExecutor(1) as pool:
        assert [result.outcome for result in pool.map(embed_once, range(2))] == ["ok", "ok"]


def test_successful_call_returns_a_vector_for_each_text(judge_server: JudgeServer) -> None:
    judge_server.vector_of = lambda text, model: [float(len(text)), float(len(model))]
    result = embed(judge_server)
    assert [vector.tolist() for vector in result.vectors] == [[2.0, 2.0], [3.0, 2.0]]
    assert (result.outcome, result.http_status, result.model_returned, result.tokens_in) == (Outcome.OK, 200, "e5", 2)
    (request,) = judge_server.requests
    assert request.body == {"model": "e5", "input": ["하나", "two"], "encoding_format": "float"}
    assert request.headers["Authorization"] == f"Bearer {KEY}"


def test_azure_embeds_by_the_deployment_of_the_model(judge_server: JudgeServer) -> None:
    assert embed(judge_server, base_url=judge_server.origin, azure="2024-10-21").outcome is Outcome.OK
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
        (actions.valid_reply(), Outcome.WRONG_CONTENT),  # a chat completion
        (actions.disconnect(), Outcome.CONNECTION),
    ],
)
def test_fault_becomes_an_outcome(judge_server: JudgeServer, fault: actions.Action, outcome: Outcome) -> None:
    result = embed(judge_server, fault)
    assert (result.outcome, result.vectors) == (outcome, ())
    assert len(judge_server.requests) == 1
    assert result.detail or result.raw  # whoever looks for the fault finds something
    assert KEY not in f"{result.detail}{result.raw}"


def test_retry_after_of_the_server_is_reported(judge_server: JudgeServer) -> None:
    assert embed(judge_server, actions.status(429, retry_after="7")).retry_after == 7.0


def test_endpoint_with_disallowed_origin_is_refused_before_any_request(judge_server: JudgeServer) -> None:
    with pytest.raises(DomainError) as error:
        embedder(judge_server, allowed_origins=["https://elsewhere.example"])
    assert error.value.code == "origin_not_allowed"
    assert judge_server.requests == []


def test_vector_space_depends_on_model_address_and_dimensions(judge_server: JudgeServer) -> None:
    embedders = [embedder(judge_server), embedder(judge_server, model="e6"), embedder(judge_server, dimensions=64)]
    assert len({client.space for client in embedders}) == 3
    assert embedders[0].space == embedder(judge_server, key="another").space
    assert dict(embedders[2].provenance) == {
        "kind": "endpoint",
        "model": "e5",
        "origin": judge_server.origin,
        "dimensions": 64,
    }
    for client in embedders:
        with client:
            pass


@pytest.mark.parametrize("status", [200, 401])
def test_key_repeated_by_a_server_is_not_stored(judge_server: JudgeServer, status: int) -> None:
    result = embed(judge_server, respond(status, {"error": {"message": f"Authorization: Bearer {KEY}"}}))
    assert (result.outcome is not Outcome.OK, "Bearer …" in result.raw, KEY in result.raw) == (True, True, False)
