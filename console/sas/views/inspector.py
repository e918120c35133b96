"""The inspector: why a token, a connection string or a request is refused.

What is pasted holds secrets. It comes by POST, is read once, and is neither kept nor sent back.
"""

import re
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from console.models import User
from console.sas import inspection, sas_words
from console.site.access import RoleNeeded, user_of, users_with_role
from console.site.responses import render_part
from storage.domain.access.policies import AccessPolicy
from storage.domain.access.roles import LEAST_ROLE, Capability, may
from storage.domain.sas.explain import Meaning, summarize
from storage.domain.sas.known import find_policy
from storage.inspector import Facts, Report, UnreadableText, inspect
from storage.models import Account
from storage.operations import accounts
from storage.operations.inspection import facts
from storage.operations.members import role_in, visible_accounts

# or what is as long as one, in base64 or hexadecimal
_SECRET: Final = re.compile(
    r"sig=|AccountKey|Authorization|SharedAccessSignature|[A-Za-z0-9+/_=-]{32,}", re.IGNORECASE
)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
@sensitive_post_parameters("text")
def index(request: HttpRequest) -> HttpResponse:
    managed = _managed(user_of(request))
    chosen = _chosen(request, managed)
    context: dict[str, Any] = {"managed": managed, "chosen": chosen}
    if request.method == "POST":
        context |= _findings(request, managed, chosen)
    return render_part(
        request,
        page="console/sas/inspector/index.html",
        part="console/sas/inspector/_report.html",
        context=context,
        status=422 if context.get("unreadable") else 200,
    )


def _managed(user: User) -> list[Account]:
    """The accounts whose keys the user may see."""
    return [account for account, role in visible_accounts(user) if may(role, Capability.MANAGE_ACCESS)]


def _chosen(request: HttpRequest, managed: list[Account]) -> str:
    wanted = (request.POST if request.method == "POST" else request.GET).get("account", "")
    return wanted if any(account.name == wanted for account in managed) else ""


def _findings(request: HttpRequest, managed: list[Account], chosen: str) -> dict[str, Any]:
    text = request.POST.get("text", "")
    known = _facts(request, managed)
    report = inspect(text, known, chosen)
    # without scripts the page comes anew: what holds no secret may still stand in its field
    context: dict[str, Any] = {
        "text": "" if _SECRET.search(text) else text,
        "is_forgotten": bool(_SECRET.search(text)),
    }
    if isinstance(report, UnreadableText):
        return context | {"unreadable": inspection.UNREADABLE[report]}
    return context | _told(report, known, user_of(request))


def _facts(request: HttpRequest, managed: list[Account]) -> Facts:
    return facts(
        managed,
        timezone.now(),
        scheme=request.scheme or "http",
        host=request.get_host(),
        client=request.META.get("REMOTE_ADDR", ""),
        suffixes=settings.HOST_SUFFIXES,
        takes_bearer=settings.BEARER is not None,
    )


def _told(report: Report, known: Facts, user: User) -> dict[str, Any]:
    now = timezone.now()
    return {
        "report": report,
        "problems": [
            {"text": inspection.sentence(found), "is_note": found.mistake in inspection.NOTES}
            for found in sorted(report.found, key=lambda found: found.mistake in inspection.NOTES)
        ],
        "is_wrong": any(found.mistake not in inspection.NOTES for found in report.found),
        "sentence": _sentence(report, known),
        "parameters": [
            {
                "name": it.name,
                "value": it.value,
                "label": sas_words.MEANINGS[it.meaning],
                "text": sas_words.explained(it, now),
                "is_wrong": not it.is_well_formed,
                "is_hidden": it.meaning is Meaning.SIGNATURE,
            }
            for it in report.parameters
        ],
        "fields": [
            {"it": field, "name": inspection.NAMES.get(field.part, ""), "text": inspection.PARTS[field.part]}
            for field in report.fields
        ],
        "settings": [
            {
                "it": setting,
                "text": inspection.SETTINGS.get(setting.name, ""),
                "problem": inspection.sentence(setting.problem) if setting.problem else "",
            }
            for setting in report.settings
        ],
        "who_may": [] if report.is_managed else _who_may(report.account, user),
        "account_shown": next((it for it in _shown(user) if it.name == report.account), None),
    }


def _shown(user: User) -> list[Account]:
    return [account for account, _role in visible_accounts(user)]


def _sentence(report: Report, known: Facts) -> str:
    """What the token is good for, all of it in one sentence; empty where that cannot be told."""
    if report.token is None:
        return ""
    account = known.accounts.get(report.account)
    policy = find_policy(report.token, account.policies) if account is not None else None
    stored = policy or AccessPolicy()
    terms = AccessPolicy(
        report.token.start or stored.start,
        report.token.expiry or stored.expiry,
        report.token.permissions or stored.permission,
    )
    return sas_words.sentence(summarize(report.token, terms), report.account or "…")


def _who_may(name: str, user: User) -> list[User]:
    """Whom to ask; of an account that the user does not see nothing is told, not even whether there is one."""
    account = accounts.find(name)
    if account is None or role_in(user, account) is None:
        return []
    return users_with_role(RoleNeeded(LEAST_ROLE[Capability.MANAGE_ACCESS], account))
