"""Trace spans: their attributes, and texts that they never contain, in memory and over a real socket."""

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
from tests.evaluation.runs.remote import remote_run, start_and_drain
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
def span_exporter(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The SDK's in-memory span exporter."""
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setattr(tracing, "_spans", lambda: tracing.Spans(provider))
    return exporter


def spans_named(span_exporter: Any, name: str) -> list[Any]:
    return [span for span in span_exporter.get_finished_spans() if span.name == f"concord.{name}"]


def test_spans_exist_for_run_batches_and_calls(judge: JudgeServer, span_exporter: Any) -> None:
    judge.enqueue(actions.text("Prose."))
    run = start_and_drain(remote_run(judge, 3))
    assert run.state == Run.State.COMPLETED
    (run_span,) = spans_named(span_exporter, "run")
    assert dict(run_span.attributes) == {"concord.run.id": run.pk}
    batches = {span.attributes["concord.unit.kind"]: span for span in spans_named(span_exporter, "units")}
    assert {kind: span.attributes["concord.units"] for kind, span in batches.items()} == {"rules": 3, "judge": 3}
    assert batches["judge"].parent.span_id == run_span.context.span_id
    # rules are done while calls are out
    assert batches["rules"].parent.span_id in {run_span.context.span_id, batches["judge"].context.span_id}
    calls = spans_named(span_exporter, "call")
    assert {span.parent.span_id for span in calls} == {batches["judge"].context.span_id}
    attempts = {(s.attributes["concord.unit.id"], s.attributes["concord.attempt"]) for s in calls}
    assert attempts == set(Attempt.objects.filter(unit__kind="judge").values_list("unit_id", "number"))
    (failed_call,) = [span for span in calls if not span.status.is_ok and span.status.description]
    assert (failed_call.status.description, failed_call.attributes["concord.outcome"]) == ("parse", "parse")
    ok_call = next(span for span in calls if span is not failed_call)
    attributes = dict(ok_call.attributes)
    assert {name: attributes[name] for name in attributes if name.startswith(("gen_ai", "http"))} == {
        "gen_ai.request.model": "judge-1",
        "gen_ai.response.model": "judge-1",
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 60,
        "http.response.status_code": 200,
    }
    assert run_span.start_time <= ok_call.start_time < ok_call.end_time <= run_span.end_time


def test_spans_contain_no_text_and_no_key(
    judge: JudgeServer, span_exporter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge.enqueue(actions.text("Prose."), actions.status(400, body='{"error": {"message": "Bad secret"}}'))
    run = remote_run(judge, 3)
    monkeypatch.setenv("CONCORD_KEY_A", "sk-secret-key")
    type(run.judges.first().judge_version.endpoint).objects.update(key_env="CONCORD_KEY_A")  # type: ignore[union-attr]
    start_and_drain(run)
    assert judge.requests[0].headers["Authorization"] == "Bearer sk-secret-key"
    all_spans = "".join(span.to_json() for span in span_exporter.get_finished_spans())
    for text in ("capital", "city", "Prose", "secret", "Scripted reason", judge.origin):
        assert text not in all_spans


def test_unknown_usage_is_omitted_and_cached_replies_have_no_span(judge: JudgeServer, span_exporter: Any) -> None:
    judge.otherwise = actions.valid_reply(usage=None)
    first_run = remote_run(judge, 2)
    start_and_drain(first_run)
    calls = spans_named(span_exporter, "call")
    assert len(calls) == 2
    assert not any("gen_ai.usage.input_tokens" in span.attributes for span in calls)
    start_and_drain(remote_run(judge, first_run.answer_set))
    assert len(spans_named(span_exporter, "call")) == 2


def test_exception_is_recorded_only_by_type(span_exporter: Any) -> None:
    with pytest.raises(ValueError), tracing.trace_span("run", {"concord.run.id": 1}):
        raise ValueError("a text of an answer")
    (span,) = spans_named(span_exporter, "run")
    assert span.status.description == "ValueError"
    assert "answer" not in span.to_json()


@pytest.mark.parametrize(
    ("environment", "expected"),
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
def test_tracing_is_off_unless_enabled_by_standard_variables(environment: dict[str, str], expected: bool) -> None:
    assert tracing.is_enabled(environment) is expected


@pytest.mark.slow
def test_opentelemetry_is_not_imported_while_tracing_is_off() -> None:
    code = (
        "import sys, django; django.setup(); import evaluation.runs.execution; from evaluation.worker import tracing;"
        "assert tracing.spans() is None; print([m for m in sys.modules if m.startswith('opentelemetry')])"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    clean["DJANGO_SETTINGS_MODULE"] = "config.settings"
    process = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


@pytest.fixture
def fresh_tracer() -> Iterator[None]:
    tracing._spans.cache_clear()
    yield
    tracing._spans.cache_clear()


@pytest.mark.usefixtures("fresh_tracer")
def test_run_without_the_otel_extra_logs_one_warning(judge: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(tracing.log, "warning", warnings.append)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert start_and_drain(remote_run(judge, 1)).state == Run.State.COMPLETED
    assert tracing.spans() is None
    (line,) = warnings
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


@pytest.mark.usefixtures("fresh_tracer")
def test_receiver_gets_the_spans_by_the_end_of_a_turn(judge: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    received: list[tuple[str, dict[str, str], bytes]] = []
    server = HTTPServer(("127.0.0.1", 0), type("Receiver", (_Receiver,), {"bodies": received}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=concord")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    try:
        start_and_drain(remote_run(judge, 4))
    finally:
        server.shutdown()
        server.server_close()
    assert {path for path, _, _ in received} == {"/v1/traces"}
    assert received[0][1]["x-team"] == "concord"
    names: list[str] = []
    for _, _, body in received:
        for resource in trace_service.ExportTraceServiceRequest.FromString(body).resource_spans:
            attributes = {attribute.key: attribute.value.string_value for attribute in resource.resource.attributes}
            assert (attributes["service.name"], attributes["deployment.environment"]) == ("concord", "test")
            names += [span.name for scope in resource.scope_spans for span in scope.spans]
    assert sorted(names) == ["concord.call"] * 4 + ["concord.run"] + ["concord.units"] * 2
