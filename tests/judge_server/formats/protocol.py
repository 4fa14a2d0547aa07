"""Description of a wire format: how the server reads requests and writes replies and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evaluation.network.outcomes import Outcome


class ChatRequest(NamedTuple):
    """Contents of a request: the texts of all messages, and the schemas of tools by name."""

    model: str
    texts: list[str]
    schema: dict[str, Any] | None
    tools: Mapping[str, dict[str, Any]]


class ErrorResponse(NamedTuple):
    """Response with an error; underscores of header names are hyphens."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass(frozen=True)
class WireFormat:
    """The format of a provider.

    ``suffix``: end of the path of a call. ``endings``: the provider's word for each way in which a reply ends
    (``stop``, ``tool``, ``length``, ``refused``). ``build_reply``: body from model, text, name of the tool (else empty)
    and word, with 900 tokens of input and 60 of output. ``error``: error with a status and headers. ``faults``: errors
    by the name of the fault in ``test_faults.py``, where a status is not enough. ``outcomes`` and ``waits``: those that
    differ from other providers, by fault."""

    suffix: str
    endings: Mapping[str, str]
    read_request: Callable[[str, dict[str, Any]], ChatRequest]
    build_reply: Callable[[str, str, str, str], dict[str, Any]]
    error: Callable[..., ErrorResponse]
    faults: Mapping[str, ErrorResponse] = field(default_factory=dict)
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    waits: Mapping[str, float | None] = field(default_factory=dict)
