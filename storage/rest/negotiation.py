"""JSON-only content negotiation of the management API."""

from collections.abc import Mapping, Sequence
from typing import IO, Any

import orjson
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request


class StrictJSONParser(BaseParser):
    """JSON parser that refuses NaN, lone surrogates, numbers beyond a double, and excessive nesting."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        try:
            return orjson.loads(stream.read())
        except orjson.JSONDecodeError as error:
            raise ParseError(f"The body is not valid JSON: {error.msg}.") from None


class ProblemJSONRenderer(JSONRenderer):
    """JSON renderer; exceptions.handle_exception sets the media type of problem details."""

    charset = None


class JSONNegotiation(BaseContentNegotiation):
    def select_parser(self, request: Request, parsers: Sequence[BaseParser]) -> BaseParser | None:
        sent = (request.content_type or "").partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == sent), None)

    def select_renderer(
        self, request: Request, renderers: Sequence[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], str(renderers[0].media_type)


class EscapingRenderer(ProblemJSONRenderer):
    """JSON renderer in ASCII, as entity keys may hold lone surrogates."""

    ensure_ascii = True
