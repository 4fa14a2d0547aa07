"""Spans: what they hold and what they never hold, into memory and over a real socket to a receiver."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from evaluation.models import Attempt, Run
from evaluation.worker import tracing
from tests.evaluation.runs.remote import remote_run, worked_off
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]


@pytest.fixture
def judge(judge_server: JudgeServer, settings: Any) -> JudgeServer:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    settings.CONCORD_DISPATCHER = "local"
    return judge_server


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The SDK's exporter that keeps the spans."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setattr(tracing, "_spans", lambda: tracing.Spans(provider))
    return kept


def named(memory: Any, name: str) -> list[Any]:
    return [span for span in memory.get_finished_spans() if span.name == f"concord.{name}"]


def test_a_run_its_batches_and_its_calls_are_told(judge: JudgeServer, memory: Any) -> None:
    judge.enqueue(actions.text("Prose."))
    run = worked_off(remote_run(judge, 3))
    assert run.state == Run.State.COMPLETED
    (whole,) = named(memory, "run")
    assert dict(whole.attributes) == {"concord.run.id": run.pk}
    batches = {span.attributes["concord.unit.kind"]: span for span in named(memory, "units")}
    assert {kind: span.attributes["concord.units"] for kind, span in batches.items()} == {"rules": 3, "judge": 3}
    assert batches["judge"].parent.span_id == whole.context.span_id
    # rules are done while calls are out
    assert batches["rules"].parent.span_id in {whole.context.span_id, batches["judge"].context.span_id}
    calls = named(memory, "call")
    assert {span.parent.span_id for span in calls} == {batches["judge"].context.span_id}
    told = {(s.attributes["concord.unit.id"], s.attributes["concord.attempt"]) for s in calls}
    assert told == set(Attempt.objects.filter(unit__kind="judge").values_list("unit_id", "number"))
    (bad,) = [span for span in calls if not span.status.is_ok and span.status.description]
    assert (bad.status.description, bad.attributes["concord.outcome"]) == ("parse", "parse")
    good = next(span for span in calls if span is not bad)
    about = dict(good.attributes)
    assert {name: about[name] for name in about if name.startswith(("gen_ai", "http"))} == {
        "gen_ai.request.model": "judge-1",
        "gen_ai.response.model": "judge-1",
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 60,
        "http.response.status_code": 200,
    }
    assert whole.start_time <= good.start_time < good.end_time <= whole.end_time


def test_no_text_and_no_key_is_in_a_span(judge: JudgeServer, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    judge.enqueue(actions.text("Prose."), actions.status(400, body='{"error": {"message": "Bad secret"}}'))
    run = remote_run(judge, 3)
    monkeypatch.setenv("CONCORD_KEY_A", "sk-secret-key")
    type(run.judges.first().judge_version.endpoint).objects.update(key_env="CONCORD_KEY_A")  # type: ignore[union-attr]
    worked_off(run)
    assert judge.requests[0].headers["Authorization"] == "Bearer sk-secret-key"
    whole = "".join(span.to_json() for span in memory.get_finished_spans())
    for text in ("capital", "city", "Prose", "secret", "Scripted reason", judge.origin):
        assert text not in whole


def test_what_the_server_does_not_tell_is_left_out_and_cached_replies_are_no_calls(
    judge: JudgeServer, memory: Any
) -> None:
    judge.otherwise = actions.fitting(usage=None)
    first = remote_run(judge, 2)
    worked_off(first)
    calls = named(memory, "call")
    assert len(calls) == 2
    assert not any("gen_ai.usage.input_tokens" in span.attributes for span in calls)
    worked_off(remote_run(judge, first.answer_set))
    assert len(named(memory, "call")) == 2


def test_what_raises_is_told_by_its_type_alone(memory: Any) -> None:
    with pytest.raises(ValueError), tracing.trace_span("run", {"concord.run.id": 1}):
        raise ValueError("a text of an answer")
    (span,) = named(memory, "run")
    assert span.status.description == "ValueError"
    assert "answer" not in span.to_json()


@pytest.mark.parametrize(
    ("environment", "asked"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, False),
    ],
)
def test_spans_are_off_unless_the_standard_variables_ask_for_them(environment: dict[str, str], asked: bool) -> None:
    assert tracing.is_enabled(environment) is asked


def test_nothing_is_imported_while_they_are_off() -> None:
    code = (
        "import sys, django; django.setup(); import evaluation.runs.execution; from evaluation.worker import tracing;"
        "assert tracing.spans() is None; print([m for m in sys.modules if m.startswith('opentelemetry')])"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    clean["DJANGO_SETTINGS_MODULE"] = "config.settings"
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def fresh() -> Iterator[None]:
    tracing._spans.cache_clear()
    yield
    tracing._spans.cache_clear()


@pytest.mark.usefixtures("fresh")
def test_without_the_extra_the_run_goes_on_and_the_log_says_once_why_there_are_none(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(tracing.log, "warning", said.append)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert worked_off(remote_run(judge, 1)).state == Run.State.COMPLETED
    assert tracing.spans() is None
    (line,) = said
    assert "pip install -e '.[otel]'" in line


class _Receiver(BaseHTTPRequestHandler):
    bodies: list[tuple[str, dict[str, str], bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append((self.path, dict(self.headers), body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.mark.usefixtures("fresh")
def test_a_receiver_on_a_real_socket_gets_the_spans_by_the_end_of_the_workers_turn(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    received: list[tuple[str, dict[str, str], bytes]] = []
    server = HTTPServer(("127.0.0.1", 0), type("Receiver", (_Receiver,), {"bodies": received}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=concord")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    try:
        worked_off(remote_run(judge, 4))
    finally:
        server.shutdown()
        server.server_close()
    assert {path for path, _, _ in received} == {"/v1/traces"}
    assert received[0][1]["x-team"] == "concord"
    names: list[str] = []
    for _, _, body in received:
        for resource in trace_service.ExportTraceServiceRequest.FromString(body).resource_spans:
            about = {one.key: one.value.string_value for one in resource.resource.attributes}
            assert (about["service.name"], about["deployment.environment"]) == ("concord", "test")
            names += [span.name for scope in resource.scope_spans for span in scope.spans]
    assert sorted(names) == ["concord.call"] * 4 + ["concord.run"] + ["concord.units"] * 2
