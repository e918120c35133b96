"""Charts of a report: data series by period, and a table of all their numbers."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from console.site.tags import grouped
from storage.domain.requests.series import PeriodCounts, Traffic
from storage.metrics.reports import Report

_MOST: Final = 5  # series with colours of their own; the rest is one


class Unit(StrEnum):
    """Unit of a chart's numbers; scripts read the values."""

    COUNT = "count"
    SECONDS = "seconds"
    BYTES = "bytes"


def write_number(number: float | None, unit: Unit) -> str:
    if number is None:
        return "–"
    if unit is Unit.BYTES:
        return filesizeformat(number)
    if unit is Unit.SECONDS:
        return write_seconds(number)
    return grouped(int(number))


def write_seconds(seconds: float) -> str:
    milliseconds = seconds * 1000
    if milliseconds >= 10_000:
        return _("%(number)s s") % {"number": write_decimal(seconds, 1)}
    digits = 0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 2
    return _("%(number)s ms") % {"number": write_decimal(milliseconds, digits)}


def write_decimal(number: float, digits: int) -> str:
    """Format a rounded number, where Django's number_format truncates."""
    return number_format(round(number, digits), digits)


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """Data series of a chart: ``values`` by period, None where missing.

    ``total`` appears in the legend, which leads to the ``address`` if there is one.
    """

    label: str | Promise
    values: Sequence[float | None]
    total: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of a report."""

    id: str
    title: str | Promise
    kind: str  # ``bars`` and ``area`` are stacked, ``lines`` are not
    unit: Unit
    series: Sequence[ChartSeries]
    note: str | Promise = ""

    @property
    def columns(self) -> str:
        """Return the values of each series as JSON, which a script draws."""
        return json.dumps([[it and float(f"{it:.4g}") for it in series.values] for series in self.series])

    @property
    def is_empty(self) -> bool:
        return not any(value for it in self.series for value in it.values)


@dataclass(frozen=True, slots=True)
class DataTable:
    """The numbers of all charts by period, latest first."""

    charts: Sequence[Chart]
    rows: Sequence[
        tuple[datetime, bool, Sequence[tuple[str, str]]]
    ]  # the start, whether a server ran, the cells


def list_numbers(report: Report, charts: Sequence[Chart]) -> DataTable:
    shown = [it for it in charts if not it.is_empty]
    columns = [
        [(str(series.label), write_number(value, chart.unit)) for value in series.values]
        for chart in shown
        for series in chart.series
    ]
    rows = list(zip(report.range.periods, report.observed, zip(*columns, strict=True), strict=False))
    return DataTable(shown, rows[::-1])


def write_periods(report: Report) -> str:
    """Return the start of each period in seconds, and whether no server ran, as JSON."""
    times = [int(it.timestamp()) for it in report.range.periods]
    return json.dumps({"times": times, "gaps": [not it for it in report.observed]})


def draw(report: Report, *, has_history: bool, code_address: Callable[[int, str], str]) -> list[Chart]:
    """Return the charts of a report; ``code_address`` makes the address of requests with a status and a code."""

    def chart(
        name: str, title: str, kind: str, unit: Unit, series: Sequence[ChartSeries], note: str = ""
    ) -> Chart:
        return Chart(name, title, kind, unit, series, note)

    traffic = [counts.total() for counts in report.counts]
    return [
        chart("operations", _("Requests by operation"), "bars", Unit.COUNT, _operations(report)),
        chart("latency", _("Latency"), "lines", Unit.SECONDS, _latencies(report, traffic)),
        chart("errors", _("Errors by code"), "bars", Unit.COUNT, _errors(report, code_address)),
        chart("bytes", _("Egress and ingress"), "lines", Unit.BYTES, _bytes(report, traffic)),
        chart("entities", _("Entities"), "lines", Unit.COUNT, _entities(report), _("estimated")),
        chart("size", _("Size"), "area", Unit.BYTES, _sizes(report, has_history=has_history), _("on disk")),
    ]


def _operations(report: Report) -> list[ChartSeries]:
    def read(counts: PeriodCounts) -> dict[str, int]:
        return {name or _("Unknown"): it.requests for name, (it, _errors) in counts.by_operation().items()}

    return _stacked(report, read)


def _errors(report: Report, address: Callable[[int, str], str]) -> list[ChartSeries]:
    def read(counts: PeriodCounts) -> dict[str, int]:
        return {f"{status} {code}".strip(): number for (status, code), number in counts.errors().items()}

    addresses = {f"{status} {code}".strip(): address(status, code) for status, code in report.total.errors()}
    return [replace(it, address=addresses.get(str(it.label), "")) for it in _stacked(report, read)]


def _stacked(report: Report, read: Callable[[PeriodCounts], dict[str, int]]) -> list[ChartSeries]:
    """Return the most frequent names as separate series, and the rest combined."""
    totals = Counter(read(report.total))
    names = [name for name, _number in totals.most_common(_MOST if len(totals) > _MOST + 1 else None)]
    amounts = [read(counts) for counts in report.counts]
    values: dict[str, list[int]] = {name: [it.get(name, 0) for it in amounts] for name in names}
    if len(names) < len(totals):
        values[_("Others")] = [sum(it.values()) - sum(it.get(name, 0) for name in names) for it in amounts]
    return [
        ChartSeries(name, _where_observed(report, numbers), grouped(sum(numbers)))
        for name, numbers in values.items()
    ]


def _where_observed(report: Report, numbers: Iterable[float]) -> list[float | None]:
    """Replace numbers of periods without a running server by None."""
    return [
        number if observed or number else None
        for number, observed in zip(numbers, report.observed, strict=True)
    ]


def _latencies(report: Report, traffic: Sequence[Traffic]) -> list[ChartSeries]:
    whole = report.total.total()
    return [
        ChartSeries(
            f"p{percent}",
            [it.percentile(percent / 100) for it in traffic],
            write_number(whole.percentile(percent / 100), Unit.SECONDS),
        )
        for percent in (50, 95, 99)
    ]


def _bytes(report: Report, traffic: Sequence[Traffic]) -> list[ChartSeries]:
    return [
        ChartSeries(label, _where_observed(report, numbers), filesizeformat(sum(numbers)))
        for label, numbers in (
            (_("Egress"), [it.egress for it in traffic]),
            (_("Ingress"), [it.ingress for it in traffic]),
        )
    ]


def _entities(report: Report) -> list[ChartSeries]:
    values = [it and it.entities for it in report.sizes]
    return [ChartSeries(_("Entities"), values, write_number(values[-1], Unit.COUNT))]


def _sizes(report: Report, *, has_history: bool) -> list[ChartSeries]:
    data = [it and it.size for it in report.sizes]
    series = [ChartSeries(_("Tables"), data, write_number(data[-1], Unit.BYTES))]
    if has_history:
        history = [it and it.history for it in report.sizes]
        series.append(ChartSeries(_("History"), history, write_number(history[-1], Unit.BYTES)))
    return series
