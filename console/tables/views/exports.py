"""Export several tables as one file."""

from collections.abc import Generator, Sequence
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from console.grid.columns import Columns
from console.grid.formats import ExportFormat
from console.grid.tokens import Scope, Selection
from console.grid.views.exports import ExportRequest, escapes_formulas, write_export
from console.site.access import account_required, actor_of
from console.site.downloads import stream_bytes
from console.site.refusals import notify_refusals
from console.tables.list_query import read_list_query, selected_names
from storage.domain.access.actor import Actor
from storage.domain.access.roles import Capability
from storage.models import Account, Table
from storage.operations.tables import tables

_PIECE: Final = 64 * 1024  # bytes sent at once


@account_required(Capability.READ)
@require_POST
def export(request: HttpRequest, account: Account) -> HttpResponseBase:
    """Send a ZIP file with a typed CSV file for each table."""
    with notify_refusals(request):  # of a table that was deleted meanwhile
        chosen = [tables.get(account, name) for name in selected_names(request.POST)]
        escapes = escapes_formulas(request.POST, ExportFormat.TYPED_CSV)
        pieces = _zip(chosen, actor_of(request), escapes=escapes)
        return stream_bytes(request, pieces, content_type="application/zip", filename=f"{account.name}.zip")
    return redirect(read_list_query(request.POST).address(account))


def _zip(chosen: Sequence[Table], by: Actor, *, escapes: bool) -> Generator[bytes, None, None]:
    buffer = _Buffer()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for table in chosen:
            whole = Selection(Scope.TABLE)
            wanted = ExportRequest(
                table, whole, ExportFormat.TYPED_CSV, Columns(), by, escapes_formulas=escapes
            )
            # how large it gets is not known when it begins
            with archive.open(f"{table.name}.{wanted.format}", "w", force_zip64=True) as file:
                for piece in write_export(wanted):
                    file.write(piece)
                    if len(buffer.content) >= _PIECE:
                        yield buffer.take()
    yield buffer.take()


class _Buffer:
    """A file that cannot be read or sought; what was written to it is taken piece by piece."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, data: bytes) -> int:
        self.content += data
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing is kept back."""

    def close(self) -> None:
        """Do nothing: what was written can still be taken."""

    def take(self) -> bytes:
        taken, self.content = bytes(self.content), bytearray()
        return taken
