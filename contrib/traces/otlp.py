"""OpenTelemetry traces as records, one a trace: what was asked, answered and retrieved, how long it took.

Read are spans in OpenInference's and in OpenTelemetry's GenAI conventions, from OTLP in JSON (a document, or a line for
each batch) or protobuf. What looks like a secret is masked before anything else sees it.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.core.errors import Problem
from evaluation.formats.reading import FileFormat, display_name, tree_of_file
from evaluation.formats.record_formats import RecordFormat
from evaluation.formats.text_trees import feed
from evaluation.formats.tree import MAX_BYTES, FileTree, Kind, Limits, Node, Problems, TreeBuilder, plain

MASKED = "[masked]"
#: What is masked beside secrets for whoever asks for it by this name.
PERSONAL = {
    "email": r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}",
    "phone": r"(?<![\w-])(?:\+82[- ]?|0)\d{1,2}[- ]?\d{3,4}[- ]?\d{4}(?![\w-])",
    "resident_number": r"(?<![\w-])\d{6}-[1-8]\d{6}(?![\w-])",
    "card": r"(?<![\w-])\d{4}(?:[- ]?\d{4}){3}(?![\w-])",
}
UNKNOWN_SERVICE = "unknown_service"  # OpenTelemetry's own word
_NAMES = "password|passwd|secret|api[_-]?key|access[_-]?token"
_SECRETS = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|xox[abp]|concord)[-_][A-Za-z0-9_-]{16,}|\bAKIA[0-9A-Z]{16}\b"
    r"|(?i:\bbearer\s+[A-Za-z0-9._~+/-]{16,}=*)|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"
    rf"|(?i:\b(?:{_NAMES})\b\s*[=:]\s*[^\s\"',;]{{6,}})"
    # In JSON within a text, however often it was quoted; the name and the quotes stay, so that it can still be read.
    rf"|(?P<kept>(?i:[\"'][\w.-]{{0,60}}(?:{_NAMES}|authorization)\\*[\"']\s*:\s*\\*))"
    r"(?:(?<!\\)(?:\"(?:[^\"\\]|\\[\s\S])+|'(?:[^'\\]|\\[\s\S])+)|(?<=\\)(?:\"(?:[^\"\\]|\\(?!\"))+|'(?:[^'\\]|\\(?!'))+))"
)
_NAMED = re.compile(rf"(?i:[\w.-]*(?:{_NAMES}|authorization))")
_BATCHES = ("resourceSpans", "resource_spans")
_SPANS = ("scopeSpans", "scope_spans")
#: Fields of a span whose digits could be taken for a card's, and the form in which they stay as they are.
_PLAIN = re.compile(r"(?:trace|span|parent_?span)_?id|(?:start|end)_?time_?unix_?nano", re.IGNORECASE)
_ID = re.compile(r"[A-Za-z0-9+/]{1,32}={0,2}")
_ASKED = ("question", "query", "input", "user_input", "prompt")
_SAID = ("answer", "output", "response", "result", "text", "content")
_DOCUMENT = re.compile(r"(retrieval\.documents|reranker\.output_documents)\.(\d+)\.document\.(content|id|score)")
_MESSAGE = re.compile(r"llm\.(input|output)_messages\.(\d+)\.message\.(role|content)")


def is_protobuf(data: bytes) -> bool:
    """Whether the bytes may be traces in protobuf: they begin like such, and are no text."""
    if data[:1] != b"\n":
        return False
    try:
        return data.decode("utf-8").lstrip()[:1] not in {"{", "["}
    except UnicodeDecodeError:
        return True


def json_of_protobuf(data: bytes, problems: Problems) -> bytes:
    """The same traces as JSON.

    :raises InvalidFile: ``traces_need_otel`` where the extra ``otel`` is not installed; ``traces_damaged``.
    """
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
    except ImportError:
        problems.stop("traces_need_otel")
    try:
        found = MessageToDict(TracesData.FromString(data))
    except (DecodeError, ValueError, RecursionError):
        problems.stop("traces_damaged")
    return json.dumps(found).encode()


def text_of(data: bytes, problems: Problems) -> bytes:
    """Traces in protobuf as JSON; other files unchanged."""
    return json_of_protobuf(data, problems) if is_protobuf(data) else data


def may_hold_traces(head: bytes) -> bool:
    """Whether a file that begins so may hold traces."""
    return is_protobuf(head) or any(name.encode() in head for name in _BATCHES)


def protobuf_answer(lost: int) -> bytes:
    """What OTLP answers to a request in protobuf of which so many spans were of no use. Needs the extra ``otel``."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    answer = ExportTraceServiceResponse()
    if lost:
        answer.partial_success.rejected_spans = lost
    said: bytes = answer.SerializeToString()
    return said


def masking(wanted: Sequence[str]) -> re.Pattern[str]:
    """What is masked: secrets, and what is ``wanted``: names of :data:`PERSONAL`, and patterns of one's own, in which
    ``#`` is a digit and ``*`` at the end the rest of a word."""
    parts = [_SECRETS.pattern]
    for one in filter(None, wanted):
        start = re.escape(one.removesuffix("*")).replace(r"\#", r"\d")
        parts.append(PERSONAL.get(one) or start + (r"\S+" if one.endswith("*") else ""))
    return re.compile("|".join(parts))


def with_traces(tree: FileTree, problems: Problems) -> FileTree:
    """The tree with a record for each trace, where the file holds traces; else unchanged."""
    if not (rows := trace_records(tree, problems)):
        return tree
    return tree._replace(root=Node(Kind.LIST, [_node(row, at) for at, row in enumerate(rows, 1)], 1))


def trace_records(tree: FileTree, problems: Problems, masks: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A record for each trace, under the names that the shape of traces maps; none where the file holds no traces. For
    ``masks`` see :func:`masking`."""
    batches = [batch for part in _parts(tree.root) for batch in _listed(part, *_BATCHES)]
    traces: dict[str, list[dict[str, Any]]] = {}
    for batch in batches:
        for scope in _listed(batch, *_SPANS):
            for span in _listed(scope, "spans"):
                read = _span(span)
                traces.setdefault(read["trace"], []).append(read)
    pattern, masked = masking(masks), [0]
    rows = [{**_masked(_record(spans), pattern, masked), "otlp_trace_id": trace} for trace, spans in traces.items()]
    if masked[0]:
        problems.remark("secrets_masked", places=masked[0])
    return rows


RECORDS = RecordFormat(text_of, may_hold_traces, with_traces, Path(__file__).with_name("otlp.yaml"))


def read_trace_parts(
    data: bytes, name: str, *, masks: Sequence[str] = (), max_bytes: int = MAX_BYTES
) -> tuple[list[TracePart], int]:
    """Parts of an OTLP request by service and trace, and the number of its spans that belong to no trace. For
    ``masks`` see :func:`masking`.

    :raises InvalidFile: for what is neither OTLP's JSON nor its protobuf.
    """
    return split(_tree(data, Problems(display_name(name)), max_bytes).root, masks)


def read_trace_records(
    data: bytes, name: str, *, masks: Sequence[str] = (), max_bytes: int = MAX_BYTES
) -> tuple[bytes, list[Problem]]:
    """A file of traces as JSON lines, one for each trace, which are read as questions and as answers, and remarks. For
    ``masks`` see :func:`masking`.

    :raises InvalidFile: ``traces_none`` beside what is wrong with any file.
    """
    problems = Problems(display_name(name))
    if not (rows := trace_records(_tree(data, problems, max_bytes), problems, masks)):
        problems.stop("traces_none")
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode(), list(problems.remarks)


def _tree(data: bytes, problems: Problems, max_bytes: int) -> FileTree:
    tree = tree_of_file(data, problems, (FileFormat.JSON, FileFormat.JSONL), max_bytes)
    problems.refuse_if_any()
    return tree


@dataclass(frozen=True, slots=True)
class TracePart:
    """What one request tells of a trace: ``content`` is OTLP in JSON with its spans alone, masked; ``service``
    is the name that the resource gives itself, ``unknown_service`` where it has none."""

    service: str
    trace: str
    content: dict[str, Any]
    spans: int


def split(root: Node, masks: Sequence[str] = ()) -> tuple[list[TracePart], int]:
    """The parts of an OTLP request by service and trace, and how many spans have no trace's id. For ``masks`` see
    :func:`masking`; ids and times stay as they are."""
    pattern = masking(masks)
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    lost = 0
    for batch in (batch for part in _parts(root) for batch in _listed(part, *_BATCHES)):
        whole = plain(batch)
        resource = whole.get("resource") if isinstance(whole, dict) else None
        named = _attributes(resource if isinstance(resource, dict) else {}).get("service.name") or ""
        service = str(_masked(str(named), pattern, [0]))
        for span in (span for scope in _listed(batch, *_SPANS) for span in _listed(scope, "spans")):
            said = plain(span)
            trace = _id(said.get("traceId") or said.get("trace_id")) if isinstance(said, dict) else ""
            if not re.fullmatch(r"[0-9a-f]{32}", trace) or not isinstance(said, dict):
                lost += 1
                continue
            kept = {
                name: value if _PLAIN.fullmatch(name) and _ID.fullmatch(str(value)) else _masked(value, pattern, [0])
                for name, value in said.items()
            }
            found.setdefault((service.strip() or UNKNOWN_SERVICE, trace), []).append(kept)
    parts = [
        TracePart(service, trace, {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, len(spans))
        for (service, trace), spans in found.items()
    ]
    return parts, lost


def _parts(root: Node) -> list[Node]:
    return root.elements if root.kind is Kind.LIST else [root]


def _listed(node: Node, *names: str) -> list[Node]:
    return next((node.entries[name].elements for name in names if name in node.entries), [])


def _span(node: Node) -> dict[str, Any]:
    """A span with its attributes as plain values by name."""
    whole = plain(node)
    said: dict[str, Any] = whole if isinstance(whole, dict) else {}
    begun, ended = (_nanoseconds(said, name) for name in ("start", "end"))
    status = next(iter(_maps([said.get("status")])), {})
    attributes = _attributes(said)
    for event in _maps(said.get("events")):
        attributes = _attributes(event) | attributes
    return {
        "trace": _id(said.get("traceId") or said.get("trace_id")),
        "span": _id(said.get("spanId") or said.get("span_id")),
        "parent": _id(said.get("parentSpanId") or said.get("parent_span_id")),
        "name": str(said.get("name") or ""),
        "begun": begun,
        "seconds": (ended - begun) / 1e9 if ended >= begun > 0 else None,
        "error": str(status.get("message") or "error") if str(status.get("code")) in {"2", "STATUS_CODE_ERROR"} else "",
        "said": attributes,
    }


def _maps(said: Any) -> list[dict[str, Any]]:
    return [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []


def _attributes(said: Mapping[str, Any]) -> dict[str, Any]:
    return {str(one.get("key")): _value(one.get("value")) for one in _maps(said.get("attributes"))}


def _id(said: Any) -> str:
    """An id in hexadecimal, as JSON has it; protobuf's are given in base64."""
    text = str(said or "")
    if len(text) in {12, 24} and not re.fullmatch(r"[0-9a-fA-F]+", text):
        try:
            return b64decode(text, validate=True).hex()
        except ValueError:
            return text
    return text.lower()


def _nanoseconds(said: Mapping[str, Any], end: str) -> int:
    text = str(said.get(f"{end}TimeUnixNano") or said.get(f"{end}_time_unix_nano") or 0)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _value(said: Any) -> Any:
    """The value of an attribute, out of the one field that says its type."""
    if not isinstance(said, dict) or not said:
        return None
    kind, value = next(iter(said.items()))
    if kind.lower() in {"intvalue", "int_value"}:
        return int(value) if re.fullmatch(r"-?\d{1,18}", str(value)) else None
    if kind.lower() in {"arrayvalue", "array_value"}:
        return [_value(one) for one in _maps(value.get("values"))] if isinstance(value, dict) else []
    if kind.lower() in {"kvlistvalue", "kvlist_value"}:
        return _attributes({"attributes": value.get("values")}) if isinstance(value, dict) else {}
    return value


def _record(spans: list[dict[str, Any]]) -> dict[str, Any]:
    """What a trace tells beside its id."""
    known = {one["span"] for one in spans}
    ordered = sorted(spans, key=lambda one: one["begun"])
    root = next((one for one in ordered if one["parent"] not in known or not one["parent"]), ordered[0])
    said = root["said"]
    asked = _told(said.get("input.value"), _ASKED) or _message(said, "input", "gen_ai.input.messages")
    answer = _told(said.get("output.value"), _SAID) or _message(said, "output", "gen_ai.output.messages")
    for one in ordered:  # a chain may say nothing of what its model was asked
        asked = asked or _message(one["said"], "input", "gen_ai.input.messages")
    for one in reversed(ordered):
        answer = answer or _message(one["said"], "output", "gen_ai.output.messages")
    error = root["error"]
    record = {
        "question": asked,
        "answer": "" if error else answer,
        "error": error,
        "contexts": _contexts(ordered),
        "latency_seconds": root["seconds"],
        "model": _first(ordered, "llm.model_name", "gen_ai.response.model", "gen_ai.request.model"),
        "tokens_in": _sum(ordered, "llm.token_count.prompt", "gen_ai.usage.input_tokens"),
        "tokens_out": _sum(ordered, "llm.token_count.completion", "gen_ai.usage.output_tokens"),
        "span": root["name"],
        "session": said.get("session.id") or said.get("gen_ai.conversation.id"),
    }
    return {name: value for name, value in record.items() if value not in (None, "")}


def _told(said: Any, names: tuple[str, ...]) -> str:
    """A text, or the text that a JSON object in it has under one of the names."""
    if not isinstance(said, str):
        return ""
    if said.lstrip()[:1] == "{":
        try:
            inner = json.loads(said)
        except (ValueError, RecursionError):
            return said
        found = (inner.get(name) for name in names) if isinstance(inner, dict) else ()
        return next((one for one in found if isinstance(one, str) and one), said)
    return said


def _message(said: Mapping[str, Any], side: str, attribute: str) -> str:
    """The user's last message, or the model's last: OpenInference's, else GenAI's."""
    rows: dict[int, dict[str, Any]] = {}
    for name, value in said.items():
        if (found := _MESSAGE.fullmatch(name)) and found[1] == side:
            rows.setdefault(int(found[2]), {})[found[3]] = value
    wanted = "user" if side == "input" else "assistant"
    texts = [str(one.get("content") or "") for _, one in sorted(rows.items()) if one.get("role", wanted) == wanted]
    if texts:
        return texts[-1]
    try:
        messages = json.loads(said[attribute]) if isinstance(said.get(attribute), str) else said.get(attribute)
    except (ValueError, RecursionError):
        return ""
    for one in reversed(messages if isinstance(messages, list) else []):
        if isinstance(one, dict) and one.get("role", wanted) == wanted:
            parts = one.get("parts") or [{"content": one.get("content")}]
            return "\n".join(
                str(p["content"]) for p in parts if isinstance(p, dict) and isinstance(p.get("content"), str)
            )
    return ""


def _contexts(spans: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The passages of the last reranker, else of all retrievers; ``None`` where nothing was retrieved from."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in spans:
        documents: dict[tuple[str, int], dict[str, Any]] = {}
        for name, value in one["said"].items():
            if (at := _DOCUMENT.fullmatch(name)) is not None:
                documents.setdefault((at[1], int(at[2])), {})[at[3]] = value
        by_kind: dict[str, list[dict[str, Any]]] = {}
        for (kind, _), document in sorted(documents.items()):
            by_kind.setdefault(kind, []).append(document)
        listed = one["said"].get("gen_ai.retrieval.documents")
        by_kind.setdefault("retrieval.documents", []).extend(
            _parsed(listed) if isinstance(listed, str) else _maps(listed)
        )
        found.setdefault("retrieval.documents", []).extend(by_kind.get("retrieval.documents", []))
        if "reranker.output_documents" in by_kind:
            found["reranker.output_documents"] = by_kind["reranker.output_documents"]
        retrieves = one["said"].get("gen_ai.operation.name") == "retrieval" or listed is not None
        if retrieves or one["said"].get("openinference.span.kind") == "RETRIEVER":
            found.setdefault("asked", [])
    documents_of = found.get("reranker.output_documents") or found.get("retrieval.documents") or []
    if not documents_of and "asked" not in found:
        return None
    return [{name: one[key] for name, key in _PARTS if one.get(key) is not None} for one in documents_of]


_PARTS = (("text", "content"), ("id", "id"), ("score", "score"))


def _parsed(text: str) -> Iterator[dict[str, Any]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return
    yield from _maps(rows)


def _first(spans: list[dict[str, Any]], *names: str) -> Any:
    return next((one["said"][name] for one in spans for name in names if one["said"].get(name)), None)


def _sum(spans: list[dict[str, Any]], *names: str) -> int | None:
    found = [one["said"][name] for one in spans for name in names if isinstance(one["said"].get(name), int)]
    return sum(found) if found else None


def _mask(found: re.Match[str]) -> str:
    quote = found[0][len(found["kept"])] if found["kept"] else ""
    return (found["kept"] or "") + quote + MASKED


def _masked(said: Any, pattern: re.Pattern[str], count: list[int]) -> Any:
    """The value with everything that fits the pattern replaced, however deep it stands."""
    if isinstance(said, str):
        text, places = pattern.subn(_mask, said)
        count[0] += places
        return text
    if isinstance(said, dict):
        if _NAMED.fullmatch(str(said.get("key", ""))) and isinstance(said.get("value"), dict):
            count[0] += 1
            return {**said, "value": {"stringValue": MASKED}}
        return {name: _masked(value, pattern, count) for name, value in said.items()}
    return [_masked(one, pattern, count) for one in said] if isinstance(said, list) else said


def _node(said: Any, line: int) -> Node:
    builder = TreeBuilder(Problems(""), Limits())
    feed(builder, said, line)
    assert builder.root is not None  # noqa: S101  -- tells the type checker
    return builder.root
