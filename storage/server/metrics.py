"""Prometheus metrics: per-process files of counts, and a separate listener."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIServer

from storage.server.options import Options
from storage.server.refusal import Refusal

_PREFIX = "tablero-metrics-"
_LOCK = "lock"
FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's own; it looks when it is imported


@contextmanager
def counting() -> Iterator[None]:
    """Create a folder for the counts of all processes, which outlive their processes."""
    _remove_abandoned()
    with ExitStack() as stack:
        try:
            made = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
            folder = stack.enter_context(made)
            stack.enter_context(_held(Path(folder)))
        except OSError as error:
            raise Refusal(
                f"No temporary files can be made ({error.strerror}). Make room on that disk, or name another folder"
                " with the variable TMPDIR."
            ) from None
        os.environ[FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[FOLDER]


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder until this process ends."""
    draft = folder / "lock.new"
    with draft.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        draft.rename(folder / _LOCK)  # under its name it is always held
        yield


def _remove_abandoned() -> None:
    """Remove the folders of killed servers."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)


def forget(process: int) -> None:
    """Drop the gauges of an ended process, keeping its counters."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(process)  # type: ignore[no-untyped-call]


@contextmanager
def listening(options: Options) -> Iterator[str | None]:
    """Serve metrics on a separate address if configured; yield their URL or None."""
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
        server.set_app(_answering_head(server.get_app()))
    except OSError as error:
        raise Refusal(
            f"It is not possible to serve metrics on {host}:{port} ({error.strerror});"
            " choose another address with --metrics-listen HOST:PORT."
        ) from None
    return server


def _answering_head(application: Any) -> Callable[..., Iterable[bytes]]:
    """Support HEAD, as uptime monitors send it, like GET without the body."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] != "HEAD":
            body: Iterable[bytes] = application(environ, start_response)
            return body
        list(application({**environ, "REQUEST_METHOD": "GET"}, start_response))
        return []

    return answer
