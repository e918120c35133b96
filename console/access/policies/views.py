"""Policy editor: a table's policies as a form or XML, with a preview of the impact on known tokens."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from console.access.policies import presets, xml_text
from console.access.policies.drafts import (
    SetDraft,
    draft_set,
    read_identifiers,
    write_identifiers,
)
from console.access.policies.effects import join_items
from console.access.policies.forms import BasePolicyFormSet, PolicyFormSet, write_data
from console.access.policies.requests import PolicyRequest
from console.site.access import actor_of, require_storage, table_page, table_required
from console.site.refusals import describe_refusal
from console.site.responses import render_page, wants_part
from console.site.toasts import notify_error, notify_success
from console.site.xml_text import error_position
from storage.access import policies
from storage.access.subject import AccessVerb
from storage.activity import activity
from storage.domain.access.policies import SignedIdentifier, check_policies
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.values.numbers import read_number
from storage.models import Table
from storage.tables import tables

_NOTHING: Final[Mapping[str, Any]] = {}


@table_page(Capability.READ)
@require_GET
def show(request: HttpRequest, table: Table) -> HttpResponse:
    require_storage(table.account)
    editor = PolicyRequest(request, table)
    stored = editor.stored()
    if request.GET.get("view") == "xml":
        return _render_xml(editor, xml_text.write_xml(stored), stored)
    return _render_draft(editor, draft_set(stored, editor.zone))


@table_required(Capability.MANAGE_ACCESS)
@require_POST
def save(request: HttpRequest, table: Table) -> HttpResponse:
    """Handle the pressed button of the editor; only "save" stores policies."""
    require_storage(table.account)
    editor = PolicyRequest(request, table)
    command = request.POST.get("do", "save")
    if "xml" in request.POST:
        return _submit_xml(editor, command)
    formset = PolicyFormSet(request.POST, zone=editor.zone)
    match command.split(":"):
        case ["save"]:
            return _save_form(editor, formset)
        case ["preview"]:
            return _preview_form(editor, formset)
        case ["xml"]:
            return _switch_to_xml(editor, formset)
        case ["copy"]:
            return _copy_from_table(editor, formset.draft)
        case ["add", template]:
            draft = presets.add_policy(formset.draft, template)
            return _render_draft(editor, draft, focus=(len(draft.rows) - 1, "identifier"))
        case ["remove", place]:
            draft = presets.remove_policy(formset.draft, _read_place(place))
            return _render_draft(editor, draft, {"focus_add": True})
        case ["expiry", place, "date"]:
            number = _read_place(place)
            text = request.POST.get(f"{formset.prefix}-{number}-date", "").strip()
            draft = presets.set_last_day(formset.draft, number, text)
            return _render_draft(editor, draft, focus=(number, "expiry"))
        case ["start" | "expiry" as field, place, name]:
            number = _read_place(place)
            draft = presets.set_preset(formset.draft, number, field, name)
            return _render_draft(editor, draft, focus=(number, field))
    return _render_draft(editor, formset.draft)


def _read_place(text: str) -> int:
    number = read_number(text, digits=2)
    return -1 if number is None else number


# as a form


def _save_form(editor: PolicyRequest, formset: BasePolicyFormSet) -> HttpResponse:
    if not formset.is_valid():
        return _render_form(editor, formset, status=422)
    try:
        return _replace_policies(editor, formset.identifiers, formset.draft.seen)
    except StorageError as error:
        notify_error(editor.request, describe_refusal(error))
        return _render_form(editor, formset, status=422)


def _replace_policies(
    editor: PolicyRequest,
    identifiers: Sequence[SignedIdentifier],
    seen: Sequence[SignedIdentifier],
    *,
    xml: bool = False,
) -> HttpResponse:
    """Save the policies, or show both sets on a conflict with a concurrent change."""
    before = editor.stored()
    try:
        done = policies.replace(editor.table, identifiers, by=actor_of(editor.request), seen=seen)
    except activity.ChangedSince:
        return _render_conflict(editor, identifiers)
    text = _describe_save(editor, before, identifiers) if done else _("Nothing was changed.")
    notify_success(editor.request, text, undo=done)
    return redirect(editor.page_address(xml=xml))


def _describe_save(
    editor: PolicyRequest, before: Sequence[SignedIdentifier], after: Sequence[SignedIdentifier]
) -> str:
    saved = _("Saved the policies of %(table)s.") % {"table": editor.table.name}
    revoked = editor.preview(before, after).revoked
    if revoked:
        text = ngettext(
            "%(number)s known token was revoked. Undo to restore it.",
            "%(number)s known tokens were revoked. Undo to restore them.",
            revoked,
        )
        return f"{saved} {text % {'number': revoked}}"
    removed = {it.identifier for it in before} - {it.identifier for it in after}
    if removed:
        text = _("Undo restores tokens that use %(identifiers)s.")
        return f"{saved} {text % {'identifiers': join_items(sorted(removed))}}"
    return saved


def _preview_form(editor: PolicyRequest, formset: BasePolicyFormSet) -> HttpResponse:
    """Render the preview; for htmx only the notes, as the fields are being edited."""
    if not wants_part(editor.request):
        return _render_form(editor, formset)
    context = {"table": editor.table, **editor.form_context(formset), "beside": True}
    return render(editor.request, "console/access/policies/_changes.html", context)


def _copy_from_table(editor: PolicyRequest, draft: SetDraft) -> HttpResponse:
    """Fill the form with the policies of another table."""
    try:
        source = tables.get(editor.table.account, editor.request.POST.get("source", ""))
        copied = policies.stored(source)
    except StorageError as error:
        notify_error(editor.request, describe_refusal(error))
        return _render_draft(editor, draft)
    draft = presets.copy_policies(draft, copied)
    context = {"copied_from": source.name, "focus_add": not draft.rows}
    return _render_draft(editor, draft, context, focus=(0, "identifier") if draft.rows else None)


def _render_draft(
    editor: PolicyRequest,
    draft: SetDraft,
    extra: Mapping[str, Any] = _NOTHING,
    *,
    focus: tuple[int, str] | None = None,
) -> HttpResponse:
    formset = PolicyFormSet(draft=draft)
    if focus is not None and 0 <= focus[0] < len(formset.forms):
        place, name = focus
        formset.forms[place].fields[name].widget.attrs["autofocus"] = True
    return _render_form(editor, formset, extra)


def _render_form(
    editor: PolicyRequest,
    formset: BasePolicyFormSet,
    extra: Mapping[str, Any] = _NOTHING,
    *,
    status: int = 200,
) -> HttpResponse:
    return _render_editor(editor, {**editor.form_context(formset), **extra}, status)


# as XML


def _submit_xml(editor: PolicyRequest, command: str) -> HttpResponse:
    text, seen = editor.request.POST["xml"], read_identifiers(editor.request.POST.get("seen", "[]"))
    try:
        identifiers = xml_text.read_edited(text, seen)
        if command == "form":
            data = write_data(draft_set(identifiers, editor.zone, seen))
            return _render_form(editor, PolicyFormSet(data, zone=editor.zone))
        check_policies(identifiers)
        if command != "preview":
            return _replace_policies(editor, identifiers, seen, xml=True)
    except StorageError as error:
        return _render_xml(editor, text, seen, error=error, status=422 if command != "preview" else 200)
    return _render_xml(editor, text, seen, identifiers)


def _switch_to_xml(editor: PolicyRequest, formset: BasePolicyFormSet) -> HttpResponse:
    """Switch a valid form to XML; invalid texts would be lost."""
    if not formset.is_valid():
        return _render_form(editor, formset, status=422)
    identifiers = formset.identifiers
    return _render_xml(editor, xml_text.write_xml(identifiers), formset.draft.seen, identifiers)


def _render_xml(
    editor: PolicyRequest,
    text: str,
    seen: Sequence[SignedIdentifier],
    identifiers: Sequence[SignedIdentifier] | None = None,
    *,
    error: StorageError | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the XML editor; ``identifiers`` are the policies in the text, by default the stored ones."""
    context: dict[str, Any] = {
        "xml": text,
        "seen": write_identifiers(seen),
        "error": error,
        "at": error_position(error),
        "rules": xml_text.broken_rules(text) if error else (),
        "preview": None if error else editor.preview(seen, seen if identifiers is None else identifiers),
    }
    if editor.request.POST.get("do") == "preview" and wants_part(editor.request):
        context |= {"table": editor.table, "beside": True}
        return render(editor.request, "console/access/policies/_changes.html", context)
    return _render_editor(editor, context, status)


def _render_editor(editor: PolicyRequest, context: Mapping[str, Any], status: int) -> HttpResponse:
    is_draft = editor.request.method == "POST"
    response = render_page(
        editor.request,
        "console/access/policies/show.html",
        {
            "table": editor.table,
            "sources": policies.tables_with_policies(editor.table.account, except_table=editor.table),
            "is_draft": is_draft,
            "may_edit": editor.may_edit,
            **context,
        },
        status=status,
    )
    if is_draft:
        response["HX-Replace-Url"] = editor.page_address(xml="xml" in context)
    return response


def _render_conflict(editor: PolicyRequest, mine: Sequence[SignedIdentifier]) -> HttpResponse:
    stored = editor.stored()
    changes = activity.ActivityFilter(
        account_ids=[editor.table.account.pk], verbs=[AccessVerb.POLICIES_SET], table=editor.table.name
    )
    context = {
        "table": editor.table,
        "theirs": editor.compare(stored, mine),
        "ours": editor.compare(mine, stored),
        "fields": write_data(draft_set(mine, editor.zone, stored)),
        "last": next(iter(activity.page(changes, top=1).activities), None),
        "preview": editor.preview(stored, mine),
    }
    return render_page(editor.request, "console/access/policies/conflict.html", context, status=409)
