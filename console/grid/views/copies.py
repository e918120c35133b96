"""Copying of entities to the clipboard, with full values in several formats."""

from typing import Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from console import snippets
from console.grid import columns, formats, tokens
from console.grid.time_travel import find_past
from console.site.access import table_required
from console.site.refusals import describe_refusal
from console.snippets.connections import snippet_target
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import StoredEntity, property_names, read_stored, write_document
from storage.domain.errors import StorageError
from storage.models import Table

LIMIT: Final = 10_000  # entities; more belong in a file
SIZE_LIMIT: Final = 16 * 1024 * 1024  # bytes, of all of them
_LANGUAGES: Final = ("python", "javascript")


@require_POST
@table_required(Capability.READ)
def copy(request: HttpRequest, table: Table) -> HttpResponse:
    """Respond with ``text`` in the format ``as``, and ``html`` for programs that prefer it."""
    try:
        stored = _stored(table, request)
    except StorageError as error:
        return JsonResponse({"error": describe_refusal(error)}, status=422)
    if len(stored) > LIMIT or _size(stored) > SIZE_LIMIT:
        return JsonResponse(
            {"error": _("Too many entities to copy. Export them to a file instead.")}, status=422
        )
    answer = JsonResponse(_written(request, table, stored))
    answer["Cache-Control"] = "no-store"
    return answer


def _stored(table: Table, request: HttpRequest) -> list[StoredEntity]:
    collected: list[StoredEntity] = []
    size = 0
    then = find_past(request.POST, table)
    for page in tokens.selected_pages(table, tokens.read_selection(request.POST), then):
        collected += page
        size += _size(page)
        if len(collected) > LIMIT or size > SIZE_LIMIT:
            break
    if request.POST.get("order") == "given":
        places = {token: place for place, token in enumerate(request.POST.getlist("key"))}
        collected.sort(key=lambda stored: places[tokens.encode_key(stored.key)])
    return collected


def _size(stored: list[StoredEntity]) -> int:
    return sum(len(one.content) for one in stored)


def _written(request: HttpRequest, table: Table, stored: list[StoredEntity]) -> dict[str, object]:
    form = request.POST.get("as", "tsv")
    names = _names(request, stored)
    if form in formats.WRITERS:
        heads = names if "head" in request.POST else []
        rows = [formats.column_texts(one, names) for one in stored]
        if form == "tsv" and len(rows) == len(names) == 1 and not heads:
            return {"text": rows[0][0], "count": 1}  # one value, as it is
        text = formats.WRITERS[form](rows, names if form != "tsv" else heads)
        html = formats.write_table(rows, heads) if form == "tsv" else None
        return {"text": text, "html": html, "count": len(stored)}
    return {"text": _as(form, request, table, stored), "count": len(stored)}


def _names(request: HttpRequest, stored: list[StoredEntity]) -> list[str]:
    """Return the requested columns; all by default."""
    if asked := request.POST.getlist("column"):
        return asked
    seen = property_names(stored)
    return [choice.name for choice in columns.arrange_columns(columns.DEFAULT, seen)]


def _as(form: str, request: HttpRequest, table: Table, stored: list[StoredEntity]) -> str:
    if form == "ndjson":
        return "".join(write_document(one).decode() + "\n" for one in stored)
    if form in _LANGUAGES:
        entities = [read_stored(one) for one in stored]
        return snippets.LANGUAGES[form].write_insertion(snippet_target(request, table), entities)
    if form == "address":
        path = request.build_absolute_uri(reverse("entities:show", args=(table.account.name, table.name)))
        return "\n".join(f"{path}?{tokens.key_query(one.key)}" for one in stored)
    if len(stored) == 1:
        return formats.write_pretty_document(stored[0])
    return "[" + ",\n".join(map(formats.write_pretty_document, stored)) + "]"
