"""Undocumented parts of uvicorn that Tablero uses; pyproject.toml pins the tested versions."""

from uvicorn.importer import import_from_string
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

__all__ = [
    "HIGH_WATER_LIMIT",
    "STATUS_LINE",
    "FlowControl",
    "ProxyHeadersMiddleware",
    "RequestResponseCycle",
    "ServerState",
    "get_local_addr",
    "get_remote_addr",
    "import_from_string",
    "is_ssl",
]
