"""Inspector page: explains a pasted token, connection string or request, and why it is refused."""

import re
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from console.access.sas import labels
from console.access.sas.registry import combine_terms
from console.access.sas.sentences import describe_summary, view_parameters
from console.models import User
from console.site.access import RoleNeeded, user_of, users_with_role
from console.site.responses import render_part
from console.site.sentences import translate
from storage.access.inspection import facts
from storage.accounts import accounts
from storage.domain.access.roles import Capability
from storage.domain.sas.explain import summarize
from storage.domain.sas.known import find_policy
from storage.inspector import Facts, Report, UnreadableText, inspect
from storage.inspector.mistakes import NOTES
from storage.inspector.sentences import describe
from storage.models import Account
from storage.people.members import role_in, visible_accounts

# a secret, or text as long as one in base64 or hexadecimal
_SECRET: Final = re.compile(
    r"sig=|AccountKey|Authorization|SharedAccessSignature|[A-Za-z0-9+/_=-]{32,}", re.IGNORECASE
)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@never_cache
@sensitive_post_parameters("text")
def index(request: HttpRequest) -> HttpResponse:
    # the accounts whose keys the user may view
    managed = list(visible_accounts(user_of(request), Capability.MANAGE_ACCESS))
    chosen = _chosen_account(request, managed)
    context: dict[str, Any] = {"managed": managed, "chosen": chosen}
    if request.method == "POST":
        context |= _inspect_text(request, managed, chosen)
    return render_part(
        request,
        "console/access/sas/inspector/index.html",
        "_report.html",
        context,
        status=422 if context.get("unreadable") else 200,
    )


def _chosen_account(request: HttpRequest, managed: list[Account]) -> str:
    wanted = (request.POST if request.method == "POST" else request.GET).get("account", "")
    return wanted if any(account.name == wanted for account in managed) else ""


def _inspect_text(request: HttpRequest, managed: list[Account], chosen: str) -> dict[str, Any]:
    text = request.POST.get("text", "")
    known = _facts(request, managed)
    report = inspect(text, known, chosen)
    # without JavaScript the page is rendered again: text without secrets may stay in its field
    context: dict[str, Any] = {
        "text": "" if _SECRET.search(text) else text,
        "is_forgotten": bool(_SECRET.search(text)),
    }
    if isinstance(report, UnreadableText):
        return context | {"unreadable": labels.UNREADABLE_TEXTS[report]}
    return context | report_context(report, known, user_of(request))


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


def report_context(report: Report, known: Facts, user: User) -> dict[str, Any]:
    """Return the template context of a report."""
    now = timezone.now()
    return {
        "report": report,
        "problems": [
            {"text": translate(describe(finding)), "is_note": finding.mistake in NOTES}
            for finding in sorted(report.findings, key=lambda finding: finding.mistake in NOTES)
        ],
        "is_wrong": any(finding.mistake not in NOTES for finding in report.findings),
        "sentence": _describe_token(report, known),
        "parameters": view_parameters(report.parameters, now),
        "fields": [
            {
                "it": field,
                "name": labels.FIELD_NAMES.get(field.part, ""),
                "text": labels.FIELD_TEXTS[field.part],
            }
            for field in report.fields
        ],
        "settings": [
            {
                "it": setting,
                "text": labels.SETTING_TEXTS.get(setting.name, ""),
                "problem": translate(describe(setting.problem)) if setting.problem else "",
            }
            for setting in report.settings
        ],
        "who_may": [] if report.is_managed else _find_helpers(report.account, user),
        "account_shown": visible_accounts(user).filter(name=report.account).first(),
    }


def _describe_token(report: Report, known: Facts) -> str:
    """Describe the token of a report; "" without one."""
    if report.token is None:
        return ""
    account = known.accounts.get(report.account)
    policy = find_policy(report.token, account.policies) if account is not None else None
    terms = combine_terms(report.token, policy)
    return describe_summary(summarize(report.token, terms), report.account or "…")


def _find_helpers(name: str, user: User) -> list[User]:
    """Return the users who can help; none for an account that the user cannot see."""
    account = accounts.find(name)
    if account is None or role_in(user, account) is None:
        return []
    return users_with_role(RoleNeeded(Capability.MANAGE_ACCESS, account))
