from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server

__all__ = ["judge_server"]
ROOT = Path(__file__).parents[2]
SCHEMA = {
    "type": "object",
    "properties": {
        "level": {"type": "integer", "enum": [1, 2, 3]},
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "claims": {"type": "array", "items": {"type": "object", "properties": {"ok": {"type": "boolean"}}}},
        "why": {"type": "string"},
    },
}


def post(base_url: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{base_url}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def chat(base_url: str, text: str = "hello", schema: dict[str, Any] | None = None) -> Any:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": text}]}
    if schema:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    return post(base_url, "/chat/completions", body)["choices"][0]["message"]["content"]


def test_default_answer_matches_the_schema_and_is_deterministic(judge_server: JudgeServer) -> None:
    texts = [chat(judge_server.base_url, f"item {i}", SCHEMA) for i in range(20)]
    values = [json.loads(text) for text in texts]
    assert all(v["level"] in {1, 2, 3} and 0 <= v["share"] <= 1 and v["claims"] and v["why"] for v in values)
    assert len({v["level"] for v in values}) > 1
    assert texts == [chat(judge_server.base_url, f"item {i}", SCHEMA) for i in range(20)]


def test_queue_precedes_rules_and_rules_precede_the_default(judge_server: JudgeServer) -> None:
    judge_server.when(lambda request: "special" in request.text, actions.text("by rule"))
    judge_server.enqueue(actions.text("from the queue"))
    url = judge_server.base_url
    assert [chat(url, "special"), chat(url, "special"), chat(url, "plain")] == ["from the queue", "by rule", "Noted."]


def test_server_logs_and_counts_calls_and_their_peak(judge_server: JudgeServer) -> None:
    judge_server.latency = 0.2
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: chat(judge_server.base_url, str(i)), range(8)))
    assert (judge_server.calls, judge_server.peak, judge_server.in_flight) == (8, 4, 0)
    assert {request.text for request in judge_server.requests} == {str(i) for i in range(8)}


def test_faults_are_drawn_with_their_shares() -> None:
    with JudgeServer(faults={"prose": 0.6}, seed=3) as server:
        prose = sum("four of five" in chat(server.base_url) for _ in range(200))
    assert 90 <= prose <= 150  # 120 expected, standard deviation 7
    assert server.drawn_faults["prose"] == prose


def test_models_and_embeddings_answer(judge_server: JudgeServer) -> None:
    with urllib.request.urlopen(f"{judge_server.base_url}/models", timeout=10) as response:
        assert json.load(response)["data"][0]["id"] == "local-judge"
    data = post(judge_server.base_url, "/embeddings", {"model": "e", "input": ["a", "b"]})["data"]
    assert [len(item["embedding"]) for item in data] == [8, 8]
    assert sum(x * x for x in data[0]["embedding"]) == pytest.approx(1.0)


def test_process_prints_its_address_and_final_counts() -> None:
    command = [sys.executable, "-m", "tests.judge_server", "--port", "0", "--latency", "0.01", "--fault", "prose=1.0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        assert "four of five" in chat(base_url)
        with urllib.request.urlopen(base_url.replace("/v1", "/control/stats"), timeout=10) as response:
            assert json.load(response)["calls"] == 1
        process.send_signal(signal.SIGTERM)
        assert "'calls': 1" in process.stdout.read()
    assert process.returncode == 0
