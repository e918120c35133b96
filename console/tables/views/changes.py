"""Creation, deletion, restoration and tagging of tables."""

from collections.abc import Callable, Sequence

from django import forms
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from console.site.access import account_required, actor_of
from console.site.addresses import is_console_path
from console.site.refusals import describe_refusal, notify_refusals
from console.site.responses import render_part
from console.site.toasts import notify_error, notify_success
from console.tables.forms import NewTableForm, TagsField
from console.tables.list_query import read_list_query, selected_names
from storage.activity import activity
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError, TableAlreadyExists
from storage.models import Account, Activity, Table
from storage.tables import samples, table_list, tables
from storage.tables.subject import TableVerb
from storage.tables.tables import DELETED_TABLE_RETENTION


@account_required(Capability.MANAGE_TABLES)
def new(request: HttpRequest, account: Account) -> HttpResponse:
    """Show the form, validate a name while typing (GET), or create the table."""
    is_saved = request.method == "POST"
    data = request.POST if is_saved else request.GET if "name" in request.GET else None
    form = NewTableForm(data, account=account)
    if is_saved and form.is_valid():
        table = _create_table(request, account, form)
        if table is not None:
            done = activity.latest(table, TableVerb.CREATE)
            notify_success(request, _("Created %(table)s.") % {"table": table.name}, undo=done)
            return redirect("entities:index", account.name, table.name)
    context = {"form": form, "tags": table_list.tags(account)}
    if is_saved:
        return render(request, "console/tables/new.html", context, status=422)
    return render_part(request, "console/tables/new.html", "components/name_rules.html", context)


def _create_table(request: HttpRequest, account: Account, form: NewTableForm) -> Table | None:
    values, actor = form.cleaned_data, actor_of(request)
    try:
        table = tables.create(account, values["name"], by=actor)
        if values["description"] or values["tags"]:
            tables.change(table, by=actor, description=values["description"], tags=values["tags"])
    except TableAlreadyExists:  # since the form was checked
        form.add_error("name", _("This name is not available."))
    except StorageError as error:
        form.add_error(None, describe_refusal(error))
    else:
        return table
    return None


@account_required(Capability.MANAGE_TABLES)
@require_POST
def sample(request: HttpRequest, account: Account) -> HttpResponse:
    with notify_refusals(request):
        table = samples.create(account, by=actor_of(request))
        text = _("Created %(table)s with %(number)s entities.")
        notify_success(request, text % {"table": table.name, "number": samples.ROWS})
        return redirect("entities:index", account.name, table.name)
    return redirect("tables:index", account.name)


@account_required(Capability.MANAGE_TABLES)
@require_POST
def delete(request: HttpRequest, account: Account) -> HttpResponse:
    """Delete immediately, as that can be undone; a protected account requires typing its name."""
    names = selected_names(request.POST)
    if account.protected and request.POST.get("confirm") != account.name:
        context = {
            "names": names,
            "query": read_list_query(request.POST),
            "is_wrong": "confirm" in request.POST,
        }
        return render(request, "console/tables/delete.html", context, status=422)
    actor = actor_of(request)
    done: list[Activity] = []
    for name in names:
        try:
            done.append(tables.delete(account, name, by=actor, keep=DELETED_TABLE_RETENTION))
        except StorageError as error:
            notify_error(request, f"{name}: {describe_refusal(error)}")
    several = ngettext(
        "Deleted %(number)s table. You can restore it for 7 days.",
        "Deleted %(number)s tables. You can restore them for 7 days.",
        len(done),
    )
    return _answer(request, account, _("Deleted %(name)s. You can restore it for 7 days."), several, done)


@account_required(Capability.MANAGE_TABLES)
@require_POST
def add_tags(request: HttpRequest, account: Account) -> HttpResponse:
    done = _change_tags(request, account, _merge_tags)
    several = ngettext("Tagged %(number)s table.", "Tagged %(number)s tables.", len(done))
    return _answer(request, account, _("Tagged %(name)s."), several, done)


@account_required(Capability.MANAGE_TABLES)
@require_POST
def remove_tags(request: HttpRequest, account: Account) -> HttpResponse:
    done = _change_tags(request, account, _without_tags)
    several = ngettext(
        "Removed tags from %(number)s table.", "Removed tags from %(number)s tables.", len(done)
    )
    return _answer(request, account, _("Removed tags from %(name)s."), several, done)


def _change_tags(
    request: HttpRequest, account: Account, change: Callable[[Sequence[str], Sequence[str]], list[str]]
) -> list[Activity]:
    """Change the tags of the selected tables, all or none; ``change`` combines present and given tags."""
    actor = actor_of(request)
    try:
        with notify_refusals(request):
            given = TagsField().clean(request.POST.get("add", ""))
            selected = [tables.get(account, name) for name in selected_names(request.POST)]
            lists = [(table, change(table.tags, given)) for table in selected]
            with transaction.atomic():
                results = [tables.change(table, by=actor, tags=tags) for table, tags in lists]
            return [result for result in results if result is not None]
    except forms.ValidationError as error:
        notify_error(request, " ".join(error.messages))
    return []


def _answer(
    request: HttpRequest, account: Account, one: str, several: str, done: Sequence[Activity]
) -> HttpResponse:
    """Report the result in a toast; a single table is named, which plural forms cannot do in all languages."""
    if done:
        text = (several if len(done) > 1 else one) % {"name": done[0].table_name, "number": len(done)}
        notify_success(request, text, undo=done)
    return redirect(read_list_query(request.POST).address(account))


def _merge_tags(tags: Sequence[str], added: Sequence[str]) -> list[str]:
    found: list[str] = TagsField().clean(",".join([*tags, *added]))
    return found


def _without_tags(tags: Sequence[str], removed: Sequence[str]) -> list[str]:
    folded = {tag.casefold() for tag in removed}
    return [tag for tag in tags if tag.casefold() not in folded]


@account_required(Capability.MANAGE_TABLES)
@require_POST
def restore(request: HttpRequest, account: Account) -> HttpResponse:
    number = request.POST.get("table", "")
    table = next((table for table in tables.deleted(account) if str(table.pk) == number), None)
    if table is None:
        notify_error(request, _("This table can no longer be restored."))
        return redirect("tables:index", account.name)
    try:
        tables.restore(table, by=actor_of(request))
    except TableAlreadyExists:
        notify_error(
            request, _("Another table is named %(table)s now. Delete it first.") % {"table": table.name}
        )
    except StorageError as error:
        notify_error(request, describe_refusal(error))
    else:
        notify_success(request, _("Restored %(table)s.") % {"table": table.name})
        if is_console_path(wanted_page := request.POST.get("next", "")):
            return redirect(wanted_page)
    return redirect("tables:index", account.name)
