"""Copy tables from another table service to an account, or back: a form that starts a job."""

from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from console.site.access import account_required, actor_of
from console.site.refusals import describe_refusal
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.filters.parser import CONSOLE_LIMIT
from storage.domain.refusals import Refused
from storage.models import Account
from storage.operations.jobs import jobs
from storage.operations.remote_copies import copy_jobs
from storage.operations.remote_copies.copy_jobs import Credentials
from storage.operations.remote_copies.copying import CopyOptions
from storage.remote.endpoints import EndpointMalformed

_IN, _OUT = "in", "out"
_FASTEST: Final = 1_000_000
_PLAIN: Final = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}


class CopyForm(forms.Form):
    direction = forms.ChoiceField(
        label=_("Direction"),
        choices=[
            (_IN, _("From the other service to this account")),
            (_OUT, _("From this account to the other service")),
        ],
        initial=_IN,
    )
    service = forms.CharField(
        label=_("Other service"),
        max_length=8192,
        help_text=_(
            "A connection string, or a URL with a SAS. It is encrypted, and deleted when the job ends."
        ),
        widget=forms.PasswordInput(attrs=_PLAIN),
    )
    bearer = forms.CharField(
        label=_("Bearer token"),
        required=False,
        max_length=16_384,
        help_text=_("Only for a URL without a SAS."),
        widget=forms.PasswordInput(attrs=_PLAIN),
    )
    tables = forms.CharField(
        label=_("Tables"),
        required=False,
        max_length=8192,
        help_text=_(
            "Names or patterns such as log*, separated by spaces. Leave it empty to copy all tables."
        ),
        widget=forms.TextInput(attrs={**_PLAIN, "class": "mono"}),
    )
    filter = forms.CharField(
        label=_("Filter"),
        required=False,
        max_length=CONSOLE_LIMIT,
        strip=False,
        widget=forms.TextInput(attrs={**_PLAIN, "class": "mono", "placeholder": "PartitionKey eq 'se'"}),
    )
    rate = forms.IntegerField(
        label=_("Entities per second, at most"), required=False, min_value=1, max_value=_FASTEST
    )
    with_settings = forms.BooleanField(
        label=_("Copy stored access policies and service properties"), required=False, initial=True
    )
    deletes = forms.BooleanField(label=_("Delete entities that the source does not have"), required=False)
    is_full = forms.BooleanField(
        label=_("Compare everything, not only what has changed since the last copy"), required=False
    )
    dry_run = forms.BooleanField(label=_("Only count what would be copied"), required=False)

    @property
    def is_outgoing(self) -> bool:
        return bool(self.cleaned_data["direction"] == _OUT)

    def credentials(self) -> Credentials:
        return Credentials(self.cleaned_data["service"], self.cleaned_data["bearer"])

    def options(self) -> CopyOptions:
        data: dict[str, Any] = self.cleaned_data
        return CopyOptions(
            tables=data["tables"].split() or ("*",),
            filter=data["filter"],
            rate=data["rate"] or 0,
            deletes=data["deletes"],
            is_full=data["is_full"],
            dry_run=data["dry_run"],
            with_policies=data["with_settings"],
            with_service_properties=data["with_settings"],
        )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@account_required(Capability.MANAGE_ACCESS)
def start(request: HttpRequest, account: Account) -> HttpResponse:
    """Start a copy, whose job shows how far it is."""
    form = CopyForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            wanted = copy_jobs.request(
                account, form.credentials(), form.options(), is_outgoing=form.is_outgoing
            )
        except EndpointMalformed as malformed:
            form.add_error("service", describe_refusal(malformed))
        except (Refused, StorageError) as refused:
            form.add_error("filter" if form.cleaned_data["filter"] else None, describe_refusal(refused))
        else:
            return redirect("jobs:show", jobs.start_requested(wanted, by=actor_of(request)).pk)
    return render(request, "console/imports/copy.html", {"form": form}, status=422 if form.errors else 200)
