"""Summary figures of a report, compared with the preceding period."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from console.metrics.charts import Unit, write_decimal, write_number
from console.site.tags import grouped
from storage.domain.requests.series import PeriodCounts, Traffic
from storage.metrics.reports import Report


@dataclass(frozen=True, slots=True)
class Fact:
    """Figure for the whole range; ``change`` compares it with the previous range, ``trend`` is good, bad or empty."""

    value: str
    label: str
    change: str = ""
    trend: str = ""


def summarize(report: Report, before: PeriodCounts | None) -> Iterator[Fact]:
    counts, total = report.total, report.total.total()
    old = before.total() if before is not None else Traffic()
    yield Fact(grouped(counts.requests), _("requests"), _relative(counts.requests, old.requests))
    share = counts.failed / counts.requests if counts.requests else 0.0
    old_share = before.failed / before.requests if before is not None and before.requests else None
    yield _share_fact(share, old_share)
    p95, old_p95 = total.percentile(0.95), old.percentile(0.95)
    yield _latency_fact(p95, old_p95)
    yield Fact(filesizeformat(total.egress), _("egress"), _relative(total.egress, old.egress))
    first, last = report.sizes[0], report.sizes[-1]
    for label, number, former, unit in (
        (_("entities"), last and last.entities, first and first.entities, Unit.COUNT),
        (_("size on disk"), last and last.size, first and first.size, Unit.BYTES),
    ):
        change = ""
        if number is not None and former is not None and number != former:
            change = ("+" if number > former else "−") + write_number(abs(number - former), unit)
        yield Fact(write_number(number, unit), label, change)


def _relative(number: int, former: int) -> str:
    if not former:
        return ""
    percent = round(100 * (number - former) / former)
    return f"{_sign(percent)}{grouped(abs(percent))} %" if percent else ""


def _share_fact(share: float, former: float | None) -> Fact:
    points = round(100 * (share - former), 2) if former is not None else 0.0
    change, trend = "", ""
    if points:
        number = write_decimal(abs(points), 2)
        change = _("%(number)s points") % {"number": f"{_sign(points)}{number}"}
        trend = "bad" if points > 0 else "good"
    return Fact(f"{write_decimal(100 * share, 2)} %", _("errors"), change, trend)


def _latency_fact(p95: float | None, former: float | None) -> Fact:
    change, trend = "", ""
    # percentiles are up to 13 % off
    if p95 and former and abs(p95 - former) > 0.2 * former:
        change = f"{_sign(p95 - former)}{write_number(abs(p95 - former), Unit.SECONDS)}"
        trend = "bad" if p95 > former else "good"
    return Fact(write_number(p95, Unit.SECONDS), _("p95 latency"), change, trend)


def _sign(number: float) -> str:
    return "+" if number > 0 else "−"
