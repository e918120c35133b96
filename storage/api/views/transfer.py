"""Download the entities of a table as a file."""

from django.core.handlers.asgi import ASGIRequest
from django.http import StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request

from storage.api import problems
from storage.api.documentation import operation
from storage.api.problems import Problem
from storage.api.serializers import transfer as serializers
from storage.api.views.base import AccountScopedViewSet
from storage.domain.access.roles import Capability
from storage.domain.filters.parser import Dialect, parse
from storage.domain.service.quotas import DOWNLOADS
from storage.operations.accounts import quotas
from storage.operations.entities import exports
from storage.operations.entities.exports import PARQUET, Export, Scope
from storage.runtime.threads import Download, TooManyDownloads
from storage.transfer import parquet
from storage.transfer.layout import FileRefused

_JSON = "application/json"
_ENTITIES = {"type": "array", "items": {"type": "object"}}


class ExportViewSet(AccountScopedViewSet):
    tag = "Import and export"
    capabilities = {"export": Capability.READ}

    @operation(
        "export_table",
        "Export a table",
        "Streams all entities, or those that a filter finds, as a file of any size. Importing it makes equal entities,"
        " except from CSV without types. The export is recorded in the activity log.",
        query=serializers.ExportParameters,
        problems=[problems.CONFLICT],
        other_responses={
            (200, type_): _ENTITIES if type_ == _JSON else OpenApiTypes.BINARY
            for type_ in sorted(set(exports.MEDIA_TYPES.values()))
        },
    )
    def export(self, request: Request, account: str, table: str) -> StreamingHttpResponse:
        data, found = self.read_query(), self.table()
        filter_ = parse(data["filter"], Dialect.CONSOLE, timezone.now())
        if data["format"] == PARQUET:
            _check_library()
        wanted = Export(
            found,
            data["format"],
            self.by,
            Scope.TABLE if filter_ is None else Scope.QUERY,
            filter=filter_,
            text=data["filter"],
            escapes_formulas=data["escape_formulas"],
        )
        pieces = exports.write(wanted)
        # given a synchronous iterator, an ASGI server would first collect all of it
        is_streamed = isinstance(request._request, ASGIRequest)
        try:
            content = Download(pieces, f"token {self.token.pk}") if is_streamed else pieces
        except TooManyDownloads:
            detail = f"A token can have {quotas.limit(DOWNLOADS)} downloads at a time; finish one first."
            raise Problem(problems.TOO_MANY, detail, headers={"Retry-After": "5"}) from None
        name = f"{found.name}.{data['format']}"
        return StreamingHttpResponse(
            content,
            content_type=exports.MEDIA_TYPES[data["format"]],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


def _check_library() -> None:
    try:
        parquet.library()
    except FileRefused as error:
        raise Problem(problems.CONFLICT, str(error)) from None
