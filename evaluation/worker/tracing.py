"""OpenTelemetry spans of runs, batches of units and calls. Off unless the ``OTEL_*`` variables name a collector; then
the extra ``otel`` is needed, and otherwise nothing of it is imported.

Spans hold ids, counts, model names and outcomes, never texts, keys or error messages."""

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
    """Writes spans to a provider. Attributes that are ``None`` are left out."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(NAME)

    @contextmanager
    def span(self, name: str, attributes: Attributes) -> Iterator[dict[str, int]]:
        """A span around a block, which may fill in counts; errors are recorded by type only."""
        from opentelemetry.trace import StatusCode

        with self._tracer.start_as_current_span(
            name, attributes=_without_unknown(attributes), record_exception=False, set_status_on_exception=False
        ) as span:
            counts: dict[str, int] = {}
            try:
                yield counts
            # Any exception ends the span and is raised again.
            except BaseException as error:
                span.set_status(StatusCode.ERROR, type(error).__name__)
                raise
            finally:
                span.set_attributes(counts)

    def call(self, attributes: Attributes, outcome: str, ended_at: float, seconds: float) -> None:
        """Record a call that ended at ``ended_at`` (Unix seconds) after ``seconds``."""
        from opentelemetry.trace import StatusCode

        end = int(ended_at * 1e9)
        attributes_with_outcome = _without_unknown({**attributes, "concord.outcome": outcome})
        span = self._tracer.start_span(
            f"{NAME}.call", attributes=attributes_with_outcome, start_time=end - int(seconds * 1e9)
        )
        if outcome != Outcome.OK:
            span.set_status(StatusCode.ERROR, outcome)
        span.end(end)

    def flush(self) -> None:
        """Send finished spans, because processes of a cluster may end without warning. Waits at most two seconds."""
        self._provider.force_flush(_FLUSH_MILLISECONDS)


def spans() -> Spans | None:
    """The span writer of this process; ``None`` without a collector."""
    return _spans() if is_enabled(os.environ) else None


def is_enabled(environment: Mapping[str, str]) -> bool:
    """Return whether the standard variables enable spans."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    return exporter == "otlp" or (not exporter and any(environment.get(name) for name in _ENDPOINTS))


@contextmanager
def trace_span(name: str, attributes: Attributes) -> Iterator[dict[str, int]]:
    """A span ``concord.NAME`` around a block, which may fill in counts; does nothing without a collector."""
    tracer = spans()
    if tracer is None:
        yield {}
        return
    with tracer.span(f"{NAME}.{name}", attributes) as counts:
        yield counts


def batch(run_id: int, kind: str) -> AbstractContextManager[dict[str, int]]:
    """A span around a batch of units of one kind; fill in ``UNITS``, the number that ended."""
    return trace_span("units", {"concord.run.id": run_id, "concord.unit.kind": kind})


@cache
def _spans() -> Spans | None:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        log.warning("OTEL_* variables are set, but the extra otel is not installed: pip install -e '.[otel]'")
        return None
    # A service name from the variables takes precedence.
    provider = TracerProvider(resource=Resource({SERVICE_NAME: NAME}).merge(OTELResourceDetector().detect()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider)


def _without_unknown(attributes: Attributes) -> dict[str, str | int]:
    return {name: value for name, value in attributes.items() if value is not None}
