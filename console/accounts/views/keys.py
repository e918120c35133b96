"""Keys of an account: usage, connection strings and rotation."""

from typing import Any, Final

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from console.access.sas.registry import describe_token
from console.accounts.forms.settings import RotationForm
from console.people.reauthentication import recently_authenticated
from console.site.access import account_required, actor_of
from console.site.responses import render_part, wants_part
from console.site.toasts import notify_success
from console.snippets.connections import FORMATS, MASK, Choice, hosts, read_choice
from storage.access import keys, retired_keys, sas
from storage.accounts import accounts, sealed_keys
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.core.verbs import Verb
from storage.domain.access.roles import Capability
from storage.domain.requests.observed import retired_key_name
from storage.domain.sas.known import ACCEPTED_STATES, TokenState, token_state
from storage.models import Account

REVEALED_FOR: Final = 60  # seconds
USABLE_STATES: Final = ACCEPTED_STATES | {TokenState.NOT_YET_VALID}  # now or later


@account_required(Capability.MANAGE_ACCESS)
@never_cache
@require_GET
def index(request: HttpRequest, account: Account) -> HttpResponse:
    context = _context(request, account)
    part = "_connection.html"
    if request.GET.get("hide") in {"1", "2"}:
        part = "_key.html"
        context["state"] = context["keys"][int(request.GET["hide"]) - 1]
    return render_part(request, "console/accounts/keys/index.html", part, context)


def _context(request: HttpRequest, account: Account) -> dict[str, Any]:
    choice = read_choice(request.POST if request.method == "POST" else request.GET)
    now, rotated = timezone.now(), request.GET.get("rotated", "")
    states = keys.states(account, now)
    return {
        "keys": states,
        "now": now,
        "is_public": sealed_keys.is_public(account),
        "choice": choice,
        "hosts": hosts(),
        "formats": FORMATS,
        "text": choice.write(request, account, _masked_key(account, choice.key)),
        "mask": MASK,
        "shown": REVEALED_FOR,
        "rotated": rotated,
        "rotated_state": states[int(rotated) - 1] if rotated in {"1", "2"} else None,
    }


@account_required(Capability.MANAGE_ACCESS)
@never_cache
@require_POST
@recently_authenticated
def reveal(request: HttpRequest, account: Account, which: int) -> HttpResponse:
    """Reveal an account key and record that; the page can hide it again."""
    context = _context(request, account) | {"revealed": which, "key": _key(account, which)}
    _record(AccountVerb.KEY_REVEAL, request, account, which)
    context["state"] = context["keys"][which - 1]
    return _show_secret(request, account, "_key.html", context)


@account_required(Capability.MANAGE_ACCESS)
@never_cache
@require_POST
@recently_authenticated
def copy(request: HttpRequest, account: Account, which: int) -> HttpResponse:
    """Return a key as plain text, for the clipboard."""
    key = _key(account, which)
    _record(AccountVerb.KEY_COPY, request, account, which)
    return HttpResponse(key, content_type="text/plain; charset=utf-8")


@account_required(Capability.MANAGE_ACCESS)
@never_cache
@require_POST
@recently_authenticated
def reveal_connection(request: HttpRequest, account: Account) -> HttpResponse:
    """Reveal a connection string, plain or within a file or program."""
    context = _context(request, account)
    choice: Choice = context["choice"]
    context |= {"text": choice.write(request, account, _key(account, choice.key)), "is_revealed": True}
    _record(AccountVerb.KEY_REVEAL, request, account, choice.key)
    return _show_secret(request, account, "_connection.html", context)


@account_required(Capability.MANAGE_ACCESS)
@never_cache
@require_POST
@recently_authenticated
def copy_connection(request: HttpRequest, account: Account) -> HttpResponse:
    choice = read_choice(request.POST)
    text = choice.write(request, account, _key(account, choice.key))
    _record(AccountVerb.KEY_COPY, request, account, choice.key)
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


@account_required(Capability.GRANT)
@never_cache
def rotate(request: HttpRequest, account: Account, which: int) -> HttpResponse:
    """Rotate a key, after showing which clients still use it."""
    _check(which)
    form = RotationForm(request.POST if request.method == "POST" else None, account=account)
    if wants_part(request):
        return _render_rotation(request, account, which, form)
    return _rotate(request, account, which, form)


@recently_authenticated
def _rotate(request: HttpRequest, account: Account, which: int, form: RotationForm) -> HttpResponse:
    if not form.is_valid():
        return _render_rotation(request, account, which, form)
    accounts.rotate(account.name, which, by=actor_of(request), grace=form.cleaned_data["grace"])
    notify_success(
        request, _("Rotated key%(number)d of %(account)s.") % {"number": which, "account": account.name}
    )
    response = redirect("accounts:keys", account.name)
    response["Location"] += f"?rotated={which}&key={which}"
    return response


@account_required(Capability.GRANT)
@never_cache
@require_POST
@recently_authenticated
def end(request: HttpRequest, account: Account, which: int) -> HttpResponse:
    """End the grace period of a replaced key."""
    _check(which)
    if retired_keys.end(account, which, by=actor_of(request)):
        notify_success(
            request,
            _("Expired %(key)s. Requests signed with it are rejected.") % {"key": retired_key_name(which)},
        )
    return redirect("accounts:keys", account.name)


def _render_rotation(request: HttpRequest, account: Account, which: int, form: RotationForm) -> HttpResponse:
    now = timezone.now()
    states = keys.states(account, now)
    state, other = states[which - 1], states[2 - which]
    policies = sas.policies_of(account)
    context = {
        "state": state,
        "dying": [
            describe_token(token, policies, now)
            for token in state.tokens
            if token_state(token, policies, now) in USABLE_STATES
        ],
        "other": other,
        "clients": keys.clients(account, state, now),
        "other_clients": keys.clients(account, other, now),
        "now": now,
        "form": form,
    }
    return render_part(
        request,
        "console/accounts/keys/rotate.html",
        "_use.html",
        context,
        status=422 if form.is_bound else 200,
    )


def _key(account: Account, which: int) -> str:
    _check(which)
    return sealed_keys.encode_key(sealed_keys.keys_of(account)[which - 1])


def _masked_key(account: Account, which: int) -> str:
    """Return the mask of a key, or the public development key itself."""
    key = sealed_keys.keys_of(account)[which - 1]
    return sealed_keys.encode_key(key) if key == sealed_keys.DEVELOPMENT_KEY else MASK


def _check(which: int) -> None:
    if which not in (1, 2):
        raise Http404


@transaction.atomic
def _record(verb: Verb, request: HttpRequest, account: Account, which: int) -> None:
    activity.record(verb, actor_of(request), account=account, detail={"key": f"key{which}"})


def _show_secret(request: HttpRequest, account: Account, part: str, context: dict[str, Any]) -> HttpResponse:
    response = render_part(request, "console/accounts/keys/index.html", part, context)
    # without JavaScript, leave the page instead of hiding the key
    if not wants_part(request):
        response["Refresh"] = f"{REVEALED_FOR}; url={reverse('accounts:keys', args=(account.name,))}"
    return response
