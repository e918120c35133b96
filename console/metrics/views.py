"""The pages of metrics: of an account, and of a table."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from console.activity import sentences
from console.metrics import charts
from console.metrics.charts import Unit, write_decimal, write_number
from console.metrics.facts import summarize
from console.metrics.ranges import RANGES, ChosenRange, read_range
from console.requests.filters import RequestQuery
from console.site.access import account_required, table_page
from console.site.actors import name_sas
from console.site.responses import render_page
from console.site.times import write_local_time
from storage.access import sas
from storage.domain.access.roles import Capability
from storage.domain.requests.observed import Authentication
from storage.domain.requests.series import Traffic, read_credential
from storage.metrics import reports
from storage.metrics.reports import Report
from storage.models import Account, Activity, Table

_FIRST: Final = 10  # partitions and credentials


@dataclass(frozen=True, slots=True)
class OperationRow:
    """Requests of one operation."""

    operation: str
    traffic: Traffic
    errors: int
    address: str  # its errors in the request log

    @property
    def percentiles(self) -> list[str]:
        return [write_number(self.traffic.percentile(it), Unit.SECONDS) for it in (0.5, 0.95, 0.99)]


@dataclass(frozen=True, slots=True)
class PartitionRow:
    table: str
    key: str
    requests: int
    share: str


@dataclass(frozen=True, slots=True)
class CredentialRow:
    """Requests with one credential."""

    label: str
    requests: int
    share: str
    address: str  # its requests in the request log
    fingerprint: str = ""  # the fingerprint of a SAS token, which leads to its page


@dataclass(frozen=True, slots=True)
class _Log:
    """Links to the request log, limited to the requests of a metrics page."""

    account: Account
    table: Table | None
    chosen: ChosenRange

    def address(self, **wanted: str) -> str:
        since, until = map(write_local_time, (self.chosen.since, self.chosen.until))
        query = RequestQuery(since=since, until=until, table=self.table.name if self.table else "", **wanted)
        return reverse("requests:index", args=(self.account.name,)) + query.query_string()


@account_required(Capability.READ)
@never_cache
@require_safe
def account_metrics(request: HttpRequest, account: Account) -> HttpResponse:
    return _show(request, account, None)


@require_safe
@table_page(Capability.READ)
def table_metrics(request: HttpRequest, table: Table) -> HttpResponse:
    return _show(request, table.account, table)


def _show(request: HttpRequest, account: Account, table: Table | None) -> HttpResponse:
    now = timezone.now()
    chosen = read_range(request.GET, now)
    log = _Log(account, table, chosen)
    report = reports.report(account, table, chosen.range)
    before = reports.total_before(account, table, chosen.range, now)
    drawn = charts.draw(
        report,
        has_history=table is None,
        code_address=lambda status, code: log.address(status=str(status), code=code),
    )
    has_numbers = bool(request.GET.get("data"))
    context = {
        "page_layout": "base.html" if table is None else "table.html",
        "chosen": chosen,
        "ranges": [
            (_with(request, range=name, since="", until=""), label, name == chosen.name)
            for name, (_length, label) in RANGES.items()
        ],
        "step": _describe_step(chosen),
        "facts": list(summarize(report, before)),
        "is_compared": before is not None and before.requests > 0,
        "charts": drawn,
        "numbers": charts.list_numbers(report, drawn) if has_numbers else None,
        "numbers_address": _with(request, data="" if has_numbers else "1"),
        "periods": charts.write_periods(report),
        "operations": [
            OperationRow(name or _("Unknown"), traffic, errors, log.address(operation=name, kind="problem"))
            for name, (traffic, errors) in report.total.by_operation().items()
        ],
        "partitions": _partitions(report, table),
        "missed": report.total.partitions.missed,
        "credentials": _credentials(account, report, log),
        "log_address": log.address(),
        "marks": [(done, _mark(done)) for done in report.marks],
        "address": request.get_full_path(),
    }
    return render_page(request, "console/metrics/show.html", context)


def _with(request: HttpRequest, **changed: str) -> str:
    """Return the query string of the page with other values."""
    query = {**request.GET.dict(), **changed}
    return f"?{urlencode({name: value for name, value in query.items() if value})}"


def _describe_step(chosen: ChosenRange) -> str:
    minutes = chosen.range.step
    if minutes < 60:
        return _("per %(number)s min") % {"number": minutes}
    if minutes < 1440:
        return _("per %(number)s h") % {"number": minutes // 60}
    return _("per day (UTC)")


def _share(number: int, report: Report) -> str:
    return f"{write_decimal(100 * number / report.total.requests, 1)} %" if report.total.requests else ""


def _partitions(report: Report, table: Table | None) -> list[PartitionRow]:
    rows = []
    for text, number in report.total.partitions.top(_FIRST):
        name, key = text.split("/", 1) if table is None else (table.name, text)
        rows.append(PartitionRow(name, key, number, _share(number, report)))
    return rows


def _credentials(account: Account, report: Report, log: _Log) -> list[CredentialRow]:
    credentials = [(*read_credential(key), number) for key, number in report.total.credentials.top(_FIRST)]
    labels = sas.labels(account, [name for kind, name, _number in credentials if kind == Authentication.SAS])
    return [
        CredentialRow(
            name_sas(name, labels.get(name, "")) if kind == Authentication.SAS else name,
            number,
            _share(number, report),
            log.address(how=kind, credential=name),
            name if kind == Authentication.SAS else "",
        )
        for kind, name, number in credentials
    ]


def _mark(done: Activity) -> str:
    return sentences.plain_sentence(done)
