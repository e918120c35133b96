"""What people choose for themselves."""

from allauth.core import ratelimit
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters

from console import appearance
from console.access import user_of, visible_accounts
from console.forms.profile import PasswordForm, PreferencesForm
from console.models import User


@login_required
def edit(request: HttpRequest) -> HttpResponse:
    """Language, time zone and looks, which go with the user to other browsers."""
    user = user_of(request)
    data = request.POST if request.method == "POST" else None
    form = PreferencesForm(data, instance=_as_seen(request, user))
    if request.method == "POST" and form.is_valid():
        form.save()
        translation.activate(user.language)
        messages.success(request, _("Saved your preferences."))
        return appearance.remember(
            redirect("profile"), language=user.language, theme=user.theme, density=user.density
        )
    return _page(request, form, PasswordForm(user=user))


@login_required
@sensitive_post_parameters("current", "password", "repeated")
def change_password(request: HttpRequest) -> HttpResponse:
    """Signs the user out everywhere else."""
    user = user_of(request)
    form = PasswordForm(request.POST if request.method == "POST" else None, user=user)
    if request.method == "POST":
        if not ratelimit.consume(request, action="change_password", user=user):
            too_many: HttpResponse = ratelimit.respond_429(request)
            return too_many
        if form.is_valid():
            user.set_password(form.cleaned_data["password"])
            user.save(update_fields=("password",))
            update_session_auth_hash(request, user)
            messages.success(request, _("Changed your password. Other browsers are signed out."))
            return redirect("profile")
    return _page(request, PreferencesForm(instance=_as_seen(request, user)), form)


def _as_seen(request: HttpRequest, user: User) -> User:
    """With what this browser shows, which is what was chosen last."""
    seen = appearance.read(request)
    user.language = get_language() or user.language
    user.theme, user.density = seen.theme, seen.density
    return user


def _page(request: HttpRequest, preferences: PreferencesForm, password: PasswordForm) -> HttpResponse:
    context = {
        "preferences": preferences,
        "password": password,
        "access": visible_accounts(user_of(request)),
    }
    is_wrong = preferences.errors or password.errors
    return render(request, "console/profile/edit.html", context, status=422 if is_wrong else 200)
