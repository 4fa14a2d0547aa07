"""Spans of runs, batches of units and calls for OpenTelemetry. Off unless the operator's ``OTEL_*`` variables name a
collector; then the extra ``otel`` is needed, and without both nothing of it is imported.

Spans hold ids, counts, model names and outcomes: never texts, keys or messages of errors, which may quote either.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from evaluation.network.outcomes import Outcome

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger("concord.work")
NAME = "concord"
UNITS = "concord.units"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_FLUSH_MILLISECONDS = 2000
Attributes = Mapping[str, str | int | None]


class Spans:
    """Writes spans to a provider. ``None`` among attributes is unknown and left out."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(NAME)

    @contextmanager
    def around(self, name: str, attributes: Attributes) -> Iterator[dict[str, int]]:
        """A span around what happens within, which may fill in counts; what raises is an error by its type alone."""
        from opentelemetry.trace import StatusCode

        with self._tracer.start_as_current_span(
            name, attributes=_known(attributes), record_exception=False, set_status_on_exception=False
        ) as span:
            counts: dict[str, int] = {}
            try:
                yield counts
            except BaseException as error:  # only looked at: whatever ends the work ends the span, and goes on
                span.set_status(StatusCode.ERROR, type(error).__name__)
                raise
            finally:
                span.set_attributes(counts)

    def call(self, attributes: Attributes, outcome: str, ended_at: float, seconds: float) -> None:
        """A call that ended at ``ended_at`` (seconds of the Unix clock) after so many seconds."""
        from opentelemetry.trace import StatusCode

        end = int(ended_at * 1e9)
        told = _known({**attributes, "concord.outcome": outcome})
        span = self._tracer.start_span(f"{NAME}.call", attributes=told, start_time=end - int(seconds * 1e9))
        if outcome != Outcome.OK:
            span.set_status(StatusCode.ERROR, outcome)
        span.end(end)

    def flush(self) -> None:
        """Send what is there: processes of a cluster end without warning. A collector that is away costs two seconds
        and nothing else."""
        self._provider.force_flush(_FLUSH_MILLISECONDS)


def spans() -> Spans | None:
    """Where spans go in this process; ``None`` without a collector."""
    return _spans() if wanted(os.environ) else None


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether the standard variables ask for spans."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    return exporter == "otlp" or (not exporter and any(environment.get(name) for name in _ENDPOINTS))


@contextmanager
def spanned(name: str, attributes: Attributes) -> Iterator[dict[str, int]]:
    """A span ``concord.NAME`` around what happens within, which may fill in counts; nothing without a collector."""
    found = spans()
    if found is None:
        yield {}
        return
    with found.around(f"{NAME}.{name}", attributes) as counts:
        yield counts


def batch(run_id: int, kind: str) -> AbstractContextManager[dict[str, int]]:
    """A span around units of one kind that are worked on together; fill in ``UNITS``, how many of them ended."""
    return spanned("units", {"concord.run.id": run_id, "concord.unit.kind": kind})


@cache
def _spans() -> Spans | None:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning("OTEL_* variables ask for spans, but the extra is not installed: pip install -e '.[otel]'")
        return None
    # The operator's own name of the service, where the variables give one, comes before ours.
    provider = TracerProvider(resource=Resource({SERVICE_NAME: NAME}).merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider)


def _known(attributes: Attributes) -> dict[str, str | int]:
    return {name: value for name, value in attributes.items() if value is not None}
