"""Pages of webhooks: creation, deliveries, test, secret renewal and deletion."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from console.notices import scope
from console.notices.forms import FORMATS, WebhookForm
from console.notices.presentation import EVENTS, title_of
from console.people.reauthentication import recently_authenticated
from console.site.access import actor_of
from console.site.forms import report_conflicts
from console.site.refusals import describe_refusal
from console.site.toasts import notify_error, notify_success
from storage.domain.refusals import AnyReason, Reason, Refused
from storage.models import Account, NoticeDelivery, Webhook
from storage.notices import delivery, webhooks
from storage.rest.lookups import or_404

_FIELDS: Final[Mapping[AnyReason, str]] = {Reason.WEBHOOK_URL: "url", Reason.WEBHOOK_EXISTS: "name"}


@require_http_methods(["GET", "HEAD", "POST"])
@scope.account_or_server
@never_cache
@recently_authenticated
def new(request: HttpRequest, account: Account | None) -> HttpResponse:
    """Create a webhook; its secret is only shown in this response."""
    form = WebhookForm(request.POST if request.method == "POST" else None, account=account)
    if request.method == "POST" and form.is_valid():
        try:
            secret, made = webhooks.create(account, form.wanted(), by=actor_of(request))
        except Refused as error:
            form.add_error(_FIELDS.get(error.refusal.reason), describe_refusal(error))
        else:
            return _show_secret(request, made, secret)
    context = {
        "form": form,
        "of_account": account,
        "address": scope.address("webhook_new", account),
        "settings_url": scope.address("settings", account),
    }
    return render(request, "console/notices/webhook_new.html", context, status=422 if form.errors else 200)


def _show_secret(request: HttpRequest, webhook: Webhook, secret: str) -> HttpResponse:
    context = {
        "webhook": webhook,
        "format": dict(FORMATS).get(webhook.format, webhook.format),
        "secret": secret,
        "of_account": webhook.account,
        "address": scope.address("webhook", webhook.account, webhook.pk),
        "settings_url": scope.address("settings", webhook.account),
    }
    return render(request, "console/notices/webhook_made.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@scope.account_or_server
@never_cache
def show(request: HttpRequest, account: Account | None, webhook: int) -> HttpResponse:
    """Show a webhook with its deliveries, and save changes on POST."""
    shown = _find(account, webhook)
    form = WebhookForm(request.POST if request.method == "POST" else None, account=account, webhook=shown)
    if request.method == "POST" and form.is_valid() and not report_conflicts(form):
        try:
            webhooks.change(shown, form.wanted(), by=actor_of(request))
        except Refused as error:
            form.add_error(_FIELDS.get(error.refusal.reason), describe_refusal(error))
        else:
            notify_success(request, _("Saved the webhook."))
            return redirect(scope.address("webhook", account, webhook))
    context: dict[str, Any] = {
        "form": form,
        "webhook": shown,
        "deliveries": [(it, _title(it), EVENTS.get(it.event, "")) for it in delivery.for_webhook(shown)],
        "of_account": account,
        "settings_url": scope.address("settings", account),
        **{
            f"{name or 'page'}_url": scope.address(f"webhook{name and '_'}{name}", account, webhook)
            for name in ("", "test", "secret", "delete")
        },
    }
    return render(request, "console/notices/webhook.html", context, status=422 if form.errors else 200)


def _title(sent: NoticeDelivery) -> str:
    return _("Test") if sent.notice is None else str(title_of(sent.notice.kind))


def _find(account: Account | None, pk: int) -> Webhook:
    return or_404(webhooks.find(account, pk))


@require_POST
@scope.account_or_server
def test(request: HttpRequest, account: Account | None, webhook: int) -> HttpResponse:
    """Send a test message and show its result."""
    sent = delivery.test(_find(account, webhook), timezone.now())
    if sent.error:
        notify_error(request, _("The test failed: %(why)s") % {"why": sent.error})
    else:
        notify_success(request, _("The receiver accepted the test: %(status)s.") % {"status": sent.status})
    return redirect(scope.address("webhook", account, webhook))


@require_POST
@scope.account_or_server
@never_cache
@recently_authenticated
def renew_secret(request: HttpRequest, account: Account | None, webhook: int) -> HttpResponse:
    found = _find(account, webhook)
    return _show_secret(request, found, webhooks.renew_secret(found, by=actor_of(request)))


@require_POST
@scope.account_or_server
def delete(request: HttpRequest, account: Account | None, webhook: int) -> HttpResponse:
    found = _find(account, webhook)
    webhooks.remove(found, by=actor_of(request))
    notify_success(request, _("Deleted the webhook “%(name)s”.") % {"name": found.name})
    return redirect(scope.address("settings", account))
