"""Forms that start copies from or to another table service, or from an Azurite file."""

import shlex
from typing import Any, Final

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from console.copies.copied_tables import COPY_KINDS
from console.site.access import account_required, actor_of
from console.site.refusals import describe_refusal
from console.site.responses import wants_json
from storage.copies import copy_jobs
from storage.copies.copy_jobs import COPY_OUT_JOB, Credentials
from storage.copies.copying import CopyOptions
from storage.domain.access.roles import Capability
from storage.domain.errors import StorageError
from storage.domain.filters.parser import CONSOLE_LIMIT
from storage.domain.refusals import Reason, Refused
from storage.domain.values import dialects
from storage.domain.values.numbers import read_number
from storage.editing.filters.diagnosis import parse_filter
from storage.jobs import jobs
from storage.models import Account, Job, JobFile
from storage.remote.azurite import FILE_NAME
from storage.remote.client import RemoteUnavailable
from storage.remote.endpoints import EndpointMalformed
from storage.tabular.layout import FileRefused
from storage.transfer import uploads

_IN, _OUT = "in", "out"
_FASTEST: Final = 1_000_000
_PLAIN: Final = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
_MONO: Final = {**_PLAIN, "class": "mono"}


class _CopyForm(forms.Form):
    """Form of a copy: direction, tables and options."""

    tables = forms.CharField(
        label=gettext_lazy("Tables"),
        required=False,
        max_length=8192,
        help_text=gettext_lazy(
            "Names or patterns such as log*, separated by spaces. Leave it empty to copy all tables."
        ),
        widget=forms.TextInput(attrs=_MONO),
    )
    rename = forms.CharField(
        label=gettext_lazy("New names"),
        required=False,
        max_length=8192,
        help_text=gettext_lazy(
            "For tables that get another name at the target: OLD=NEW, separated by spaces."
        ),
        widget=forms.TextInput(attrs={**_MONO, "placeholder": "people=persons"}),
    )
    rate = forms.IntegerField(
        label=gettext_lazy("Entities per second, at most"),
        required=False,
        min_value=1,
        max_value=_FASTEST,
        help_text=gettext_lazy("Leaves room for other clients of the service."),
    )
    with_settings = forms.BooleanField(
        label=gettext_lazy("Copy stored access policies and service properties"), required=False, initial=True
    )
    deletes = forms.BooleanField(label=gettext_lazy("Delete entities missing in the source"), required=False)
    is_full = forms.BooleanField(
        label=gettext_lazy("Full comparison (slower)"),
        required=False,
    )

    def clean_rename(self) -> dict[str, str]:
        renamed = {}
        for text in self.cleaned_data["rename"].split():
            name, _equals, other = text.partition("=")
            if not (name and other):
                raise forms.ValidationError(_("%(text)s must be written as OLD=NEW."), params={"text": text})
            renamed[name] = other
        return renamed

    def options(self) -> CopyOptions:
        data: dict[str, Any] = self.cleaned_data
        return CopyOptions(
            tables=data["tables"].split() or ("*",),
            rename=data["rename"],
            filter=data.get("filter", ""),
            rate=data["rate"] or 0,
            deletes=data["deletes"],
            is_full=data["is_full"],
            dry_run="dry_run" in self.data,
            with_policies=data["with_settings"],
            with_service_properties=data["with_settings"],
        )


class ServiceForm(_CopyForm):
    is_blocked = False  # whether only the command may connect to the service

    direction = forms.ChoiceField(
        label=gettext_lazy("Direction"),
        choices=[
            (_IN, gettext_lazy("From the other service to this account")),
            (_OUT, gettext_lazy("From this account to the other service")),
        ],
        initial=_IN,
        widget=forms.RadioSelect,
    )
    service = forms.CharField(
        label=gettext_lazy("Connection string or URL"),
        max_length=8192,
        help_text=gettext_lazy("With a key or a SAS. It is kept encrypted, and deleted when the job ends."),
        widget=forms.PasswordInput(attrs=_MONO),
    )
    bearer = forms.CharField(
        label=gettext_lazy("Bearer token"),
        required=False,
        max_length=16_384,
        help_text=gettext_lazy("Only for a URL without a SAS."),
        widget=forms.PasswordInput(attrs=_MONO),
    )
    feed_token = forms.CharField(
        label=gettext_lazy("API token of another Tablero"),
        required=False,
        max_length=255,
        help_text=gettext_lazy(
            "Later copies then read its change feed: nothing but the changes, with deletions."
        ),
        widget=forms.PasswordInput(attrs=_MONO),
    )
    filter = forms.CharField(
        label=gettext_lazy("Filter"),
        required=False,
        max_length=CONSOLE_LIMIT,
        strip=False,
        widget=forms.TextInput(attrs={**_MONO, "placeholder": "PartitionKey eq 'se'"}),
    )

    def clean_filter(self) -> str:
        text: str = self.cleaned_data["filter"]
        try:
            parse_filter(text, None, dialects.STORAGE)
        except (Refused, StorageError) as refused:
            raise forms.ValidationError(describe_refusal(refused)) from refused
        return text

    def clean(self) -> None:
        if not {"service", "bearer", "feed_token"} <= self.cleaned_data.keys():
            return
        try:
            copy_jobs.check_address(self.credentials().read())
        except EndpointMalformed as malformed:
            self.add_error("service", describe_refusal(malformed))
        except RemoteUnavailable as unavailable:
            self.add_error("service", describe_refusal(unavailable))
            self.is_blocked = True

    def command(self, account: Account) -> str:
        """Return the command that does the same from the server's machine, with the credentials in a variable."""
        data = self.cleaned_data
        sides = (
            [account.name, "env:SERVICE"] if data.get("direction") == _OUT else ["env:SERVICE", account.name]
        )
        words = ["tablero", "copy", *sides]
        for name in data.get("tables", "").split():
            words += ["--table", name]
        for name, other in (data.get("rename") or {}).items():
            words += ["--rename", f"{name}={other}"]
        for option, value in (("--filter", data.get("filter")), ("--rate", data.get("rate"))):
            words += [option, str(value)] if value else []
        words += ["--delete"] if data.get("deletes") else []
        words += ["--full"] if data.get("is_full") else []
        words += [] if data.get("with_settings") else ["--no-policies", "--no-properties"]
        return f"SERVICE='{_('CONNECTION STRING')}' {shlex.join(words)}"

    @property
    def is_outgoing(self) -> bool:
        return bool(self.cleaned_data["direction"] == _OUT)

    def credentials(self) -> Credentials:
        data = self.cleaned_data
        return Credentials(data["service"], data["bearer"], data["feed_token"])


class FileForm(_CopyForm):
    def __init__(self, names: list[str] | None, *arguments: Any, **options: Any) -> None:
        """Create the form; ``names`` are the accounts in the file, None if unknown."""
        super().__init__(*arguments, **options)
        if names is None:
            self.fields["file_account"] = forms.CharField(
                label=_("Account in the file"),
                required=False,
                max_length=255,
                widget=forms.TextInput(attrs=_MONO),
            )
        elif len(names) > 1:
            self.fields["file_account"] = forms.ChoiceField(
                label=_("Account in the file"), choices=[(name, name) for name in names]
            )


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@account_required(Capability.CONFIGURE)
def start(request: HttpRequest, account: Account) -> HttpResponse:
    """Start a copy from or to another service, and show its job."""
    earlier = _find_job(request, account)
    form = ServiceForm(request.POST if request.method == "POST" else None, initial=_initial(earlier))
    if request.method == "POST" and form.is_valid():
        try:
            job_request = copy_jobs.request(
                account, form.credentials(), form.options(), is_outgoing=form.is_outgoing
            )
        except (Refused, StorageError) as refused:
            form.add_error(None, describe_refusal(refused))
        else:
            return redirect("jobs:show", jobs.start_requested(job_request, by=actor_of(request)).pk)
    context = {
        "form": form,
        "earlier": earlier,
        "tabs": _tabs(account, is_file=False),
        "command": form.command(account) if form.is_blocked else "",
    }
    return render(request, "console/copies/service.html", context, status=422 if form.errors else 200)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@account_required(Capability.CONFIGURE)
def start_from_file(request: HttpRequest, account: Account) -> HttpResponse:
    """Receive an Azurite file, whole or to be uploaded in pieces by a script, and start a copy from it."""
    context: dict[str, Any] = {"tabs": _tabs(account, is_file=True)}
    try:
        if request.method == "POST" and "options" not in request.POST:
            return _take_file(request, account)
        earlier = _find_job(request, account)
        number = (
            request.POST.get("file") or request.GET.get("file") or (earlier and earlier.arguments["file"])
        )
        file = copy_jobs.find_file(account, read_number(str(number)) or 0, by=actor_of(request))
        if number and file is None:
            raise FileRefused(Reason.JOB_FILE_EXPIRED, file=FILE_NAME)
        if file is not None:
            form = FileForm(
                copy_jobs.accounts_of(file),
                request.POST if request.method == "POST" else None,
                initial=_initial(earlier),
            )
            if request.method == "POST" and form.is_valid():
                job = copy_jobs.start_from_file(
                    account,
                    file,
                    form.cleaned_data.get("file_account", ""),
                    form.options(),
                    by=actor_of(request),
                )
                return redirect("jobs:show", job.pk)
            context |= {"form": form, "file": file}
    except (Refused, StorageError) as refused:
        context["error"] = describe_refusal(refused)
        if wants_json(request):
            return JsonResponse({"error": context["error"]}, status=422)
    is_wrong = "error" in context or ("form" in context and context["form"].errors)
    return render(request, "console/copies/file.html", context, status=422 if is_wrong else 200)


def _take_file(request: HttpRequest, account: Account) -> HttpResponse:
    by = actor_of(request)
    if wants_json(request):
        size = read_number(request.POST.get("size", "")) or 0
        file = uploads.begin(account, request.POST.get("name", ""), size, by=by)
        return JsonResponse({"address": reverse("copies:upload", args=(account.name, file.pk, size))})
    sent = request.FILES.get("file")
    content = b"" if sent is None else sent.read()
    if not content:
        raise FileRefused(Reason.FILE_ROWS_EMPTY)
    file = uploads.begin(account, "" if sent is None else sent.name or "", len(content), by=by)
    uploads.receive(file, len(content), 0, content, by=by)
    return redirect(_address_of(account, file))


def _address_of(account: Account, file: JobFile) -> str:
    return f"{reverse('copies:file', args=(account.name,))}?file={file.pk}"


@require_http_methods(["GET", "POST"])
@never_cache
@account_required(Capability.CONFIGURE)
def upload(request: HttpRequest, account: Account, file: int, size: int) -> HttpResponse:
    """Write a piece of an Azurite file at ``start``; respond with the size so far, where the upload continues."""
    uploaded = uploads.get(account, file, by=actor_of(request))
    if uploaded is None or uploaded.job_id is not None:
        raise Http404
    written = uploaded.size
    if request.method == "POST":
        start = read_number(request.GET.get("start", "")) or 0
        try:
            written = uploads.receive(uploaded, size, start, request.body, by=actor_of(request))
        except Refused as refused:
            return JsonResponse({"error": describe_refusal(refused)}, status=422)
    return JsonResponse({"size": written, "next": _address_of(account, uploaded) if written == size else ""})


def _find_job(request: HttpRequest, account: Account) -> Job | None:
    """Return the earlier copy to repeat, for its options."""
    number = read_number(request.GET.get("again", ""))
    job = None if number is None else jobs.get(number)
    return job if job is not None and job.account_id == account.pk and job.kind in COPY_KINDS else None


def _initial(job: Job | None) -> dict[str, Any]:
    if job is None:
        return {}
    options = CopyOptions(**job.arguments["options"])
    return {
        "direction": _OUT if job.kind == COPY_OUT_JOB.name else _IN,
        "tables": "" if list(options.tables) == ["*"] else " ".join(options.tables),
        "rename": " ".join(f"{name}={other}" for name, other in options.rename.items()),
        "filter": options.filter,
        "rate": options.rate or None,
        "with_settings": options.with_policies,
        "deletes": options.deletes,
        "is_full": options.is_full,
        "file_account": job.arguments["file_account"],
    }


def _tabs(account: Account, *, is_file: bool) -> list[tuple[str, str, bool]]:
    return [
        (_("Another service"), reverse("copies:start", args=(account.name,)), not is_file),
        (_("A file of Azurite"), reverse("copies:file", args=(account.name,)), is_file),
    ]
