"""Exports of entities: selected ones, query results, or a whole table."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.text import get_valid_filename
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from console.grid import columns, tokens
from console.grid.state import read_state
from console.grid.time_travel import find_past
from console.grid.tokens import Scope
from console.site.access import actor_of, table_required
from console.site.addresses import is_console_path
from console.site.downloads import stream_bytes
from console.site.refusals import describe_refusal
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.filters.query import EntityQuery
from storage.domain.refusals import Refused
from storage.entities import entities
from storage.entities.entities import Total
from storage.models import Table
from storage.tables import table_list
from storage.tabular.writing import ExportFormat
from storage.transfer import export_jobs, exports
from storage.transfer.exports import MEDIA_TYPES, Export

_LABELS: Final[Mapping[str, str | Promise]] = {
    ExportFormat.TYPED_CSV: gettext_lazy("CSV with types (Storage Explorer format)"),
    ExportFormat.CSV: gettext_lazy("CSV without types"),
    ExportFormat.JSON: gettext_lazy("JSON with types"),
    ExportFormat.NDJSON: gettext_lazy("JSON with types, one entity per line (NDJSON)"),
    exports.PARQUET: "Parquet",
    exports.EXCEL: "Excel",
}


@require_http_methods(["GET", "POST"])
@table_required(Capability.READ)
def export(request: HttpRequest, table: Table) -> HttpResponseBase:
    """Show the choice of scope and format, or send the file."""
    if request.method == "GET" or "format" not in request.POST:
        return _ask(request, table)
    try:
        chosen = tokens.read_selection(request.POST)
        then = find_past(request.POST, table)
    except StorageError as error:
        return _ask(request, table, describe_refusal(error))
    format_ = request.POST["format"]
    if format_ not in exports.FORMATS:
        return _ask(request, table, _("Unknown format."))
    asked = columns.parse_columns(request.POST.get("cols", ""))
    escapes = escapes_formulas(request.POST, format_)
    exported = Export(
        table,
        format_,
        actor_of(request),
        chosen.scope,
        chosen.keys,
        chosen.filter,
        chosen.text,
        [choice.name for choice in asked.choices],
        then,
        escapes,
    )
    try:
        exports.require_library(format_)
        if "job" in request.POST and chosen.scope is not Scope.ROWS and then is None:
            return redirect("jobs:show", export_jobs.start(exported).pk)
        pieces = exports.start(exported)
    except Refused as refused:
        return _ask(request, table, describe_refusal(refused))
    name = get_valid_filename(f"{table.name}{f' {then.moment}' if then else ''}.{format_}")
    return stream_bytes(request, pieces, content_type=MEDIA_TYPES[format_], filename=name)


def escapes_formulas(sent: QueryDict, format_: str) -> bool:
    """Return whether to escape formulas: by default in plain CSV, for spreadsheets, but not in typed CSV."""
    return "keep_formulas" not in sent if format_ == ExportFormat.CSV else "escape_formulas" in sent


def _formats() -> list[tuple[str, str | Promise, str]]:
    """Return the formats with their labels, each with the reason why it is not available."""
    missing = ((it, exports.missing_library(it)) for it in exports.FORMATS)
    return [
        (it, _LABELS[it], "" if refused is None else describe_refusal(refused)) for it, refused in missing
    ]


def _ask(request: HttpRequest, table: Table, error: str = "") -> HttpResponse:
    asked = request.POST if request.method == "POST" else request.GET
    state = read_state(asked, table)
    keys = asked.getlist("key")
    then = None
    try:
        then = find_past(asked, table)
    except StorageError as failure:
        error = describe_refusal(failure)
    scopes: list[tuple[Scope, int | None, bool]] = [(Scope.ROWS, len(keys), True)] if keys else []
    if state.filter and not error:
        try:
            total = entities.total(table, EntityQuery(filter=state.wanted.filter), then)
        except StorageError as failure:  # the whole table can still be exported
            error = describe_refusal(failure)
        else:
            scopes.append((Scope.QUERY, total.number, total.is_exact))
    back = asked.get("next", "")
    overview = table_list.describe(table)
    whole = (
        Total(overview.entities, overview.is_exact)
        if then is None
        else entities.total(table, EntityQuery(), then)
    )
    scopes.append((Scope.TABLE, whole.number, whole.is_exact))
    context: dict[str, Any] = {
        "table": overview,
        "state": state,
        "keys": keys,
        "scopes": scopes,
        "scope": asked.get("scope") or scopes[0][0],
        "formats": _formats(),
        "error": error,
        "here": back if is_console_path(back) else state.address(table),
    }
    return render(request, "console/grid/export.html", context, status=422 if error else 200)
