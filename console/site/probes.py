"""Django without the console's middleware: that runs in a thread, which none of an operator's probes needs."""

from typing import Any

from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response

PATHS = frozenset({"/ui/healthz", "/ui/readyz", "/ui/metrics"})


class Probes(ASGIHandler):
    def load_middleware(self, is_async: bool = True) -> None:
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        respond: Any = self._get_response_async  # type: ignore[attr-defined]
        self._middleware_chain = convert_exception_to_response(respond)
