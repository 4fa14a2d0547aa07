"""Traces as questions and answers: written by the OpenTelemetry SDK, in both conventions, as JSON and protobuf."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrib.traces.otlp import PERSONAL, is_protobuf, mask_pattern, read_trace_parts
from evaluation.core.errors import InvalidFile
from evaluation.formats import streaming
from evaluation.formats.reading import read_answers, read_questions
from tests.hostile_runs import RUNS, assert_linear

common = pytest.importorskip("opentelemetry.exporter.otlp.proto.common.trace_encoder")
json_format = pytest.importorskip("google.protobuf.json_format")
sdk = pytest.importorskip("opentelemetry.sdk.trace")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
api = pytest.importorskip("opentelemetry.trace")
status = pytest.importorskip("opentelemetry.trace.status")

SECOND = 10**9
Tracer = Any


def export_spans(make: Callable[[Tracer], None]) -> tuple[bytes, bytes]:
    """OTLP export of the spans by the SDK, in JSON and in protobuf."""
    return export_provider(lambda provider, _: make(provider.get_tracer("tests")))


def export_provider(make: Callable[[Any, str], None], convention: str = "") -> tuple[bytes, bytes]:
    """OTLP export of spans written with a provider, in JSON and in protobuf."""
    exporter, provider = memory.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    make(provider, convention)
    request = common.encode_spans(exporter.get_finished_spans())
    return json.dumps(json_format.MessageToDict(request)).encode(), request.SerializeToString()


def open_inference(tracer: Tracer) -> None:
    """A chain that retrieves two passages, ranks one first and asks a model."""
    chain = tracer.start_span("rag", start_time=10 * SECOND)
    chain.set_attributes(
        {"openinference.span.kind": "CHAIN", "input.value": "연차는 며칠인가요?", "output.value": "15일."}
    )
    context = __import__("opentelemetry.trace", fromlist=["set_span_in_context"]).set_span_in_context(chain)
    retriever = tracer.start_span("retrieve", context=context, start_time=10 * SECOND)
    retriever.set_attributes(
        {
            "openinference.span.kind": "RETRIEVER",
            "retrieval.documents.0.document.content": "연차는 15일이다.",
            "retrieval.documents.0.document.id": "d1",
            "retrieval.documents.0.document.score": 0.75,
            "retrieval.documents.1.document.content": "Sick leave.",
        }
    )
    retriever.end(end_time=11 * SECOND)
    model = tracer.start_span("llm", context=context, start_time=11 * SECOND)
    model.set_attributes(
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "m-1",
            "llm.token_count.prompt": 12,
            "llm.token_count.completion": 3,
        }
    )
    model.end(end_time=12 * SECOND)
    chain.end(end_time=12 * SECOND + SECOND // 2)


def gen_ai(tracer: Tracer) -> None:
    """A model call alone, by OpenTelemetry's own convention, and one that failed."""
    input_messages = [{"role": "user", "parts": [{"type": "text", "content": "How long may a leave be?"}]}]
    output_messages = [{"role": "assistant", "parts": [{"type": "text", "content": "Fifteen days."}]}]
    span = tracer.start_span("chat m-2", start_time=SECOND)
    span.set_attributes(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.response.model": "m-2",
            "gen_ai.input.messages": json.dumps(input_messages),
            "gen_ai.output.messages": json.dumps(output_messages),
            "gen_ai.usage.input_tokens": 7,
            "gen_ai.usage.output_tokens": 2,
        }
    )
    span.end(end_time=3 * SECOND)
    broken = tracer.start_span("chat m-2", start_time=5 * SECOND)
    broken.set_attribute("gen_ai.input.messages", json.dumps(input_messages).replace("leave", "break"))
    broken.set_status(status.Status(status.StatusCode.ERROR, "timed out"))
    broken.end(end_time=6 * SECOND)


@pytest.mark.parametrize("form", ["json", "lines", "protobuf"])
def test_chain_becomes_an_answer_with_its_passages(form: str) -> None:
    as_json, as_protobuf = export_spans(open_inference)
    data = {"json": as_json, "lines": as_json + b"\n" + b'{"resourceSpans": []}\n', "protobuf": as_protobuf}[form]
    file = read_answers(data, f"traces.{'jsonl' if form == 'lines' else 'json' if form == 'json' else 'pb'}")
    (answer,) = file.answers
    assert (answer.question, answer.answer.text, answer.answer.latency_seconds) == ("연차는 며칠인가요?", "15일.", 2.5)
    first, second = answer.answer.contexts or ()
    assert (first.text, first.chunk_id, first.score) == ("연차는 15일이다.", "d1", 0.75)
    assert (second.text, second.chunk_id) == ("Sick leave.", "")
    assert answer.metadata["model"] == "m-1"
    assert (answer.metadata["tokens_in"], answer.metadata["tokens_out"]) == (12, 3)
    assert len(answer.metadata["otlp_trace_id"]) == 32


ROWS = [
    {
        "question": "연차는 며칠인가요?",
        "answer": "15일.",
        "contexts": [{"text": "연차는 15일이다.", "chunk_id": "d1", "score": 0.75}, {"text": "Sick leave."}],
        "latency_seconds": 2.5,
    },
    {"question": "How long may a leave be?", "answer": 'A "year",\nat most.', "contexts": [], "latency_seconds": 1.0},
    {"question": "없는 규정은?", "error": "timed out", "contexts": None, "latency_seconds": 4.0},
]


def rows_by_openinference(provider: Any, convention: str) -> None:
    """The rows as OpenInference's own package writes them, the question in the chain or in the model's messages."""
    tools = pytest.importorskip("openinference.instrumentation")
    tracer = tools.OITracer(provider.get_tracer("tests"), config=tools.TraceConfig())
    for row in ROWS:
        started = 10 * SECOND
        chain = tracer.start_span("rag", openinference_span_kind="chain", start_time=started)
        within = api.set_span_in_context(chain)
        if convention == "chain":
            chain.set_attributes(tools.get_input_attributes(row["question"]))
            chain.set_attributes(tools.get_output_attributes(row.get("answer", "")))
        if row["contexts"] is not None:
            names = {"text": "content", "chunk_id": "id", "score": "score"}
            documents = [{names[key]: value for key, value in passage.items()} for passage in row["contexts"]]
            span = tracer.start_span("search", openinference_span_kind="retriever", context=within, start_time=started)
            span.set_attributes(tools.get_retriever_attributes(documents=documents))
            span.end(end_time=started + 1)
        model = tracer.start_span("llm", openinference_span_kind="llm", context=within, start_time=started + 1)
        output_messages = [{"role": "assistant", "content": row["answer"]}] if "answer" in row else []
        input_messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": row["question"]}]
        model.set_attributes(
            tools.get_llm_attributes(
                model_name="m-1",
                input_messages=input_messages,
                output_messages=output_messages,
                token_count=tools.TokenCount(prompt=12, completion=3),
            )
        )
        model.end(end_time=started + 2)
        if "error" in row:
            chain.set_status(status.Status(status.StatusCode.ERROR, row["error"]))
        chain.end(end_time=started + int(row["latency_seconds"] * SECOND))


def rows_by_gen_ai(provider: Any, _: str) -> None:
    """The rows by the names that OpenTelemetry's own package has for its GenAI convention."""
    names = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    tracer = provider.get_tracer("tests")
    for row in ROWS:
        chat = tracer.start_span("chat m-1", start_time=10 * SECOND)
        input_messages = [{"role": "user", "parts": [{"type": "text", "content": row["question"]}]}]
        attributes = {
            names.GEN_AI_REQUEST_MODEL: "m-1",
            names.GEN_AI_USAGE_INPUT_TOKENS: 12,
            names.GEN_AI_USAGE_OUTPUT_TOKENS: 3,
        }
        chat.set_attributes({**attributes, names.GEN_AI_INPUT_MESSAGES: json.dumps(input_messages)})
        if "answer" in row:
            output_messages = [{"role": "assistant", "parts": [{"type": "text", "content": row["answer"]}]}]
            chat.set_attribute(names.GEN_AI_OUTPUT_MESSAGES, json.dumps(output_messages))
        if "error" in row:
            chat.set_status(status.Status(status.StatusCode.ERROR, row["error"]))
        if row["contexts"] is not None:
            documents = [
                {"id": c.get("chunk_id"), "content": c["text"], "score": c.get("score")} for c in row["contexts"]
            ]
            chat.set_attribute(names.GEN_AI_RETRIEVAL_DOCUMENTS, json.dumps(documents))
        chat.end(end_time=10 * SECOND + int(row["latency_seconds"] * SECOND))


def test_passages_may_be_structured_attributes() -> None:
    text = {"key": "content", "value": {"stringValue": "Fifteen days."}}
    document_list = {"arrayValue": {"values": [{"kvlistValue": {"values": [text]}}]}}
    attributes = {
        "gen_ai.operation.name": {"stringValue": "retrieval"},
        "gen_ai.retrieval.documents": document_list,
        "input.value": {"stringValue": "How long?"},
        "output.value": {"stringValue": "15"},
    }
    span = {"traceId": "1" * 32, "attributes": [{"key": key, "value": value} for key, value in attributes.items()]}
    data = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    (answer,) = read_answers(data, "traces.json").answers
    assert [context.text for context in answer.answer.contexts or ()] == ["Fifteen days."]


@pytest.mark.parametrize("form", ["traces.json", "traces.pb"])
@pytest.mark.parametrize(
    ("make", "convention"), [(rows_by_openinference, "chain"), (rows_by_openinference, "model"), (rows_by_gen_ai, "")]
)
def test_traces_give_the_answers_of_the_rows(make: Any, convention: str, form: str) -> None:
    data = export_provider(make, convention)[form == "traces.pb"]
    expected_answers = read_answers("".join(json.dumps(row) + "\n" for row in ROWS).encode(), "rows.jsonl").answers
    traced = read_answers(data, form).answers
    assert [(answer.question, answer.answer, answer.error) for answer in traced] == [
        (answer.question, answer.answer, answer.error) for answer in expected_answers
    ]
    assert {
        (answer.metadata["model"], answer.metadata["tokens_in"], answer.metadata["tokens_out"]) for answer in traced
    } == {("m-1", 12, 3)}


def test_single_model_calls_are_answers_and_failures_have_reasons() -> None:
    answer, failed_answer = read_answers(export_spans(gen_ai)[0], "traces.json").answers
    assert (answer.question, answer.answer.text, answer.answer.contexts) == (
        "How long may a leave be?",
        "Fifteen days.",
        None,
    )
    assert answer.metadata["model"] == "m-2"
    assert (failed_answer.question, failed_answer.error) == ("How long may a break be?", "timed out")


@pytest.mark.parametrize("form", ["lines", "protobuf"])
def test_large_trace_files_are_not_read_row_by_row(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(streaming, "SMALL_BYTES", 0)
    as_json, as_protobuf = export_spans(gen_ai)
    data, name = (as_json + b"\n" + as_json, "t.jsonl") if form == "lines" else (as_protobuf, "t.pb")
    rows = list(streaming.AnswerStream(streaming.MemorySource(data), name))
    assert [row.question for row in rows] == ["How long may a leave be?", "How long may a break be?"]


def test_questions_from_traces_are_marked() -> None:
    file = read_questions(export_spans(gen_ai)[0], "traces.json")
    assert [question.text for question in file.questions] == ["How long may a leave be?", "How long may a break be?"]
    assert {question.tags for question in file.questions} == {("from a trace",)}
    assert all(len(question.id) == 32 for question in file.questions)
    assert (file.shape, dict(file.columns)["question"]) == ("OpenTelemetry traces", "question")


def test_secrets_are_masked_and_counted() -> None:
    def write_secrets(tracer: Tracer) -> None:
        span = tracer.start_span("rag", start_time=SECOND)
        span.set_attributes(
            {
                "input.value": "Why is sk-abcdefghijklmnop1234 refused?",
                "output.value": "Authorization: Bearer abcdefghijklmnopqrstuvwx was sent, password=hunter22 too.",
            }
        )
        span.end(end_time=2 * SECOND)

    file = read_answers(export_spans(write_secrets)[0], "traces.json")
    (answer,) = file.answers
    assert answer.question == "Why is [masked] refused?"
    assert answer.answer.text == "Authorization: [masked] was sent, [masked] too."
    assert [remark.params for remark in file.remarks if remark.code == "secrets_masked"] == [{"places": 3}]


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ('{"user": "kim", "password": "hunter \\" 22\'s"}', '{"user": "kim", "password": "[masked]"}'),
        ("{'x-api-key': 'a\\n\"b', 'k': 5}", "{'x-api-key': '[masked]', 'k': 5}"),
        (
            json.dumps({"q": json.dumps({"client_secret": "s3", "k": 5})}),
            r'{"q": "{\"client_secret\": \"[masked]\", \"k\": 5}"}',
        ),
        ('{"passwords_allowed": "three"}', '{"passwords_allowed": "three"}'),
    ],
)
def test_secrets_in_json_within_a_text_are_masked(text: str, expected_text: str) -> None:
    def write_secrets(tracer: Tracer) -> None:
        span = tracer.start_span("rag", start_time=SECOND)
        span.set_attributes({"input.value": "Why?", "output.value": text, "db.password": "hunter22"})
        span.end(end_time=2 * SECOND)

    data = export_spans(write_secrets)[0]
    (answer,) = read_answers(data, "traces.json").answers
    assert answer.answer.text == expected_text
    parts, _lost = read_trace_parts(data, "traces.json")
    assert "hunter" not in str([part.content for part in parts])


def test_invalid_protobuf_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (b"\n\xff\xff\xff\xff\x0f", b"\n\x05\xff\xfe\x00"):
        with pytest.raises(InvalidFile):
            read_answers(data, "traces.pb")
    assert not is_protobuf(b'\n\n{"resourceSpans": []}')
    assert not is_protobuf(b'{"resourceSpans": []}')


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=6),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["resourceSpans", "scopeSpans", "spans", "attributes", "key", "value", "traceId", "status"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=15,
    )
)
def test_any_trace_like_data_is_read_or_refused(spans: Any) -> None:
    with suppress(InvalidFile):
        read_answers(json.dumps({"resourceSpans": spans}).encode(), "traces.json")


@pytest.mark.parametrize("span", ["text", 3, [], {"attributes": 5}, {"attributes": [{"value": {"arrayValue": 1}}]}])
def test_spans_of_another_form_are_refused(span: Any) -> None:
    payload = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    with pytest.raises(InvalidFile):
        read_answers(json.dumps(payload).encode(), "traces.json")


def test_snake_case_names_conversations_and_failures_are_read() -> None:
    def span(name: str, number: int, **fields: Any) -> dict[str, Any]:
        return {"trace_id": "0a", "span_id": f"0{number}", "name": name, "start_time_unix_nano": 9 - number} | fields

    attributes = {"input.value": "q?", "gen_ai.conversation.id": "c7"}
    root = span("chain", 1, attributes=[{"key": key, "value": {"string_value": of}} for key, of in attributes.items()])
    root |= {"status": {"code": "STATUS_CODE_ERROR"}}
    passage = [{"key": "retrieval.documents.0.document.content", "value": {"string_value": "p"}}]
    kind = [{"key": "openinference.span.kind", "value": {"string_value": "RETRIEVER"}}]
    child = span("retrieve", 2, parent_span_id="01", attributes=passage + kind)
    file = {"resource_spans": [{"scope_spans": [{"spans": [root, child]}]}]}
    (row,) = read_answers(json.dumps(file).encode(), "t.json").answers
    assert (row.question, row.error, row.metadata["session"]) == ("q?", "error", "c7")
    assert [context.text for context in row.answer.contexts or ()] == ["p"]


def test_last_ranking_gives_the_passages_of_the_model() -> None:
    def passages(kind: str, *texts: str) -> list[dict[str, Any]]:
        names = [f"{kind}.{position}.document.content" for position in range(len(texts))]
        return [{"key": name, "value": {"stringValue": text}} for name, text in zip(names, texts, strict=True)]

    root_attributes = [
        {"key": "input.value", "value": {"stringValue": "q?"}},
        {"key": "output.value", "value": {"stringValue": "a"}},
    ]
    spans = [
        {"attributes": root_attributes},
        {"parentSpanId": "00", "attributes": passages("retrieval.documents", "one", "two", "three")},
        {"parentSpanId": "00", "attributes": passages("reranker.output_documents", "three", "one")},
    ]
    about = [{"traceId": "0a", "spanId": f"0{n}", "startTimeUnixNano": n + 1} | entry for n, entry in enumerate(spans)]
    file = {"resourceSpans": [{"scopeSpans": [{"spans": about}]}]}
    (row,) = read_answers(json.dumps(file).encode(), "t.json").answers
    assert [entry.text for entry in row.answer.contexts or ()] == ["three", "one"]


@pytest.mark.parametrize("run", ["-eyJaaaaaaaa", "sk-", "bearer ", "key ", "'password", "eyJaaaaaaaa."])
def test_long_runs_like_secrets_are_scanned_once(run: str) -> None:
    """A pattern that scans a run from each of its beginnings takes minutes for these."""
    text = run * (300_000 // len(run))
    assert isinstance(mask_pattern([]).sub("", text), str)


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_time_of_masking_grows_with_the_length_of_the_text(run: str) -> None:
    pattern = mask_pattern([*PERSONAL, "ab-#*"])
    assert_linear(lambda text: pattern.sub("", text), RUNS[run])
