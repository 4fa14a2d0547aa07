"""Converts OpenTelemetry traces to records, one a trace: question, answer, contexts, latency, model and tokens.

Supports the span conventions of OpenInference and of OpenTelemetry's GenAI, from OTLP as JSON (a document, or one batch
a line) or protobuf. Secrets are masked before anything else reads the data. This module does not import Django."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.core.errors import Problem
from evaluation.formats.reading import FileFormat, display_name, read_file_tree
from evaluation.formats.record_formats import RecordFormat
from evaluation.formats.text_trees import feed
from evaluation.formats.tree import MAX_BYTES, FileTree, Limits, Node, NodeKind, Problems, TreeBuilder, plain_value

MASKED = "[masked]"
#: Optional masks by name, in addition to secrets.
PERSONAL = {
    "email": r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}",
    "phone": r"(?<![\w-])(?:\+82[- ]?|0)\d{1,2}[- ]?\d{3,4}[- ]?\d{4}(?![\w-])",
    "resident_number": r"(?<![\w-])\d{6}-[1-8]\d{6}(?![\w-])",
    "card": r"(?<![\w-])\d{4}(?:[- ]?\d{4}){3}(?![\w-])",
}
# OpenTelemetry's default service name.
UNKNOWN_SERVICE = "unknown_service"
_SECRET_NAMES = "password|passwd|secret|api[_-]?key|access[_-]?token"
_SECRETS = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|concord)[-_][A-Za-z0-9_-]{16,}|\bAKIA[0-9A-Z]{16}\b"
    r"|(?i:\bbearer\s+[A-Za-z0-9._~+/-]{16,}=*)|\beyJ[\w-]{8,500}\.[\w-]{8,}\.[\w-]{8,}"
    rf"|(?i:\b(?:{_SECRET_NAMES})\b\s*[=:]\s*[^\s\"',;]{{6,}})"
    # Secrets in JSON within a text, at any level of quoting. Name and quotes stay, so that the text remains valid JSON.
    rf"|(?P<prefix>(?i:[\"'][\w.-]{{0,60}}(?:{_SECRET_NAMES}|authorization)\\*[\"']\s*:\s*\\*))"
    r"(?:(?<!\\)(?:\"(?:[^\"\\]|\\[\s\S])+|'(?:[^'\\]|\\[\s\S])+)|(?<=\\)(?:\"(?:[^\"\\]|\\(?!\"))+|'(?:[^'\\]|\\(?!'))+))"
)
_SECRET_NAME = re.compile(rf"(?i:[\w.-]*(?:{_SECRET_NAMES}|authorization))")
_BATCH_KEYS = ("resourceSpans", "resource_spans")
_SCOPE_KEYS = ("scopeSpans", "scope_spans")
#: Fields of a span with digits that look like a card number, and the form in which they are not masked.
_UNMASKED_FIELDS = re.compile(r"(?:trace|span|parent_?span)_?id|(?:start|end)_?time_?unix_?nano", re.IGNORECASE)
_ID = re.compile(r"[A-Za-z0-9+/]{1,32}={0,2}")
_QUESTION_KEYS = ("question", "query", "input", "user_input", "prompt")
_ANSWER_KEYS = ("answer", "output", "response", "result", "text", "content")
_DOCUMENT = re.compile(r"(retrieval\.documents|reranker\.output_documents)\.(\d+)\.document\.(content|id|score)")
_MESSAGE = re.compile(r"llm\.(input|output)_messages\.(\d+)\.message\.(role|content)")


def is_protobuf(data: bytes) -> bool:
    """Return whether the bytes may be traces in protobuf: they start like such and are no text."""
    if data[:1] != b"\n":
        return False
    try:
        return data.decode("utf-8").lstrip()[:1] not in {"{", "["}
    except UnicodeDecodeError:
        return True


def protobuf_to_json(data: bytes, problems: Problems) -> bytes:
    """Convert traces in protobuf to JSON.

    :raises InvalidFile: ``traces_need_otel`` without the extra ``otel``; ``traces_damaged``."""
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError:
        problems.stop("traces_need_otel")
    try:
        message = MessageToDict(TracesData.FromString(data))
    except (DecodeError, ValueError, RecursionError):
        problems.stop("traces_damaged")
    return json.dumps(message).encode()


def to_json(data: bytes, problems: Problems) -> bytes:
    """Convert traces in protobuf to JSON; return other files unchanged."""
    return protobuf_to_json(data, problems) if is_protobuf(data) else data


def may_hold_traces(head: bytes) -> bool:
    """Return whether a file that starts with ``head`` may hold traces."""
    return is_protobuf(head) or any(name.encode() in head for name in _BATCH_KEYS)


def protobuf_response(rejected: int) -> bytes:
    """Encode OTLP's response in protobuf, with the number of rejected spans. Needs the extra ``otel``."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.rejected_spans = rejected
    body: bytes = response.SerializeToString()
    return body


def mask_pattern(masks: Sequence[str]) -> re.Pattern[str]:
    """Build the pattern of masked texts: secrets, and ``masks``.

    A mask is a name of :data:`PERSONAL` or a custom pattern, in which ``#`` is a digit and ``*`` at the end the rest of
    a word."""
    parts = [_SECRETS.pattern]
    for mask in filter(None, masks):
        start = re.escape(mask.removesuffix("*")).replace(r"\#", r"\d")
        parts.append(PERSONAL.get(mask) or start + (r"\S+" if mask.endswith("*") else ""))
    return re.compile("|".join(parts))


def replace_with_records(tree: FileTree, problems: Problems) -> FileTree:
    """Replace a tree of traces by one record a trace; return other trees unchanged."""
    if not (rows := trace_records(tree, problems)):
        return tree
    return tree._replace(root=Node(NodeKind.LIST, [_to_node(row, line) for line, row in enumerate(rows, 1)], 1))


def trace_records(tree: FileTree, problems: Problems, masks: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return a record for each trace, with the names of the trace shape; empty if the file holds no traces.

    For ``masks`` see :func:`mask_pattern`."""
    batches = [batch for part in _root_nodes(tree.root) for batch in _list_member(part, *_BATCH_KEYS)]
    traces: dict[str, list[dict[str, Any]]] = {}
    for batch in batches:
        for scope in _list_member(batch, *_SCOPE_KEYS):
            for span in _list_member(scope, "spans"):
                parsed = _parse_span(span)
                traces.setdefault(parsed["trace"], []).append(parsed)
    pattern, count = mask_pattern(masks), [0]
    rows = [
        {**_mask_content(_build_record(spans), pattern, count), "otlp_trace_id": trace}
        for trace, spans in traces.items()
    ]
    if count[0]:
        problems.remark("secrets_masked", places=count[0])
    return rows


RECORDS = RecordFormat(to_json, may_hold_traces, replace_with_records, Path(__file__).with_name("otlp.yaml"))


def read_trace_parts(
    data: bytes, name: str, *, masks: Sequence[str] = (), max_bytes: int = MAX_BYTES
) -> tuple[list[TracePart], int]:
    """Parse an OTLP request into parts by service and trace; also returns the number of spans without a trace.

    For ``masks`` see :func:`mask_pattern`.

    :raises InvalidFile: for neither OTLP JSON nor protobuf."""
    return split_by_trace(_read_tree(data, Problems(display_name(name)), max_bytes).root, masks)


def read_trace_records(
    data: bytes, name: str, *, masks: Sequence[str] = (), max_bytes: int = MAX_BYTES
) -> tuple[bytes, list[Problem]]:
    """Convert a file of traces to JSON lines, one a trace, readable as questions and as answers; also returns remarks.

    For ``masks`` see :func:`mask_pattern`.

    :raises InvalidFile: ``traces_none``, and every problem of the file."""
    problems = Problems(display_name(name))
    if not (rows := trace_records(_read_tree(data, problems, max_bytes), problems, masks)):
        problems.stop("traces_none")
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode(), list(problems.remarks)


def _read_tree(data: bytes, problems: Problems, max_bytes: int) -> FileTree:
    tree = read_file_tree(data, problems, (FileFormat.JSON, FileFormat.JSONL), max_bytes)
    problems.refuse_if_any()
    return tree


@dataclass(frozen=True, slots=True)
class TracePart:
    """The spans of one trace in a request.

    ``content`` is masked OTLP JSON with these spans only; ``service`` is the resource's service name, or
    ``unknown_service``."""

    service: str
    trace: str
    content: dict[str, Any]
    spans: int


def split_by_trace(root: Node, masks: Sequence[str] = ()) -> tuple[list[TracePart], int]:
    """Split an OTLP request by service and trace; also returns the number of spans without a trace id.

    For ``masks`` see :func:`mask_pattern`; ids and times are not masked."""
    pattern = mask_pattern(masks)
    spans_by_trace: dict[tuple[str, str], list[dict[str, Any]]] = {}
    rejected = 0
    for batch in (batch for part in _root_nodes(root) for batch in _list_member(part, *_BATCH_KEYS)):
        batch_content = plain_value(batch)
        resource = batch_content.get("resource") if isinstance(batch_content, dict) else None
        service_name = _attributes(resource if isinstance(resource, dict) else {}).get("service.name") or ""
        service = str(_mask_content(str(service_name), pattern, [0]))
        for span in (span for scope in _list_member(batch, *_SCOPE_KEYS) for span in _list_member(scope, "spans")):
            span_content = plain_value(span)
            trace = (
                _hex_id(span_content.get("traceId") or span_content.get("trace_id"))
                if isinstance(span_content, dict)
                else ""
            )
            if not re.fullmatch(r"[0-9a-f]{32}", trace) or not isinstance(span_content, dict):
                rejected += 1
                continue
            masked_span = {
                name: value
                if _UNMASKED_FIELDS.fullmatch(name) and _ID.fullmatch(str(value))
                else _mask_content(value, pattern, [0])
                for name, value in span_content.items()
            }
            spans_by_trace.setdefault((service.strip() or UNKNOWN_SERVICE, trace), []).append(masked_span)
    parts = [
        TracePart(service, trace, {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, len(spans))
        for (service, trace), spans in spans_by_trace.items()
    ]
    return parts, rejected


def _root_nodes(root: Node) -> list[Node]:
    return root.elements if root.kind is NodeKind.LIST else [root]


def _list_member(node: Node, *names: str) -> list[Node]:
    return next((node.entries[name].elements for name in names if name in node.entries), [])


def _parse_span(node: Node) -> dict[str, Any]:
    """Parse a span with its attributes as plain values by name."""
    content = plain_value(node)
    fields: dict[str, Any] = content if isinstance(content, dict) else {}
    start_time, end_time = (_nanoseconds(fields, name) for name in ("start", "end"))
    status = next(iter(_dicts([fields.get("status")])), {})
    attributes = _attributes(fields)
    for event in _dicts(fields.get("events")):
        attributes = _attributes(event) | attributes
    return {
        "trace": _hex_id(fields.get("traceId") or fields.get("trace_id")),
        "span": _hex_id(fields.get("spanId") or fields.get("span_id")),
        "parent": _hex_id(fields.get("parentSpanId") or fields.get("parent_span_id")),
        "name": str(fields.get("name") or ""),
        "begun": start_time,
        "seconds": (end_time - start_time) / 1e9 if end_time >= start_time > 0 else None,
        "error": str(status.get("message") or "error") if str(status.get("code")) in {"2", "STATUS_CODE_ERROR"} else "",
        "attributes": attributes,
    }


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [member for member in value if isinstance(member, dict)] if isinstance(value, list) else []


def _attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(attribute.get("key")): _attribute_value(attribute.get("value"))
        for attribute in _dicts(fields.get("attributes"))
    }


def _hex_id(value: Any) -> str:
    """Return an id in hexadecimal; ids from protobuf are in base64."""
    text = str(value or "")
    if len(text) in {12, 24} and not re.fullmatch(r"[0-9a-fA-F]+", text):
        try:
            return b64decode(text, validate=True).hex()
        except ValueError:
            return text
    return text.lower()


def _nanoseconds(fields: Mapping[str, Any], side: str) -> int:
    text = str(fields.get(f"{side}TimeUnixNano") or fields.get(f"{side}_time_unix_nano") or 0)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _attribute_value(typed_value: Any) -> Any:
    """Return the value of an attribute from the field named by its type."""
    if not isinstance(typed_value, dict) or not typed_value:
        return None
    kind, value = next(iter(typed_value.items()))
    if kind.lower() in {"intvalue", "int_value"}:
        return int(value) if re.fullmatch(r"-?\d{1,18}", str(value)) else None
    if kind.lower() in {"arrayvalue", "array_value"}:
        return [_attribute_value(member) for member in _dicts(value.get("values"))] if isinstance(value, dict) else []
    if kind.lower() in {"kvlistvalue", "kvlist_value"}:
        return _attributes({"attributes": value.get("values")}) if isinstance(value, dict) else {}
    return value


def _build_record(spans: list[dict[str, Any]]) -> dict[str, Any]:
    """Build the record of a trace from its spans, without the trace id."""
    span_ids = {span["span"] for span in spans}
    ordered = sorted(spans, key=lambda span: span["begun"])
    root = next((span for span in ordered if span["parent"] not in span_ids or not span["parent"]), ordered[0])
    attributes = root["attributes"]
    question = _plain_text(attributes.get("input.value"), _QUESTION_KEYS) or _last_message(
        attributes, "input", "gen_ai.input.messages"
    )
    answer = _plain_text(attributes.get("output.value"), _ANSWER_KEYS) or _last_message(
        attributes, "output", "gen_ai.output.messages"
    )
    # A chain span may lack the messages of its model span.
    for span in ordered:
        question = question or _last_message(span["attributes"], "input", "gen_ai.input.messages")
    for span in reversed(ordered):
        answer = answer or _last_message(span["attributes"], "output", "gen_ai.output.messages")
    error = root["error"]
    record = {
        "question": question,
        "answer": "" if error else answer,
        "error": error,
        "contexts": _contexts(ordered),
        "latency_seconds": root["seconds"],
        "model": _first_attribute(ordered, "llm.model_name", "gen_ai.response.model", "gen_ai.request.model"),
        "tokens_in": _attribute_sum(ordered, "llm.token_count.prompt", "gen_ai.usage.input_tokens"),
        "tokens_out": _attribute_sum(ordered, "llm.token_count.completion", "gen_ai.usage.output_tokens"),
        "span": root["name"],
        "session": attributes.get("session.id") or attributes.get("gen_ai.conversation.id"),
    }
    return {name: value for name, value in record.items() if value not in (None, "")}


def _plain_text(value: Any, names: tuple[str, ...]) -> str:
    """Return the text, or the first non-empty text member of a JSON object in it with one of the names."""
    if not isinstance(value, str):
        return ""
    if value.lstrip()[:1] == "{":
        try:
            content = json.loads(value)
        except (ValueError, RecursionError):
            return value
        candidates = (content.get(name) for name in names) if isinstance(content, dict) else ()
        return next((candidate for candidate in candidates if isinstance(candidate, str) and candidate), value)
    return value


def _last_message(attributes: Mapping[str, Any], side: str, attribute: str) -> str:
    """Return the last message of the user or the model, by OpenInference's attributes, else by GenAI's."""
    rows: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if (match := _MESSAGE.fullmatch(name)) and match[1] == side:
            rows.setdefault(int(match[2]), {})[match[3]] = value
    role = "user" if side == "input" else "assistant"
    texts = [
        str(message.get("content") or "") for _, message in sorted(rows.items()) if message.get("role", role) == role
    ]
    if texts:
        return texts[-1]
    try:
        messages = (
            json.loads(attributes[attribute])
            if isinstance(attributes.get(attribute), str)
            else attributes.get(attribute)
        )
    except (ValueError, RecursionError):
        return ""
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role", role) == role:
            parts = message.get("parts") or [{"content": message.get("content")}]
            return "\n".join(
                str(part["content"])
                for part in parts
                if isinstance(part, dict) and isinstance(part.get("content"), str)
            )
    return ""


def _contexts(spans: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Return the passages of the last reranker, else of all retrievers; ``None`` without a retrieval."""
    documents_by_source: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        documents: dict[tuple[str, int], dict[str, Any]] = {}
        for name, value in span["attributes"].items():
            if (match := _DOCUMENT.fullmatch(name)) is not None:
                documents.setdefault((match[1], int(match[2])), {})[match[3]] = value
        span_documents: dict[str, list[dict[str, Any]]] = {}
        for (source, _), document in sorted(documents.items()):
            span_documents.setdefault(source, []).append(document)
        genai_documents = span["attributes"].get("gen_ai.retrieval.documents")
        span_documents.setdefault("retrieval.documents", []).extend(
            _parse_documents(genai_documents) if isinstance(genai_documents, str) else _dicts(genai_documents)
        )
        documents_by_source.setdefault("retrieval.documents", []).extend(span_documents.get("retrieval.documents", []))
        if "reranker.output_documents" in span_documents:
            documents_by_source["reranker.output_documents"] = span_documents["reranker.output_documents"]
        retrieves = span["attributes"].get("gen_ai.operation.name") == "retrieval" or genai_documents is not None
        if retrieves or span["attributes"].get("openinference.span.kind") == "RETRIEVER":
            documents_by_source.setdefault("retrieved", [])
    context_documents = (
        documents_by_source.get("reranker.output_documents") or documents_by_source.get("retrieval.documents") or []
    )
    if not context_documents and "retrieved" not in documents_by_source:
        return None
    return [
        {name: document[key] for name, key in _CONTEXT_FIELDS if document.get(key) is not None}
        for document in context_documents
    ]


_CONTEXT_FIELDS = (("text", "content"), ("id", "id"), ("score", "score"))


def _parse_documents(text: str) -> Iterator[dict[str, Any]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return
    yield from _dicts(rows)


def _first_attribute(spans: list[dict[str, Any]], *names: str) -> Any:
    return next((span["attributes"][name] for span in spans for name in names if span["attributes"].get(name)), None)


def _attribute_sum(spans: list[dict[str, Any]], *names: str) -> int | None:
    values = [
        span["attributes"][name] for span in spans for name in names if isinstance(span["attributes"].get(name), int)
    ]
    return sum(values) if values else None


def _mask_match(match: re.Match[str]) -> str:
    quote = match[0][len(match["prefix"])] if match["prefix"] else ""
    return (match["prefix"] or "") + quote + MASKED


def _mask_content(content: Any, pattern: re.Pattern[str], count: list[int]) -> Any:
    """Replace every match of the pattern in nested content."""
    if isinstance(content, str):
        text, places = pattern.subn(_mask_match, content)
        count[0] += places
        return text
    if isinstance(content, dict):
        if _SECRET_NAME.fullmatch(str(content.get("key", ""))) and isinstance(content.get("value"), dict):
            count[0] += 1
            return {**content, "value": {"stringValue": MASKED}}
        return {name: _mask_content(value, pattern, count) for name, value in content.items()}
    return [_mask_content(member, pattern, count) for member in content] if isinstance(content, list) else content


def _to_node(content: Any, line: int) -> Node:
    builder = TreeBuilder(Problems(""), Limits())
    feed(builder, content, line)
    assert builder.root is not None  # noqa: S101  -- tells the type checker
    return builder.root
