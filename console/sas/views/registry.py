"""The registry of shared access signatures: those made here and those seen, and what becomes of each."""

import re
from dataclasses import dataclass
from typing import Any, Final

from django.db import OperationalError
from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.sas import sas_registry, sas_words
from console.sas.forms import DescriptionForm
from console.sas.sas_registry import Row
from console.site.access import account_required, actor_of
from console.site.downloads import stream_file
from console.site.notices import notify_error, notify_success
from console.site.responses import render_part
from storage.domain import sas
from storage.domain.access.roles import Capability
from storage.domain.requests.observed import Authentication
from storage.domain.sas.explain import explain_token
from storage.domain.sas.known import ACCEPTED_STATES, KnownToken, TokenState
from storage.models import Account, StoredAccessPolicy, Table
from storage.operations import keys, usage
from storage.operations import sas as sas_operations

TOP: Final = 100
WEEK: Final = keys.WEEK

_FINGERPRINT = re.compile("[0-9a-f]{64}")


@require_safe
@account_required(Capability.MANAGE_ACCESS)
@never_cache
def index(request: HttpRequest, account: Account) -> HttpResponse:
    now = timezone.now()
    all_rows = sas_registry.rows(account, now)
    text, wanted = _asked(request)
    found = sas_registry.matching(all_rows, text, wanted)
    page = min(_number(request.GET.get("page", "")), max(0, (len(found) - 1) // TOP))
    context = {
        "rows": found[page * TOP : (page + 1) * TOP],
        "number": len(found),
        "total": len(all_rows),
        "q": text,
        "state": wanted,
        "states": [(it.value, word) for it, word in sas_words.STATES.items()],
        "previous": _address(account, text, wanted, page - 1) if page else "",
        "next": _address(account, text, wanted, page + 1) if (page + 1) * TOP < len(found) else "",
        "tables": _with_policies(account),
        "csv_url": _file(account, text, wanted, "csv"),
        "ndjson_url": _file(account, text, wanted, "ndjson"),
    }
    return render_part(request, page="console/sas/index.html", part="console/sas/_list.html", context=context)


def _with_policies(account: Account) -> list[Table]:
    """Those that have policies, each with them."""
    having = Table.objects.own().filter(account=account, policies__isnull=False).distinct()
    ordered = having.order_by("folded_name").prefetch_related(
        Prefetch("policies", StoredAccessPolicy.objects.order_by("place"))
    )
    return list(ordered[:TOP])


def _asked(request: HttpRequest) -> tuple[str, str]:
    wanted = request.GET.get("state", "")
    return request.GET.get("q", "")[:200], wanted if wanted in {it.value for it in TokenState} else ""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0


def _address(account: Account, text: str, wanted: str, page: int) -> str:
    asked = {"q": text, "state": wanted, "page": str(page) if page else ""}
    return f"{reverse('sas:index', args=(account.name,))}?{urlencode({k: v for k, v in asked.items() if v})}"


def _file(account: Account, text: str, wanted: str, form: str) -> str:
    asked = {"format": form, "q": text, "state": wanted}
    return f"{reverse('sas:export', args=(account.name,))}?{urlencode({k: v for k, v in asked.items() if v})}"


@require_safe
@account_required(Capability.MANAGE_ACCESS)
def export(request: HttpRequest, account: Account) -> HttpResponseBase:
    """What of them is known: never a signature, for that is not kept."""
    form = sas_registry.FORMS.get(request.GET.get("format", ""))
    if form is None:
        raise Http404
    found = sas_registry.matching(sas_registry.rows(account, timezone.now()), *_asked(request))
    name = f"{account.name}-sas.{form.extension}"
    return stream_file(request, form.write(found), content_type=form.content_type, filename=name)


# one of them


@dataclass(frozen=True, slots=True)
class Radius:
    """What else ends by one way of ending a token; ``uses`` within 24 hours, of clients that are known."""

    tokens: int
    uses: int
    clients: int = 0


@require_safe
@account_required(Capability.MANAGE_ACCESS)
@never_cache
def show(request: HttpRequest, account: Account, fingerprint: str) -> HttpResponse:
    return _show(request, account, fingerprint)


def _show(
    request: HttpRequest, account: Account, fingerprint: str, form: DescriptionForm | None = None
) -> HttpResponse:
    now = timezone.now()
    found = {it.known.fingerprint: it for it in sas_registry.rows(account, now)}
    shown = found.get(fingerprint)
    if shown is None:
        raise Http404
    known = shown.known
    context = {
        "row": shown,
        "known": known,
        "sentence": shown.sentence(account.name),
        "parameters": _explained(known, shown),
        "lines": sas.string_to_sign(known.token, account.name).split("\n"),
        "clients": usage.clients(account.pk, Authentication.SAS, fingerprint, now - WEEK),
        "of_policy": _of_policy(shown, list(found.values())),
        "of_key": _of_key(account, shown, list(found.values())),
        "form": form or DescriptionForm(_noted(known) if known.is_registered else None),
        "now": now,
    }
    status = 422 if form is not None else 200
    page, part = "console/sas/show.html", "console/sas/_token.html"
    return render_part(request, page=page, part=part, context=context, status=status)


def _noted(known: KnownToken) -> dict[str, str]:
    return {"label": known.label, "purpose": known.purpose, "owner": known.owner}


def _explained(known: KnownToken, shown: Row) -> list[dict[str, Any]]:
    return [
        {
            "name": it.name,
            "value": it.value,
            "label": sas_words.MEANINGS[it.meaning],
            "text": sas_words.explained(it, shown.now),
        }
        for it in explain_token(known.token)
    ]


def _of_policy(shown: Row, found: list[Row]) -> Radius | None:
    """Whatever names the same policy ends with it."""
    known = shown.known
    if not known.identifier or shown.state is TokenState.ORPHANED:
        return None
    named = [
        it.known
        for it in found
        if it.state in ACCEPTED_STATES
        and it.known.identifier == known.identifier
        and it.known.table.lower() == known.table.lower()
    ]
    return Radius(len(named), sum(it.uses for it in named))


def _of_key(account: Account, shown: Row, found: list[Row]) -> Radius | None:
    """Whatever the key signed ends with it, and whoever uses the key itself is cut off."""
    number = shown.known.key
    if number is None or shown.known.key_ends is not None:
        return None
    state = keys.state(account, number, shown.now)
    signed = [
        it.known
        for it in found
        if it.state in ACCEPTED_STATES and it.known.key == number and it.known.key_ends is None
    ]
    uses = sum(it.uses for it in signed) + state.uses
    return Radius(len(signed), uses, len(keys.clients(account, state, shown.now)))


@require_POST
@account_required(Capability.MANAGE_ACCESS)
def describe(request: HttpRequest, account: Account, fingerprint: str) -> HttpResponse:
    """Give it a label, and so keep it in the registry."""
    _check(account, fingerprint)
    form = DescriptionForm(request.POST)
    if not form.is_valid():
        return _show(request, account, fingerprint, form)
    done = sas_operations.describe(account, fingerprint, form.description(), by=actor_of(request))
    notify_success(request, _("Saved the notes.") if done else _("Nothing was changed."), undo=done)
    return redirect("sas:show", account.name, fingerprint)


@require_POST
@account_required(Capability.MANAGE_ACCESS)
def block(request: HttpRequest, account: Account, fingerprint: str) -> HttpResponse:
    """Refuse it from the next request on, or do so no more."""
    _check(account, fingerprint)
    blocked = request.POST.get("blocked") == "1"
    try:
        done = sas_operations.set_blocked(account, fingerprint, blocked=blocked, by=actor_of(request))
    except OperationalError:
        notify_error(
            request, _("Nothing was changed: a server or the database did not respond in time. Try again.")
        )
    else:
        told = (
            _("Blocked the token. Its requests are refused from now on.")
            if blocked
            else _("Unblocked the token.")
        )
        notify_success(request, told if done else _("Nothing was changed."), undo=done)
    return redirect("sas:show", account.name, fingerprint)


def _check(account: Account, fingerprint: str) -> None:
    is_one = _FINGERPRINT.fullmatch(fingerprint) is not None
    if not is_one or sas_operations.find(account, fingerprint, timezone.now()) is None:
        raise Http404
