"""Traces received by OTLP or from a file become a question set and its answers: complete, masked, sampled."""

from __future__ import annotations

import gzip
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from contrib.traces.importing import Sampling, import_received, import_traces, pending_traces, store_received
from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.models import Answer, ImportBatch, Project, Question, Run
from tests.evaluation.rest.clients import API, Caller, token_for, viewer
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db
ADDRESS = "otlp/v1/traces"


def span(trace: int, name: str = "rag", parent: str = "", **values: str) -> dict[str, Any]:
    attributes = [{"key": key.replace("_", "."), "value": {"stringValue": value}} for key, value in values.items()]
    span_fields = {"traceId": f"{trace:032x}", "spanId": f"{trace:08x}{len(name):08x}", "name": name}
    times = {"startTimeUnixNano": "1000000000", "endTimeUnixNano": str((1 + trace) * 10**9)}
    return {**span_fields, **times, "parentSpanId": parent, "attributes": attributes}


def request(*spans: dict[str, Any], service: str = "my-rag") -> bytes:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}).encode()


def question_span(trace: int, question: str = "How long may a leave be?") -> dict[str, Any]:
    return span(trace, input_value=question, output_value=f"{trace} days.")


@pytest.fixture
def project() -> Project:
    return make_project()


def test_received_traces_wait_and_become_answers_once(project: Project) -> None:
    store_received(project, request(question_span(1), question_span(2)), None)
    store_received(project, request(span(3, "GET /health")), None)  # asks nothing
    (pending,) = pending_traces(project)
    assert (pending["system"], pending["traces"]) == ("my-rag", 3)
    with pytest.raises(DomainError, match="no_traces"):  # a span may still come
        import_received(project, "my-rag")
    with pytest.raises(DomainError, match="no_traces"):
        import_received(project, "another", quiet_seconds=0)
    result = import_received(project, "my-rag", quiet_seconds=0)
    run = result.answers.run
    assert (result.read, str(run.answer_set.question_set), run.answer_set.system_version.system.name) == (
        *(2, "my-rag traces v1"),
        "my-rag",
    )
    rows = Answer.objects.order_by("question__external_id").values_list("question__text", "text", "latency_seconds")
    assert list(rows) == [("How long may a leave be?", "1 days.", 1.0), ("How long may a leave be?", "2 days.", 2.0)]
    assert {question.read().tags for question in Question.objects.all()} == {("from a trace",)}
    assert pending_traces(project) == []
    assert not any(bytes(batch.content) for batch in ImportBatch.objects.all())
    with pytest.raises(DomainError, match="no_traces"):
        import_received(project, "my-rag", quiet_seconds=0)


def test_spans_of_a_trace_may_come_in_several_requests_and_services(project: Project) -> None:
    attributes = {"retrieval_documents_0_document_content": "Fifteen days.", "openinference_span_kind": "RETRIEVER"}
    root = question_span(1)
    store_received(
        project, request(span(1, "retrieve", parent=root["spanId"], **attributes), service="retriever"), None
    )
    store_received(project, request(root), None)
    assert [row["system"] for row in pending_traces(project)] == ["my-rag", "retriever"]
    import_received(project, "my-rag", quiet_seconds=0)
    assert [context.text for context in Answer.objects.get().contexts.all()] == ["Fifteen days."]
    assert pending_traces(project) == []


def test_trace_that_still_receives_spans_waits(project: Project) -> None:
    store_received(project, request(question_span(1), question_span(2)), None)
    ImportBatch.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    store_received(project, request(span(2, "late")), None)
    assert import_received(project, "my-rag").read == 1
    assert pending_traces(project)[0]["traces"] == 1


def test_secrets_are_masked_before_storage(project: Project) -> None:
    store_received(project, request(question_span(1, "Why does sk-abcdefghijklmnop1234 fail?")), None)
    assert b"abcdefghijklmnop1234" not in bytes(ImportBatch.objects.get().content)


SECRETS = ("sk-abcdefghijklmnop1234", "kim@uni.ac.kr", "010-1234-5678", "900101-1234567", "4111 1111 1111 1111")


def stored_bytes() -> bytes:
    """Content of every table."""
    values: list[bytes] = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            for value in (value for row in cursor.fetchall() for value in row):
                values.append(bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode())
    return b"\n".join(values)


def test_database_never_stores_received_secrets_or_personal_data(project: Project) -> None:
    attributes = {
        "retrieval_documents_0_document_content": f"Call {SECRETS[2]}.",
        "user_id": SECRETS[1],
        "note": SECRETS[4],
    }
    entry = span(
        1, f"chat of {SECRETS[1]}", input_value=f"Is {SECRETS[3]} mine? {SECRETS[0]}", output_value="Yes.", **attributes
    )
    entry |= {
        "spanId": SECRETS[1],
        "events": [{"name": "error", "attributes": [{"key": "k", "value": {"stringValue": SECRETS[0]}}]}],
    }
    digits = span(2, input_value="How long?", output_value="Long.") | {"spanId": "4111111111111111"}
    store_received(project, request(entry, service=f"rag of {SECRETS[1]}"), None)
    store_received(project, request(digits), None)
    for attempt in range(2):  # while they wait, and when they are imported
        content = stored_bytes()
        assert b"[masked]" in content
        assert not [entry for entry in SECRETS if entry.encode() in content]
        assert b"4111111111111111" in content or attempt  # an id of sixteen digits is no card
        for system in [entry["system"] for entry in pending_traces(project)]:
            import_received(project, system, quiet_seconds=0)
    assert {answer.question.text for answer in Answer.objects.all()} == {"Is [masked] mine? [masked]", "How long?"}


def test_later_masks_apply_to_waiting_traces_and_are_set_by_the_operator(project: Project, settings: Any) -> None:
    settings.CONCORD_TRACE_MASKS = []
    store_received(project, request(question_span(1, "May EMP-1234, kim@uni.ac.kr, leave?")), None)
    assert b"kim@uni.ac.kr" in bytes(ImportBatch.objects.get().content)
    settings.CONCORD_TRACE_MASKS = ["email"]
    import_received(project, "my-rag", sampling=Sampling(masks=("EMP-####",)), quiet_seconds=0)
    assert Question.objects.get().text == "May [masked], [masked], leave?"


def test_unimported_traces_are_deleted_after_a_day(project: Project) -> None:
    store_received(project, request(question_span(1)), None)
    ImportBatch.objects.update(created_at=timezone.now() - timedelta(days=1, seconds=1))
    store_received(project, request(question_span(2)), None)
    assert pending_traces(project)[0]["traces"] == 1


def test_rules_take_every_match_and_the_rate_samples_the_others(project: Project) -> None:
    data = request(*(question_span(n) for n in range(1, 201)))
    sampled_answers = import_traces(
        project, "s", data, name="a", sampling=Sampling(0.25)
    ).answers.run.answer_set.answers
    assert 30 <= sampled_answers.count() <= 70  # 50 expected, 3 standard errors
    repeated = import_traces(project, "s", data, name="a", sampling=Sampling(0.25))
    assert not repeated.answers.created  # the same ones
    slow = import_traces(project, "s", data, name="b", sampling=Sampling(0, ("latency_seconds > `190`",)))
    assert (slow.read, slow.answers.run.answer_set.answers.count()) == (200, 10)
    with pytest.raises(DomainError, match="no_traces"):
        import_traces(project, "s", data, sampling=Sampling(0, ("error != ''",)))
    with pytest.raises(DomainError, match="rule_invalid"):
        Sampling(0, ("error !=",))


def test_exporter_sends_with_a_token(project: Project) -> None:
    caller = Caller(Role.EVALUATOR, project)
    response = caller.send(ADDRESS, request(question_span(1)))
    assert (response.status_code, response.json()) == (200, {})
    invalid_span = span(0) | {"traceId": "x"}
    assert caller.send(ADDRESS, request(invalid_span)).json() == {"partialSuccess": {"rejectedSpans": "1"}}
    packed = gzip.compress(request(question_span(2)))
    for body, status in ((packed, 200), (b"no gzip", 400), (packed[:-9], 400)):
        reply = caller.client.generic("POST", API + ADDRESS, body, "application/json", HTTP_CONTENT_ENCODING="gzip")
        assert reply.status_code == status
    assert [caller.send(ADDRESS, body).status_code for body in (b"{]", b"")] == [400, 400]
    keyed = caller.client.generic("POST", API + ADDRESS, b"\n\x00", "application/x-protobuf", HTTP_IDEMPOTENCY_KEY="k")
    assert (keyed.status_code, list(keyed.json()["errors"])) == (400, ["Idempotency-Key"])
    assert viewer(project).send(ADDRESS, request(question_span(3))).status_code == 400  # may import into no project
    assert Caller(Role.EVALUATOR, project, "read").send(ADDRESS, request(question_span(3))).status_code == 403
    assert caller.client.post(API + ADDRESS + "?project=999999", {}, format="json").status_code == 404
    assert caller.get("traces/").json()[0]["traces"] == 2


def test_protobuf_request_gets_a_protobuf_response(project: Project) -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    from google.protobuf.json_format import ParseDict

    caller = Caller(Role.EVALUATOR, project)
    payload = json.loads(request(question_span(1), question_span(2)))
    for span_json in payload["resourceSpans"][0]["scopeSpans"][0]["spans"]:  # protobuf's ids are bytes
        span_json["traceId"], span_json["spanId"] = (
            "AAAAAAAAAAAAAAAAAAAAAQ==" if span_json["name"] else "",
            "AAAAAAAAAAE=",
        )
        del span_json["parentSpanId"]
    payload["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["traceId"] = ""
    body = ParseDict(payload, service.ExportTraceServiceRequest()).SerializeToString()
    reply = caller.send(ADDRESS, body, "application/x-protobuf")
    assert (reply.status_code, reply["Content-Type"]) == (200, "application/x-protobuf")
    response = service.ExportTraceServiceResponse.FromString(reply.content)
    assert response.partial_success.rejected_spans == 1
    assert pending_traces(project)[0]["traces"] == 1


def test_rest_imports_waiting_traces(project: Project) -> None:
    caller = Caller(Role.EVALUATOR, project)
    caller.send(ADDRESS, request(question_span(1)))
    assert caller.post("traces/", {"system": "my-rag"}).status_code == 409
    assert caller.post("traces/", {"system": "my-rag", "quiet_seconds": 0, "rules": ["a b"]}).status_code == 409
    response = caller.post("traces/", {"system": "my-rag", "quiet_seconds": 0, "questions": "week 3"})
    assert response.status_code == 201, response.content
    assert (response.json()["answer_set"]["answers"], response.json()["run"]["status"]) == (1, Run.State.COMPLETED)


def test_commands_import_a_file_or_waiting_traces(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "traces.json"
    file.write_bytes(request(question_span(1), question_span(2)))
    output = io.StringIO()
    options = ["--project", project.name, "--system", "my-rag", "--format", "json"]
    call_command(
        "import_traces", str(file), *options, "--rule", "latency_seconds > `1.5`", "--rate", "0", stdout=output
    )
    report = json.loads(output.getvalue())
    assert (report["read"], Answer.objects.count(), report["status"]) == (2, 1, Run.State.COMPLETED)
    with pytest.raises(CommandError, match="my-rag"):
        call_command("import_traces", *options, "--quiet", "0")
    store_received(project, request(question_span(3)), None)
    call_command("import_traces", *options, "--quiet", "0", stdout=io.StringIO())
    assert Answer.objects.count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("compressed", [False, True])
def test_opentelemetry_exporter_sends_openinference_traces(live_server: Any, compressed: bool) -> None:
    otlp = pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    exporting = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    otlp_tests = pytest.importorskip("contrib.traces.tests.test_otlp")
    resources = pytest.importorskip("opentelemetry.sdk.resources")
    project = make_project()
    exporter = exporting.OTLPSpanExporter(
        endpoint=f"{live_server.url}{API}{ADDRESS}",
        headers={"Authorization": f"Bearer {token_for(make_user(Role.EVALUATOR, project), project)}"},
        compression=otlp.Compression.Gzip if compressed else otlp.Compression.NoCompression,
    )
    provider = otlp_tests.sdk.TracerProvider(resource=resources.Resource({"service.name": "my-rag"}))
    provider.add_span_processor(otlp_tests.export.BatchSpanProcessor(exporter))
    otlp_tests.rows_by_openinference(provider, "chain")
    assert provider.force_flush()
    provider.shutdown()
    (pending,) = pending_traces(project)
    assert (pending["system"], pending["traces"]) == ("my-rag", 3)
    answers = import_received(project, "my-rag", quiet_seconds=0).answers.run.answer_set.answers.all()
    assert sorted(answers.values_list("question__text", "text")) == sorted(
        (row["question"], row.get("answer", "")) for row in otlp_tests.ROWS
    )
