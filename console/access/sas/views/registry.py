"""Registry of SAS tokens: the list, its export, and a page per token with the ways to revoke it."""

import re
from dataclasses import dataclass
from typing import Final

from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.access.sas.fields import DescriptionForm
from console.access.sas.labels import STATES
from console.access.sas.registry import (
    FIELDS,
    RegistryRow,
    filter_rows,
    list_tokens,
)
from console.access.sas.sentences import view_parameters
from console.site.access import account_required, actor_of
from console.site.downloads import stream_list
from console.site.responses import render_page
from console.site.toasts import notify_error, notify_success
from storage.access import keys, policies
from storage.access import sas as sas_operations
from storage.domain import sas
from storage.domain.access.roles import Capability
from storage.domain.requests.observed import Authentication
from storage.domain.sas import to_parameters
from storage.domain.sas.explain import explain
from storage.domain.sas.known import ACCEPTED_STATES, TokenState
from storage.domain.values.numbers import read_number
from storage.metrics import usage
from storage.models import Account
from storage.rest.lookups import or_404

PAGE_SIZE: Final = 100

_FINGERPRINT = re.compile("[0-9a-f]{64}")


@require_safe
@account_required(Capability.MANAGE_ACCESS)
@never_cache
def index(request: HttpRequest, account: Account) -> HttpResponse:
    now = timezone.now()
    all_rows = list_tokens(account, now)
    text, state = _read_filter(request)
    matching = filter_rows(all_rows, text, state)
    page = min(
        read_number(request.GET.get("page", ""), digits=5) or 0, max(0, (len(matching) - 1) // PAGE_SIZE)
    )
    query = {"q": text, "state": state}
    context = {
        "rows": matching[page * PAGE_SIZE : (page + 1) * PAGE_SIZE],
        "number": len(matching),
        "total": len(all_rows),
        "q": text,
        "state": state,
        "states": [(it.value, word) for it, word in STATES.items()],
        "previous": _address("sas:index", account, **query, page=str(page - 1)) if page else "",
        "next": _address("sas:index", account, **query, page=str(page + 1))
        if (page + 1) * PAGE_SIZE < len(matching)
        else "",
        "tables": policies.first_tables(account, PAGE_SIZE),
        "csv_url": _address("sas:export", account, format="csv", **query),
        "ndjson_url": _address("sas:export", account, format="ndjson", **query),
    }
    return render_page(request, "console/access/sas/index.html", context)


def _read_filter(request: HttpRequest) -> tuple[str, str]:
    wanted = request.GET.get("state", "")
    return request.GET.get("q", "")[:200], wanted if wanted in {it.value for it in TokenState} else ""


def _address(name: str, account: Account, **query: str) -> str:
    return reverse(name, args=(account.name,), query={k: v for k, v in query.items() if v})


@require_safe
@account_required(Capability.MANAGE_ACCESS)
def export(request: HttpRequest, account: Account) -> HttpResponseBase:
    """Export the tokens, without signatures, which are not stored."""
    found = filter_rows(list_tokens(account, timezone.now()), *_read_filter(request))
    return stream_list(request, f"{account.name}-sas", found, FIELDS)


# one token


@dataclass(frozen=True, slots=True)
class Impact:
    """Impact of revoking: the affected tokens and clients."""

    tokens: int  # that are known
    uses: int  # requests within 24 hours
    clients: int = 0  # that use the key itself


@require_safe
@account_required(Capability.MANAGE_ACCESS)
@never_cache
def show(request: HttpRequest, account: Account, fingerprint: str) -> HttpResponse:
    return _show(request, account, fingerprint)


def _show(
    request: HttpRequest, account: Account, fingerprint: str, form: DescriptionForm | None = None
) -> HttpResponse:
    now = timezone.now()
    tokens = {it.known.fingerprint: it for it in list_tokens(account, now)}
    shown = or_404(tokens.get(fingerprint))
    known = shown.known
    notes = {"label": known.label, "purpose": known.purpose, "owner": known.owner}
    context = {
        "row": shown,
        "known": known,
        "sentence": shown.sentence(account.name),
        "parameters": view_parameters(explain(to_parameters(known.token)), now),
        "lines": sas.string_to_sign(known.token, account.name).split("\n"),
        "clients": usage.clients(account.pk, Authentication.SAS, fingerprint, now - keys.WEEK),
        "policy_impact": _policy_impact(shown, list(tokens.values())),
        "key_impact": _key_impact(account, shown, list(tokens.values())),
        "form": form or DescriptionForm(notes if known.is_registered else None),
        "now": now,
    }
    status = 422 if form is not None else 200
    return render_page(request, "console/access/sas/show.html", context, status=status)


def _policy_impact(shown: RegistryRow, tokens: list[RegistryRow]) -> Impact | None:
    """Return the impact of deleting the policy, which revokes all of its tokens."""
    known = shown.known
    if not known.identifier or shown.state is TokenState.ORPHANED:
        return None
    named = [
        it.known
        for it in tokens
        if it.state in ACCEPTED_STATES
        and it.known.identifier == known.identifier
        and it.known.table.lower() == known.table.lower()
    ]
    return Impact(len(named), sum(it.uses for it in named))


def _key_impact(account: Account, shown: RegistryRow, tokens: list[RegistryRow]) -> Impact | None:
    """Return the impact of rotating the key: all tokens signed by it, and its direct clients."""
    number = shown.known.key
    if number is None or shown.known.key_ends is not None:
        return None
    state = keys.state(account, number, shown.now)
    signed = [
        it.known
        for it in tokens
        if it.state in ACCEPTED_STATES and it.known.key == number and it.known.key_ends is None
    ]
    uses = sum(it.uses for it in signed) + state.uses
    return Impact(len(signed), uses, len(keys.clients(account, state, shown.now)))


@require_POST
@account_required(Capability.MANAGE_ACCESS)
def describe(request: HttpRequest, account: Account, fingerprint: str) -> HttpResponse:
    """Save the notes; a token with a label stays in the registry."""
    _check_exists(account, fingerprint)
    form = DescriptionForm(request.POST)
    if not form.is_valid():
        return _show(request, account, fingerprint, form)
    done = sas_operations.describe(account, fingerprint, form.description(), by=actor_of(request))
    notify_success(request, _("Saved the notes.") if done else _("Nothing was changed."), undo=done)
    return redirect("sas:show", account.name, fingerprint)


@require_POST
@account_required(Capability.MANAGE_ACCESS)
def block(request: HttpRequest, account: Account, fingerprint: str) -> HttpResponse:
    """Block or unblock a token, effective immediately."""
    _check_exists(account, fingerprint)
    blocked = request.POST.get("blocked") == "1"
    try:
        done = sas_operations.set_blocked(account, fingerprint, blocked=blocked, by=actor_of(request))
    except OperationalError:
        notify_error(
            request, _("Nothing was changed: a server or the database did not respond in time. Try again.")
        )
    else:
        text = (
            _("Blocked the token. Its requests are refused from now on.")
            if blocked
            else _("Unblocked the token.")
        )
        notify_success(request, text if done else _("Nothing was changed."), undo=done)
    return redirect("sas:show", account.name, fingerprint)


def _check_exists(account: Account, fingerprint: str) -> None:
    is_one = _FINGERPRINT.fullmatch(fingerprint) is not None
    if not is_one or sas_operations.find(account, fingerprint, timezone.now()) is None:
        raise Http404
