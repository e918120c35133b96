"""A collector of OpenTelemetry for the tests: it takes what is sent over HTTP, and decodes it."""

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PATIENCE = 60  # seconds


def plain(attributes):
    """Attributes as a dictionary."""
    return {it.key: getattr(it.value, it.value.WhichOneof("value")) for it in attributes}


class Collector(ThreadingHTTPServer):
    """An OTLP collector that keeps all that it receives."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200  # the status of its answers
        self.requests = []
        self.traces = []
        self.metrics = []

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spans(self):
        """Return all spans, each with the attributes of its resource."""
        return [
            (span, plain(it.resource.attributes))
            for sent in list(self.traces)
            for it in sent.resource_spans
            for scope in it.scope_spans
            for span in scope.spans
        ]

    def wait_for_span(self, **expected):
        """Return the first span with these attributes, whose dots are written as two underscores."""
        conditions = {name.replace("__", "."): value for name, value in expected.items()}
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for span, _ in self.spans():
                results = {"name": span.name, **plain(span.attributes)}
                if conditions.items() <= results.items():
                    return span
            time.sleep(0.02)
        raise AssertionError((conditions, [(it.name, plain(it.attributes)) for it, _ in self.spans()]))

    def children(self, parent):
        return [span for span, _ in self.spans() if span.parent_span_id == parent.span_id]

    def points(self, name):
        """Return the last data points of a metric from each process."""
        results = {}
        for sent in list(self.metrics):
            for it in sent.resource_metrics:
                process = plain(it.resource.attributes)["service.instance.id"]
                for scope in it.scope_metrics:
                    for metric in scope.metrics:
                        if metric.name == name:
                            results[process] = metric
        kinds = {process: metric.WhichOneof("data") for process, metric in results.items()}
        return [point for process, it in results.items() for point in getattr(it, kinds[process]).data_points]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.requests.append(self.path)
        if self.server.status == 200:
            if self.path == "/v1/traces":
                self.server.traces.append(ExportTraceServiceRequest.FromString(body))
            else:
                self.server.metrics.append(ExportMetricsServiceRequest.FromString(body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield collector
        finally:
            collector.shutdown()
            thread.join()


def main() -> None:
    """Take what comes and forget it, in a process of its own; print the endpoint first."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Sink) as sink:
        print(f"http://127.0.0.1:{sink.server_address[1]}", flush=True)
        sink.serve_forever()


class _Sink(_Handler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    main()
