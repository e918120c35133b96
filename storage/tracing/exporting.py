"""OpenTelemetry exporter: sends finished spans and the server's counters in the background."""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    MetricExportResult,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from storage.domain.requests.spans import Attributes
from storage.health import release
from storage.tracing.counters import read_counters
from storage.tracing.traces import Origin, Roots, Span, Trace
from storage.tracing.variables import Signals

logger = logging.getLogger(__name__)

_NAME: Final = "tablero"
_PROBE_INTERVAL: Final = 1.0  # seconds between traces while the collector does not answer
_SHUTDOWN: Final = 3.0  # seconds to send the rest
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_FAILED: Final = Status(StatusCode.ERROR)
_UNSET: Final = Status()
# their messages repeat with each attempt; Collector logs the first reason
_LIBRARY_LOGGERS: Final = (
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.sdk._shared_internal",
)


class Collector(logging.Filter):
    """State of the collector; as a logging filter it intercepts the SDK's messages and logs the first failure."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down = False
        self._reason = ""
        for name in _LIBRARY_LOGGERS:
            logging.getLogger(name).addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        self._reason = record.getMessage()
        return False

    def note(self, endpoint: str, *, answered: bool) -> None:
        if answered == (not self.is_down):
            return
        self.is_down = not answered
        address = urlsplit(endpoint).netloc.rpartition("@")[2]
        if answered:
            logger.warning("The collector of OpenTelemetry at %s answers again.", address)
            return
        text = "The collector of OpenTelemetry at %s does not take traces and metrics, which are dropped: %s"
        logger.warning(text, address, self._reason)

    def forget(self) -> None:
        for name in _LIBRARY_LOGGERS:
            logging.getLogger(name).removeFilter(self)


class _SpanExporter(OTLPSpanExporter):
    def __init__(self, collector: Collector) -> None:
        super().__init__()
        self._collector = collector

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        self._collector.note(self._endpoint, answered=result is SpanExportResult.SUCCESS)
        return result


class _MetricExporter(OTLPMetricExporter):
    def __init__(self, collector: Collector) -> None:
        super().__init__()
        self._collector = collector

    def export(self, metrics_data: MetricsData, *arguments: Any, **options: Any) -> MetricExportResult:
        result = super().export(metrics_data, *arguments, **options)
        self._collector.note(self._endpoint, answered=result is MetricExportResult.SUCCESS)
        return result


class _CounterSender(Thread):
    """Thread that regularly sends the server's existing counters; the SDK counts nothing itself."""

    def __init__(self, exporter: OTLPMetricExporter, resource: Resource, scope: InstrumentationScope) -> None:
        super().__init__(name="counters", daemon=True)
        self._exporter = exporter
        self._resource = resource
        self._scope = scope
        self._began = time.time_ns()
        self._ending = Event()
        self._interval = _milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 60_000) / 1000
        self._timeout = _milliseconds("OTEL_METRIC_EXPORT_TIMEOUT", 30_000)

    def run(self) -> None:
        while not self._ending.wait(self._interval):
            self.send()
        self.send()
        self._exporter.shutdown()

    def send(self) -> None:
        metrics = read_counters(self._began, time.time_ns())
        scoped = ScopeMetrics(self._scope, metrics, "")
        data = MetricsData([ResourceMetrics(self._resource, [scoped], "")])
        try:
            self._exporter.export(data, timeout_millis=self._timeout)
        except Exception:
            logger.exception("Metrics could not be sent")

    def end(self) -> None:
        self._ending.set()


def _milliseconds(variable: str, default: int) -> int:
    text = os.environ.get(variable, "").strip()
    return int(text) if text.isdecimal() and int(text) else default


class Telemetry:
    """Traces and metrics of one process; ``open`` starts its threads in a process that serves requests."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        resource = _resource()
        self._resource = resource
        self._scope = InstrumentationScope(_NAME, release.version())
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._sampler = provider.sampler  # as the variables say
        self._ids = provider.id_generator
        self._propagator = TraceContextTextMapPropagator()
        self._processor: BatchSpanProcessor | None = None
        self._sender: _CounterSender | None = None
        self._collector: Collector | None = None
        self._probed_at = 0.0
        self.roots = Roots(self._begin_job)

    def open(self) -> None:
        self._collector = collector = Collector()
        if self._signals.traces:
            self._processor = BatchSpanProcessor(_SpanExporter(collector))
        if self._signals.metrics:
            self._sender = _CounterSender(_MetricExporter(collector), self._resource, self._scope)
            self._sender.start()

    def close(self) -> None:
        """Send the remaining spans and metrics, with a short timeout."""
        processor, self._processor = self._processor, None
        sender, self._sender = self._sender, None
        ending: list[Thread] = []
        if processor is not None:
            # it waits for half a minute itself
            ending.append(Thread(target=processor.shutdown, daemon=True))
            ending[0].start()
        if sender is not None:
            sender.end()
            ending.append(sender)
        deadline = time.monotonic() + _SHUTDOWN
        for thread in ending:
            thread.join(max(0.0, deadline - time.monotonic()))
        if self._collector is not None and not any(thread.is_alive() for thread in ending):
            self._collector.forget()

    def flush(self) -> None:
        """Send everything recorded so far, and wait for completion."""
        if self._processor is not None:
            self._processor.force_flush()
        if self._sender is not None:
            self._sender.send()

    def begin(self, name: str, headers: Mapping[bytes, bytes]) -> Span | None:
        """Begin the span of a request; None if it is not sampled."""
        if self._processor is None or self._is_down():
            return None
        carrier = headers.get(b"traceparent")
        context = None
        if carrier is not None:
            state = headers.get(b"tracestate", b"").decode("latin-1")
            context = self._propagator.extract(
                {"traceparent": carrier.decode("latin-1"), "tracestate": state}
            )
        parent = get_current_span(context).get_span_context() if context is not None else None
        if parent is not None and not parent.is_valid:
            parent = None
        trace_id = self._ids.generate_trace_id() if parent is None else parent.trace_id
        if not self._is_sampled(context, trace_id, name, SpanKind.SERVER):
            return None
        return Span(Trace(self, Origin(trace_id, parent), is_server=True), name, {})

    def _begin_job(self, name: str, attributes: Attributes) -> Span | None:
        if self._processor is None or self._is_down():
            return None
        trace_id = self._ids.generate_trace_id()
        if not self._is_sampled(None, trace_id, name, SpanKind.INTERNAL):
            return None
        return Span(Trace(self, Origin(trace_id), is_server=False), name, attributes)

    def _is_sampled(self, context: Context | None, trace_id: int, name: str, kind: SpanKind) -> bool:
        decision = self._sampler.should_sample(context, trace_id, name, kind).decision
        return decision is Decision.RECORD_AND_SAMPLE

    def _is_down(self) -> bool:
        """Return whether tracing is suspended because the collector does not respond."""
        if self._collector is None or not self._collector.is_down:
            return False
        now = time.monotonic()
        if now - self._probed_at < _PROBE_INTERVAL:
            return True
        self._probed_at = now
        return False

    # for traces

    def new_span_id(self) -> int:
        return self._ids.generate_span_id()

    def take(self, trace: Trace) -> None:
        processor = self._processor
        if processor is None:
            return
        remote = trace.origin.parent
        assert remote is None or isinstance(remote, SpanContext)
        state = remote.trace_state if remote is not None else None
        contexts: dict[int, SpanContext] = {}

        def context_of(span: Span) -> SpanContext:
            span_context = contexts.get(span.id)
            if span_context is None:
                span_context = SpanContext(trace.origin.trace_id, span.id, False, _SAMPLED, state)
                contexts[span.id] = span_context
            return span_context

        for span in reversed(trace.ended):
            is_root = span.parent is None
            processor.on_end(
                ReadableSpan(
                    span.name,
                    context_of(span),
                    remote if span.parent is None else context_of(span.parent),
                    self._resource,
                    span.attributes,
                    kind=_kind(span, is_server=is_root and trace.is_server),
                    status=_FAILED if span.failed else _UNSET,
                    start_time=span.began + trace.offset,
                    end_time=span.end + trace.offset,
                    instrumentation_scope=self._scope,
                )
            )


def _kind(span: Span, *, is_server: bool) -> SpanKind:
    if is_server:
        return SpanKind.SERVER
    return SpanKind.CLIENT if "db.system.name" in span.attributes else SpanKind.INTERNAL


def _resource() -> Resource:
    """Return the OpenTelemetry resource of this process; environment variables take precedence."""
    resource = Resource.create({"service.version": release.version(), "service.instance.id": str(uuid4())})
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: _NAME}))
    return resource
