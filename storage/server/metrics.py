"""What Prometheus asks for: files in which the processes count, and a listener of its own."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from wsgiref.simple_server import WSGIServer

from storage.server.options import Options
from storage.server.refusal import Refusal

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's own; it looks when it is imported


@contextmanager
def counting() -> Iterator[None]:
    """A folder in which every process counts; what those that ended have counted stays in it."""
    with tempfile.TemporaryDirectory(prefix="tablero-metrics-", ignore_cleanup_errors=True) as folder:
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_FOLDER]


def forget(process: int) -> None:
    """What a process that ended was, unlike what it did."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(process)  # type: ignore[no-untyped-call]


@contextmanager
def listening(options: Options) -> Iterator[str | None]:
    """Serves the metrics on an address of their own, if there shall be one; yields their URL."""
    if options.metrics_listen is None:
        yield None
        return
    host, port = options.metrics_listen
    server = _start(host, port)
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def _start(host: str, port: int) -> WSGIServer:
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise Refusal(
            f"It is not possible to serve metrics on {host}:{port} ({error.strerror});"
            " choose another address with --metrics-listen HOST:PORT."
        ) from None
    return server
