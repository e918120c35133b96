"""The tables of an account: the list, making and deleting them, and what people note about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from console.site.access import account_context, account_required, actor_of, find_table
from console.site.forms import changed_values
from console.site.notices import notify_error, notify_success
from console.site.responses import render_part, wants_part
from console.snippets import connections
from console.tables.forms import NewTableForm, NotesForm, TagsField
from storage.domain.access.roles import Capability, may
from storage.domain.errors import StorageError, TableAlreadyExists
from storage.domain.filters.query import EntityQuery
from storage.domain.service.activity import Verb
from storage.models import Account, Activity, Table
from storage.operations import activity, entities, samples, table_list, tables
from storage.operations.table_list import Listing, Size
from storage.operations.tables import DELETED_TABLE_RETENTION

SNIPPET: Final = """\
from azure.data.tables import TableServiceClient

service = TableServiceClient.from_connection_string(
    "%s"
)
service.create_table("people")
"""


@dataclass(frozen=True, slots=True)
class State:
    """What the address says."""

    containing: str = ""
    tag: str = ""
    after: str = ""

    def address(self, account: Account, name: str = "tables:index", **changed: str) -> str:
        query = QueryDict(mutable=True)
        found = {"q": self.containing, "tag": self.tag, "after": self.after} | changed
        query.update({name: value for name, value in found.items() if value})
        path = reverse(name, args=(account.name,))
        return f"{path}?{query.urlencode()}" if query else path


def _read_state(data: QueryDict) -> State:
    return State(*(data.get(name, "").strip().replace("\0", "") for name in ("q", "tag", "after")))


@account_required(Capability.READ)
@require_GET
def index(request: HttpRequest, account: Account) -> HttpResponse:
    """A page of them by name; how large they are is asked for by the page itself."""
    state = _read_state(request.GET)
    context = {**_listing_context(request, account, state), "is_part": wants_part(request)}
    response = render_part(
        request, page="console/tables/index.html", part="console/tables/_list.html", context=context
    )
    response["HX-Replace-Url"] = state.address(account)
    return response


def _listing_context(request: HttpRequest, account: Account, state: State) -> dict[str, Any]:
    listing = _page(account, state)
    context: dict[str, Any] = {
        "listing": listing,
        "state": state,
        "is_filtered": bool(state.containing or state.tag),
        "first": state.address(account, after=""),
        "next": state.address(account, after=listing.next) if listing.next else "",
        "without_tag": state.address(account, tag="", after=""),
        "sizes_url": state.address(account, "tables:sizes"),
        "tags": table_list.tags(account.pk),
        # for browsers without scripts
        "sizes": table_list.sizes(listing.tables) if "sizes" in request.GET else {},
    }
    if not context["is_filtered"] and not state.after:
        context |= _of_whole_account(request, account, listing)
    return context


def _page(account: Account, state: State) -> Listing:
    return table_list.page(account.pk, containing=state.containing, tag=state.tag, start=state.after)


def _of_whole_account(request: HttpRequest, account: Account, listing: Listing) -> dict[str, Any]:
    """What stands below the first page."""
    place = account_context(request)
    may_restore = place is not None and may(place.role, Capability.MANAGE_TABLES)
    found: dict[str, Any] = {"deleted": _deleted(account) if may_restore else []}
    if not listing.total:
        found["snippet"] = SNIPPET % connections.shown(account, connections.endpoint(request, account))
    return found


@dataclass(frozen=True, slots=True)
class Deleted:
    table: Table
    days_left: int


def _deleted(account: Account) -> list[Deleted]:
    now = timezone.now()
    return [
        Deleted(table, -((now - table.kept_until) // timedelta(days=1)))  # a day that has begun counts
        for table in tables.deleted(account.pk)
        if table.kept_until is not None
    ]


@account_required(Capability.READ)
@require_GET
def sizes(request: HttpRequest, account: Account) -> HttpResponse:
    """Of a page of the list, for it to fill in; or of one table, as exactly as can be told in time."""
    if "exactly" in request.GET:
        found = find_table(account, request.GET["exactly"])
        context = {"table": found, "size": _counted(found), "is_tried": True}
        return render(request, "console/tables/_entities.html", context)
    listing = _page(account, _read_state(request.GET))
    context = {"listing": listing, "sizes": table_list.sizes(listing.tables)}
    return render(request, "console/tables/_sizes.html", context)


def _counted(table: Table) -> Size:
    size = table_list.sizes([table])[table.name]
    try:
        return replace(size, entities=entities.count(table, EntityQuery()), is_exact=True)
    except StorageError:  # it takes too long
        return size


@account_required(Capability.MANAGE_TABLES)
def new(request: HttpRequest, account: Account) -> HttpResponse:
    """A name in the address is one that is tried while it is typed."""
    is_saved = request.method == "POST"
    data = request.POST if is_saved else request.GET if "name" in request.GET else None
    form = NewTableForm(data, account=account)
    if is_saved and form.is_valid():
        made = _create(request, account, form)
        if made is not None:
            done = activity.latest(made, Verb.TABLE_CREATE)
            notify_success(request, _("Created %(table)s.") % {"table": made.name}, undo=done)
            return redirect("entities:index", account.name, made.name)
    context = {"form": form, "tags": table_list.tags(account.pk)}
    if is_saved:
        return render(request, "console/tables/new.html", context, status=422)
    return render_part(
        request, page="console/tables/new.html", part="console/tables/_name_rules.html", context=context
    )


def _create(request: HttpRequest, account: Account, form: NewTableForm) -> Table | None:
    found = form.cleaned_data
    actor = actor_of(request)
    try:
        table = tables.create(account.pk, found["name"], by=actor)
        if found["description"] or found["tags"]:
            tables.change(table, by=actor, description=found["description"], tags=found["tags"])
    except TableAlreadyExists:  # a moment ago
        form.add_error("name", _("This name is not available."))
    except StorageError as error:
        form.add_error(None, error.text)
    else:
        return table
    return None


@account_required(Capability.MANAGE_TABLES)
@require_POST
def sample(request: HttpRequest, account: Account) -> HttpResponse:
    try:
        table = samples.create(account, by=actor_of(request))
    except StorageError as error:
        notify_error(request, error.text)
        return redirect("tables:index", account.name)
    text = _("Created %(table)s with %(number)s entities.") % {"table": table.name, "number": samples.ROWS}
    notify_success(request, text)
    return redirect("entities:index", account.name, table.name)


@account_required(Capability.MANAGE_TABLES)
@require_POST
def delete(request: HttpRequest, account: Account) -> HttpResponse:
    """At once, for it can be undone; of a protected account only by who types its name."""
    names = _chosen(request.POST)
    if account.protected and request.POST.get("confirm") != account.name:
        context = {"names": names, "state": _read_state(request.POST), "is_wrong": "confirm" in request.POST}
        return render(request, "console/tables/delete.html", context, status=422)
    actor = actor_of(request)
    done: list[Activity] = []
    for name in names:
        try:
            done.append(tables.delete(account.pk, name, by=actor, keep=DELETED_TABLE_RETENTION))
        except StorageError as error:
            notify_error(request, f"{name}: {error.text}")
    if done:
        one = _("Deleted %(name)s.")
        several = ngettext("Deleted %(number)s table.", "Deleted %(number)s tables.", len(done))
        notify_success(request, _told(one, several, done), undo=done)
    return redirect(_read_state(request.POST).address(account))


@account_required(Capability.MANAGE_TABLES)
@require_POST
def tag(request: HttpRequest, account: Account) -> HttpResponse:
    """Adds tags to several tables."""
    back = redirect(_read_state(request.POST).address(account))
    actor = actor_of(request)
    try:
        wanted = TagsField().clean(request.POST.get("add", ""))
        found = [tables.get(account.pk, name) for name in _chosen(request.POST)]
        lists = [_joined(table.tags, wanted) for table in found]
        with transaction.atomic():  # all of them or none
            results = [
                tables.change(table, by=actor, tags=tags) for table, tags in zip(found, lists, strict=True)
            ]
    except forms.ValidationError as error:
        notify_error(request, " ".join(error.messages))
        return back
    except StorageError as error:
        notify_error(request, error.text)
        return back
    done = [result for result in results if result is not None]
    if done:
        one = _("Tagged %(name)s.")
        several = ngettext("Tagged %(number)s table.", "Tagged %(number)s tables.", len(done))
        notify_success(request, _told(one, several, done), undo=done)
    return back


def _told(one: str, several: str, done: Sequence[Activity]) -> str:
    """A single table by its name; in a language of one plural form no plural could tell which it is."""
    return (several if len(done) > 1 else one) % {"name": done[0].table_name, "number": len(done)}


def _joined(tags: Sequence[str], added: Sequence[str]) -> list[str]:
    found: list[str] = TagsField().clean(",".join([*tags, *added]))
    return found


def _chosen(data: QueryDict) -> list[str]:
    """The names of the tables that were ticked."""
    return list(dict.fromkeys(data.getlist("table")))


@account_required(Capability.MANAGE_TABLES)
@require_POST
def restore(request: HttpRequest, account: Account) -> HttpResponse:
    """Brings a deleted table back."""
    wanted = request.POST.get("table", "")
    table = next((table for table in tables.deleted(account.pk) if str(table.pk) == wanted), None)
    if table is None:
        notify_error(request, _("This table can no longer be restored."))
        return redirect("tables:index", account.name)
    try:
        tables.restore(table.pk, by=actor_of(request))
    except TableAlreadyExists:
        notify_error(
            request, _("Another table is named %(table)s now. Delete it first.") % {"table": table.name}
        )
    except StorageError as error:
        notify_error(request, error.text)
    else:
        notify_success(request, _("Restored %(table)s.") % {"table": table.name})
    return redirect("tables:index", account.name)


@account_required(Capability.READ)
@require_GET
def settings(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """What people note about a table, and what there is to know about it."""
    found = find_table(account, table)
    if found.name != table:
        return redirect("tables:settings", account.name, found.name, permanent=True)
    return _settings(request, account, found, NotesForm(initial=_notes(found)))


@account_required(Capability.MANAGE_TABLES)
@require_POST
def note(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """Description and tags."""
    found = find_table(account, table)
    form = NotesForm(request.POST)
    if not form.is_valid():
        return _settings(request, account, found, form)
    try:
        done = tables.change(found, by=actor_of(request), **changed_values(form))
    except StorageError as error:
        form.add_error(None, error.text)
        return _settings(request, account, found, form)
    notify_success(request, _("Saved the notes for %(table)s.") % {"table": found.name}, undo=done)
    return redirect("tables:settings", account.name, found.name)


def _settings(request: HttpRequest, account: Account, table: Table, form: NotesForm) -> HttpResponse:
    context = {
        "table": table,
        "form": form,
        "size": table_list.sizes([table])[table.name],
        "parts": table_list.disk_usage(table),
        "tags": table_list.tags(account.pk),
    }
    return render(request, "console/tables/settings.html", context, status=422 if form.errors else 200)


def _notes(table: Table) -> dict[str, Any]:
    return {"description": table.description, "tags": table.tags}
