"""The stored access policies of a table: as a form or as XML, with what a save does to the tokens that are known."""

from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from console.policies import forms, policy_presets, policy_xml
from console.policies.forms import Draft
from console.policies.policy_effects import listed
from console.policies.policy_request import Asked
from console.site.access import account_required, actor_of, find_table
from console.site.notices import notify_error, notify_success
from console.site.responses import render_part, wants_part
from storage.domain.access.policies import SignedIdentifier, check_policies
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.service.activity import Verb
from storage.models import Account
from storage.operations import activity, policies, tables

PAGE: Final = "console/policies/show.html"
EDITOR: Final = "console/policies/_editor.html"


@account_required(Capability.READ)
@require_GET
def show(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """The editor, as a form or as XML."""
    found = find_table(account, table)
    if found.name != table:
        return redirect("policies:show", account.name, found.name, permanent=True)
    asked = Asked(request, account, found)
    stored = asked.stored()
    if request.GET.get("view") == "xml":
        return _answer_xml(asked, policy_xml.write(stored), stored)
    return _answer(asked, forms.write_draft(stored, asked.zone))


@account_required(Capability.MANAGE_ACCESS)
@require_POST
def save(request: HttpRequest, account: Account, table: str) -> HttpResponse:
    """What a button of the editor asks for; only one of them saves."""
    asked = Asked(request, account, find_table(account, table))
    what = request.POST.get("do", "save")
    if "xml" in request.POST:
        return _act_on_xml(asked, what)
    draft = forms.read_draft(request.POST, asked.zone)
    match what.split(":"):
        case ["save"]:
            return _save_draft(asked, draft)
        case ["preview"]:
            return _preview(asked, draft)
        case ["xml"]:
            return _turn_into_xml(asked, draft)
        case ["copy"]:
            return _copy(asked, draft)
        case _:
            return _answer(asked, *_changed(draft, what, request))


def _changed(draft: Draft, what: str, request: HttpRequest) -> tuple[Draft, dict[str, Any]]:
    """The draft after a button, and where the focus goes."""
    match what.split(":"):
        case ["add", template]:
            draft = policy_presets.added(draft, template)
            return draft, {"focus": f"{draft.rows[-1].id}-identifier"}
        case ["remove", id_]:
            return policy_presets.removed(draft, id_), {"focus": "add"}
        case ["expiry", id_, "date"]:
            text = request.POST.get(f"{id_}-date", "")
            return policy_presets.dated(draft, id_, text), {"focus": f"{id_}-expiry"}
        case ["start" | "expiry" as field, id_, name]:
            return policy_presets.preset(draft, id_, field, name), {"focus": f"{id_}-{field}"}
        case _:
            return draft, {}


# as a form


def _save_draft(asked: Asked, draft: Draft) -> HttpResponse:
    now = draft.now()
    told = draft.told(now)
    if told:
        return _answer(asked, draft, {"told": told}, status=422)
    try:
        return _save(asked, draft.read(now), draft.seen)
    except StorageError as error:
        notify_error(asked.request, error.text)
        return _answer(asked, draft, status=422)


def _save(
    asked: Asked, wanted: Sequence[SignedIdentifier], seen: Sequence[SignedIdentifier], *, xml: bool = False
) -> HttpResponse:
    """Unless somebody else saved since: then both sets are shown."""
    before = asked.stored()
    try:
        done = policies.replace(
            asked.account.pk, asked.table.folded_name, wanted, by=actor_of(asked.request), seen=seen
        )
    except activity.ChangedSince:
        return _conflict(asked, wanted)
    text = _told(asked, before, wanted) if done else _("Nothing was changed.")
    notify_success(asked.request, text, undo=done)
    return redirect(asked.address(xml=xml))


def _told(asked: Asked, before: Sequence[SignedIdentifier], after: Sequence[SignedIdentifier]) -> str:
    saved = _("Saved the policies of %(table)s.") % {"table": asked.table.name}
    revoked = asked.preview(before, after).revoked
    gone = {it.identifier for it in before} - {it.identifier for it in after}
    if revoked:
        said = ngettext(
            "%(number)s known token was revoked. Undo to restore it.",
            "%(number)s known tokens were revoked. Undo to restore them.",
            revoked,
        )
        return f"{saved} {said % {'number': revoked}}"
    if gone:
        said = _("Undo restores tokens that use %(identifiers)s.")
        return f"{saved} {said % {'identifiers': listed(sorted(gone))}}"
    return saved


def _preview(asked: Asked, draft: Draft) -> HttpResponse:
    """While somebody types: what has changed beside the fields, which are left alone."""
    if not wants_part(asked.request):
        return _answer(asked, draft, {"told": draft.told(draft.now())})
    context = {"table": asked.table, **asked.of_draft(draft), "beside": True}
    return render(asked.request, "console/policies/_changes.html", context)


def _copy(asked: Asked, draft: Draft) -> HttpResponse:
    """Nothing is saved by this."""
    try:
        source = tables.get(asked.account.pk, asked.request.POST.get("source", ""))
        copied = policies.stored(asked.account.pk, source.folded_name)
    except StorageError as error:
        notify_error(asked.request, error.text)
        return _answer(asked, draft)
    draft = policy_presets.copied(draft, copied)
    focus = f"{draft.rows[0].id}-identifier" if draft.rows else "add"
    return _answer(asked, draft, {"copied_from": source.name, "focus": focus})


def _answer(
    asked: Asked, draft: Draft, extra: dict[str, Any] | None = None, status: int = 200
) -> HttpResponse:
    return _render(asked, {**asked.of_draft(draft), **(extra or {})}, status)


# as XML


def _act_on_xml(asked: Asked, what: str) -> HttpResponse:
    text, seen = asked.request.POST["xml"], forms.read_seen(asked.request.POST.get("seen", "[]"))
    try:
        wanted = policy_xml.read(text, seen)
        if what == "form":
            draft = forms.write_draft(wanted, asked.zone, seen)
            return _answer(asked, draft, {"told": draft.told(draft.now())})
        check_policies(wanted)
        if what != "preview":
            return _save(asked, wanted, seen, xml=True)
    except StorageError as error:
        return _answer_xml(asked, text, seen, error=error, status=422 if what != "preview" else 200)
    return _answer_xml(asked, text, seen, wanted)


def _turn_into_xml(asked: Asked, draft: Draft) -> HttpResponse:
    """What is wrong in a form might not come back from XML."""
    now = draft.now()
    told = draft.told(now)
    if told:
        return _answer(asked, draft, {"told": told}, status=422)
    wanted = draft.read(now)
    return _answer_xml(asked, policy_xml.write(wanted), draft.seen, wanted)


def _answer_xml(
    asked: Asked,
    text: str,
    seen: Sequence[SignedIdentifier],
    wanted: Sequence[SignedIdentifier] | None = None,
    error: StorageError | None = None,
    status: int = 200,
) -> HttpResponse:
    """``wanted`` is what the text says; without it, that is what is stored, unless there is an error."""
    after = seen if wanted is None else wanted
    context: dict[str, Any] = {
        "xml": text,
        "seen": forms.write_seen(seen),
        "error": error,
        "at": policy_xml.position(error),
        "rules": policy_xml.broken_rules(text) if error else (),
        "preview": None if error else asked.preview(seen, after),
    }
    if asked.request.POST.get("do") == "preview" and wants_part(asked.request):
        context |= {"table": asked.table, "beside": True}
        return render(asked.request, "console/policies/_changes.html", context)
    return _render(asked, context, status)


def _render(asked: Asked, context: dict[str, Any], status: int) -> HttpResponse:
    context = {
        "table": asked.table,
        "told": {},
        "sources": policies.tables_with_policies(asked.account.pk, but=asked.table.pk),
        "is_draft": asked.request.method == "POST",
        "may_edit": asked.may_edit,
        **context,
    }
    response = render_part(asked.request, page=PAGE, part=EDITOR, context=context, status=status)
    if asked.request.method == "POST":
        response["HX-Replace-Url"] = asked.address(xml="xml" in context)
    return response


# when two edit at once


def _conflict(asked: Asked, mine: Sequence[SignedIdentifier]) -> HttpResponse:
    now = asked.stored()
    wanted = activity.ActivityFilter(
        account_ids=[asked.account.pk], verbs=[Verb.POLICIES_SET], table=asked.table.name
    )
    context = {
        "table": asked.table,
        "theirs": asked.sides(now, mine),
        "ours": asked.sides(mine, now),
        "draft": forms.write_draft(mine, asked.zone, now),
        "last": next(iter(activity.page(wanted, top=1).activities), None),
        "preview": asked.preview(now, mine),
    }
    page, part = "console/policies/conflict.html", "console/policies/_conflict.html"
    return render_part(asked.request, page=page, part=part, context=context, status=409)
