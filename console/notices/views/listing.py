"""Pages of notices, for a user or one account, with the read mark and mutes."""

from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.notices.bell import Bell
from console.notices.presentation import ShownNotice, title_of
from console.site.access import account_required, role_of, user_of
from console.site.addresses import is_console_path
from console.site.log_page import LogQuery, QueryPart, is_one_of, take_newest, url_field
from console.site.refusals import notify_refusals
from console.site.toasts import notify_success
from storage.core import registry
from storage.domain.access.roles import Capability, may
from storage.domain.values.numbers import read_number
from storage.models import Account
from storage.notices import readers

_STATES: Final = ("open", "resolved", "muted")


@dataclass(frozen=True, slots=True)
class NoticeQuery(LogQuery):
    state: str = url_field(is_one_of(_STATES))
    kind: str = url_field()
    before: str = url_field(read_number, part=QueryPart.PAGE)


@login_required
@never_cache
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """List the notices that the user may see, newest first."""
    context = {"settings_url": reverse("notices:server_settings") if user_of(request).is_admin else ""}
    return _list(request, None, context)


@account_required(Capability.READ)
@never_cache
@require_safe
def for_account(request: HttpRequest, account: Account) -> HttpResponse:
    is_managed = may(role_of(request), Capability.MANAGE_ACCESS)
    return _list(
        request,
        account,
        {"settings_url": reverse("notices:settings", args=(account.name,)) if is_managed else ""},
    )


def _list(request: HttpRequest, account: Account | None, context: dict[str, Any]) -> HttpResponse:
    user, query = user_of(request), NoticeQuery.read(request.GET)
    state = query.state or "open"
    listed = readers.current(user) if state == "open" else readers.visible(user)
    if state == "resolved":
        listed = listed.exclude(resolved_at=None)
    elif state == "muted":
        listed = listed.filter(resolved_at=None).exclude(pk__in=readers.current(user).values("pk"))
    if account is not None:
        listed = listed.filter(account=account)
    if query.kind:
        listed = listed.filter(kind=query.kind)
    shown, older = take_newest(listed, query.before)
    seen_at = readers.reader_of(user).seen_at
    context |= {
        "notices": [
            ShownNotice(it, is_new=it.resolved_at is None and (seen_at is None or it.news_at > seen_at))
            for it in shown
        ],
        "state": state,
        "states": [("open", pgettext("notices", "open")), ("resolved", _("resolved")), ("muted", _("muted"))],
        "kind": query.kind,
        "kinds": [(kind, title_of(kind)) for kind in registry.notice_kinds()],
        "older": "" if older is None else query.query_string(before=older),
        "now": timezone.now(),
    }
    return render(request, "console/notices/index.html", context)


@login_required
@never_cache
@require_safe
def show_bell(request: HttpRequest) -> HttpResponse:
    """Render the bell for a page that was in the background."""
    return render(request, "console/notices/_bell.html")


@login_required
@require_POST
def mark_seen(request: HttpRequest) -> HttpResponseBase:
    """Mark news as seen until the time of the form."""
    user = user_of(request)
    try:
        upto = parse_datetime(request.POST.get("upto", ""))
    except ValueError:
        upto = None
    readers.mark_seen(user, upto=upto if upto is not None and timezone.is_aware(upto) else timezone.now())
    if request.headers.get("HX-Request"):
        return render(request, "console/notices/_bell.html", {"notice_bell": Bell(user)})
    return redirect(_back(request))


@login_required
@require_POST
def mute(request: HttpRequest, number: int) -> HttpResponseBase:
    """Mute a notice, its kind in its account, or its kind everywhere."""
    user = user_of(request)
    notice = get_object_or_404(readers.visible(user), pk=number)
    title, scope = title_of(notice.kind), request.POST.get("scope", "")
    with notify_refusals(request):
        if scope == "everywhere":
            readers.mute(user, kind=notice.kind)
        elif scope == "kind":
            readers.mute(user, account=notice.account, kind=notice.kind)
        else:
            readers.mute(user, account=notice.account, kind=notice.kind, subject=notice.subject)
        text = _("Muted for you: %(title)s. Others still see it.") % {"title": title}
        notify_success(request, text, link=reverse("notices:personal", fragment="mutes"))
    return redirect(_back(request))


def _back(request: HttpRequest) -> str:
    back = request.POST.get("next", "")
    return back if is_console_path(back) else reverse("notices:index")
