"""Personal settings of notices: muted ones, and the address for e-mail."""

from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from console.notices import mail
from console.notices.forms import AddressForm, CodeForm
from console.notices.presentation import title_of
from console.people.reauthentication import recently_authenticated
from console.site.access import user_of
from console.site.allauth_parts import ratelimit
from console.site.toasts import notify_success
from storage.models import NoticeMute
from storage.notices import readers

_CODES: Final = {"notice_code": "5/h/user"}  # that a user may have sent


@login_required
@never_cache
@require_safe
def edit(request: HttpRequest) -> HttpResponse:
    return _show(request)


def _show(request: HttpRequest, *, status: int = 200, **forms_given: forms.Form) -> HttpResponse:
    user = user_of(request)
    context: dict[str, Any] = {
        "has_mail": settings.SMTP is not None,
        "reader": readers.reader_of(user),
        "mutes": [(it, _title(it)) for it in readers.mutes(user)],
        "address_form": AddressForm(),
        "code_form": CodeForm(),
        **forms_given,
    }
    return render(request, "console/notices/personal.html", context, status=status)


def _title(mute: NoticeMute) -> str:
    return str(title_of(mute.kind)) if mute.kind else _("all notices")


@require_POST
@recently_authenticated
def set_address(request: HttpRequest) -> HttpResponse:
    """Send a confirmation code to an address; notices go there once it is entered."""
    user = user_of(request)
    form = AddressForm(request.POST)
    if settings.SMTP is None:
        raise Http404
    if not form.is_valid():
        return _show(request, status=422, address_form=form)
    if not ratelimit.consume(request, app="console", action="notice_code", config=_CODES, user=user):
        too_many: HttpResponse = ratelimit.respond_429(request)
        return too_many
    address = form.cleaned_data["address"]
    failure = mail.send_code(user, address, readers.set_address(user, address))
    if failure:
        form.add_error("address", _("The code could not be sent: %(why)s") % {"why": failure})
        return _show(request, status=422, address_form=form)
    notify_success(request, _("Sent a code to %(address)s.") % {"address": address})
    return redirect("notices:personal")


@login_required
@require_POST
def confirm_address(request: HttpRequest) -> HttpResponse:
    form = CodeForm(request.POST)
    if form.is_valid() and readers.confirm_address(user_of(request), form.cleaned_data["code"]):
        notify_success(request, _("Confirmed your address."))
        return redirect("notices:personal")
    if form.is_valid():
        form.add_error("code", _("The code is wrong or has expired. Enter your address again for a new one."))
    return _show(request, status=422, code_form=form)


@login_required
@require_POST
def remove_address(request: HttpRequest) -> HttpResponseBase:
    readers.remove_address(user_of(request))
    notify_success(request, _("Removed your address."))
    return redirect("notices:personal")


@login_required
@require_POST
def unmute(request: HttpRequest, number: int) -> HttpResponseBase:
    if not readers.unmute(user_of(request), number):
        raise Http404
    notify_success(request, _("Unmuted."))
    return redirect("notices:personal")
