"""Settings of an account's or the server's notices: enabled kinds, and webhooks."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from console.notices import scope
from console.notices.forms import RulesForm
from console.site.access import actor_of
from console.site.forms import report_conflicts
from console.site.toasts import notify_success
from storage.models import Account
from storage.notices import rules, webhooks


@require_http_methods(["GET", "HEAD", "POST"])
@scope.account_or_server
@never_cache
def edit(request: HttpRequest, account: Account | None) -> HttpResponse:
    data = request.POST if request.method == "POST" else None
    form = RulesForm(data, rules=rules.for_account(account))
    address = scope.address("settings", account)
    if request.method == "POST" and form.is_valid() and not report_conflicts(form):
        for kind, is_on, threshold in form.wanted():
            rules.change(account, kind, is_on=is_on, threshold=threshold, by=actor_of(request))
        notify_success(request, _("Saved. The change takes effect within a minute."))
        return redirect(address)
    context = {
        "form": form,
        "webhooks": [(it, scope.address("webhook", account, it.pk)) for it in webhooks.for_account(account)],
        "new_url": scope.address("webhook_new", account),
        "address": address,
        "of_account": account,
        "has_mail": settings.SMTP is not None,
    }
    return render(request, "console/notices/settings.html", context, status=422 if form.errors else 200)
