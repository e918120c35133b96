"""The profile: preferences, password and sessions."""

from typing import Final

from allauth.core import ratelimit
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from console.models import User
from console.people import reauthentication, sign_ins
from console.people import sessions as session_store
from console.people.forms.profile import PasswordForm, PreferencesForm
from console.site import appearance, time_zones
from console.site.access import user_of
from console.site.addresses import is_console_path
from console.site.toasts import notify_success
from storage.core import registry
from storage.core.subject import Hook
from storage.people.members import visible_accounts, with_roles

_ACCESS_LIMIT: Final = 100  # accounts


@login_required
def edit(request: HttpRequest) -> HttpResponse:
    """Edit language, time zone and appearance, which follow the user to other browsers."""
    user = user_of(request)
    data = request.POST if request.method == "POST" else None
    form = PreferencesForm(data, instance=_with_cookies(request, user))
    if request.method == "POST" and form.is_valid():
        form.save()
        if "hides_presence" in form.changed_data:
            for announce in registry.hooks(Hook.VISIBILITY_CHANGED):
                announce(user)
        translation.activate(user.language)
        notify_success(request, _("Saved your preferences."))
        return appearance.remember(
            redirect("people:profile"), language=user.language, theme=user.theme, density=user.density
        )
    shown = with_roles(user, visible_accounts(user)[: _ACCESS_LIMIT + 1])
    context = {
        "preferences": form,
        "access": shown[:_ACCESS_LIMIT],
        "has_more": len(shown) > _ACCESS_LIMIT,
    }
    return render(request, "console/people/profile/edit.html", context, status=422 if form.errors else 200)


@login_required
@require_POST
def choose_zone(request: HttpRequest) -> HttpResponse:
    """Store the answer to the offer of the browser's time zone."""
    user = user_of(request)
    is_taken = request.POST.get("zone") == "browser"
    user.time_zone = "" if is_taken else time_zones.UTC
    user.save(update_fields=("time_zone",))
    text = (
        _("Times are shown in the time zone of your browser.") if is_taken else _("Times are shown in UTC.")
    )
    notify_success(request, text, link=reverse("people:profile", fragment="id_time_zone"))
    back = request.POST.get("next", "")
    return redirect(back if is_console_path(back) else "people:profile")


@login_required
@never_cache
@sensitive_post_parameters("current", "password", "repeated")
def change_password(request: HttpRequest) -> HttpResponse:
    """Change the password and end all other sessions."""
    user = user_of(request)
    if not user.has_usable_password() and not reauthentication.is_recent(request):
        return reauthentication.ask(request)
    form = PasswordForm(request.POST if request.method == "POST" else None, user=user)
    if request.method == "POST":
        if not ratelimit.consume(request, action="change_password", user=user):
            too_many: HttpResponse = ratelimit.respond_429(request)
            return too_many
        if form.is_valid():
            was_temporary = user.has_temporary_password
            _set_password(request, user, form.cleaned_data["password"])
            return redirect(_page_after(request) if was_temporary else "people:security")
    context = {"form": form, "is_security": True, "next": request.GET.get("next", "")}
    return render(
        request, "console/people/profile/password.html", context, status=422 if form.errors else 200
    )


def _page_after(request: HttpRequest) -> str:
    """Return the page from which the user was redirected."""
    page = request.POST.get("next", "")
    return page if is_console_path(page) else "home:index"


def _set_password(request: HttpRequest, user: User, password: str) -> None:
    user.set_password(password)
    user.temporary_password_until = None
    user.save(update_fields=("password", "temporary_password_until"))
    update_session_auth_hash(request, user)
    session_store.end_all(user, but=request.session.session_key)
    sign_ins.changed(request, user, changed="password")
    notify_success(request, _("Changed your password. Other browsers are signed out."))


@login_required
@require_safe
def sessions(request: HttpRequest) -> HttpResponse:
    shown = [
        (
            session,
            session_store.browser_name(session.user_agent),
            session.session_key == request.session.session_key,
        )
        for session in session_store.for_user(user_of(request))
    ]
    return render(request, "console/people/profile/sessions.html", {"sessions": shown})


@require_POST
@reauthentication.recently_authenticated
def end_session(request: HttpRequest, number: int) -> HttpResponse:
    if session_store.end(user_of(request), number):
        notify_success(request, _("Signed out that browser."))
    return redirect("people:sessions")


@require_POST
@reauthentication.recently_authenticated
def end_other_sessions(request: HttpRequest) -> HttpResponse:
    ended = session_store.end_all(user_of(request), but=request.session.session_key)
    text = ngettext("Signed out %(number)d browser.", "Signed out %(number)d browsers.", ended)
    notify_success(request, text % {"number": ended})
    return redirect("people:sessions")


def _with_cookies(request: HttpRequest, user: User) -> User:
    """Store this browser's preferences in the user, as the latest."""
    seen = appearance.read(request)
    user.language = get_language() or user.language
    user.theme, user.density = seen.theme, seen.density
    if user.time_zone == time_zones.FORMER_DEFAULT:
        user.time_zone = time_zones.UTC  # saved as a choice
    return user
