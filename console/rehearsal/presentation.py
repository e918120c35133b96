"""Rehearsals, their clients and sets of rules for display."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.site.actors import name_actor, name_sas
from storage.access import sas
from storage.core.rehearsals import WITHHELD, Delivery
from storage.domain.access.actor import load_actor
from storage.domain.requests.observed import Authentication
from storage.domain.requests.series import read_credential
from storage.models import Account, Rehearsal
from storage.rehearsal import rehearsals
from storage.rehearsal.findings import Finding, Phrase, Severity
from storage.rehearsal.report import Comparison, Report
from storage.rehearsal.rules import EFFECTS, Parameter, Rule, dump_rules
from storage.rehearsal.sets import READY, RuleSet
from storage.rehearsal.summaries import ClientCounts, RehearsalSummary, RehearsedExchange

_SHOWN_APART: Final = frozenset({"name", "effect", "when"})


@dataclass(frozen=True, slots=True)
class RuleView:
    """Rule for display."""

    rule: Rule

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def text(self) -> str:
        return gettext(EFFECTS[self.rule.effect].text)

    @property
    def conditions(self) -> list[str]:
        """Return the conditions as in JSON; none if the rule is about every request."""
        [written] = dump_rules([self.rule])
        return _write(written.get("when", {}))

    @property
    def parameters(self) -> list[str]:
        [written] = dump_rules([self.rule])
        return _write({name: value for name, value in written.items() if name not in _SHOWN_APART})


def _write(values: Mapping[str, Any]) -> list[str]:
    return [
        f"{name}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in values.items()
    ]


@dataclass(frozen=True, slots=True)
class EffectView:
    """Effect with its parameters, for those who write rules."""

    name: str
    text: str
    parameters: Sequence[str]


def list_effects() -> list[EffectView]:
    """Return all effects, with the values that their parameters may have."""
    return [
        EffectView(effect.value, gettext(form.text), [_limit(*it) for it in form.parameters.items()])
        for effect, form in EFFECTS.items()
    ]


# in the order of storage.rehearsal.rules.When
CONDITIONS: Final[Mapping[str, Promise]] = {
    "operations": _("A list of operations, such as QueryEntities, or of “reads” and “writes”."),
    "table": _("The name of a table."),
    "partition": _("A PartitionKey."),
    "key_from": _("PartitionKeys from this one."),
    "key_before": _("PartitionKeys before this one."),
    "agent": _("A part of the User-Agent."),
    "credential": _("key1, key2, or the fingerprint of a SAS token."),
    "nth": _("A list of numbers: only the first, third and so on of these requests."),
    "every": _("A number n: only each n-th of these requests."),
    "share": _("The probability with which the rule affects each of these requests, from 0 to 1."),
    "rate": _("Entities a second above which the rule begins."),
    "per": _("What the rate counts by: account, table or partition."),
}


def _limit(name: str, parameter: Parameter) -> str:
    if parameter.choices:
        return f"{name}: {' | '.join(parameter.choices)}"
    unit = f" {parameter.unit}" if parameter.unit else ""
    return f"{name}: {parameter.least:g}–{parameter.most:g}{unit}"


@dataclass(frozen=True, slots=True)
class SetView:
    """Set of rules for display."""

    it: RuleSet

    @property
    def name(self) -> str:
        return self.it.name

    @property
    def is_ready(self) -> bool:
        return self.it.name in READY

    @property
    def text(self) -> str:
        return gettext(self.it.text) if self.is_ready and self.it.text else self.it.text

    @property
    def has_rates(self) -> bool:
        """Return whether a scale has an effect on it."""
        return any(rule.when.rate for rule in self.it.rules)

    @property
    def rules(self) -> list[RuleView]:
        return [RuleView(rule) for rule in self.it.rules]


@dataclass(frozen=True, slots=True)
class FindingView:
    """Finding for display."""

    it: Finding
    is_new: bool  # the previous rehearsal did not have it

    @property
    def is_fault(self) -> bool:
        return self.it.severity is Severity.FAULT

    @property
    def title(self) -> str:
        return gettext(self.it.kind.label)

    @property
    def text(self) -> str:
        facts = {
            name: gettext(str(fact)) if isinstance(fact, Phrase) else fact
            for name, fact in self.it.facts.items()
        }
        return gettext(self.it.template) % facts

    @property
    def requests(self) -> str:
        """Return the query string of the page of requests that lists those which show it."""
        return f"?{urlencode({'ids': ','.join(self.it.requests)})}"

    @property
    def remedies(self) -> list[str]:
        return [gettext(it) for it in self.it.remedies]


@dataclass(frozen=True, slots=True)
class ClientView:
    """Client of a rehearsal, its counts and findings."""

    counts: ClientCounts
    credential: str  # empty for an unknown one
    findings: Sequence[FindingView]

    @property
    def agent(self) -> str:
        return self.counts.agent


def show_clients(account: Account, clients: Sequence[ClientCounts], report: Report) -> list[ClientView]:
    """Combine the counts of clients with their findings, those with faults first."""
    credentials = [read_credential(client.credential) for client in clients]
    labels = sas.labels(account, [name for kind, name in credentials if kind == Authentication.SAS])
    new = set() if report.comparison is None else set(report.comparison.new)
    findings = {(it.agent, it.credential): it.findings for it in report.clients}
    shown = [
        ClientView(
            client,
            name_sas(name, labels.get(name, "")) if kind == Authentication.SAS else name,
            sorted(
                (
                    FindingView(it, (client.agent, it.kind) in new)
                    for it in findings.get((client.agent, client.credential), ())
                ),
                key=lambda it: not it.is_fault,
            ),
        )
        for client, (kind, name) in zip(clients, credentials, strict=True)
    ]
    return sorted(shown, key=lambda it: -sum(1 + 1000 * finding.is_fault for finding in it.findings))


@dataclass(frozen=True, slots=True)
class ExchangeView:
    """Request of a rehearsal, and its answer, for display."""

    it: RehearsedExchange
    is_recorded: bool  # in the request log

    @property
    def is_answered(self) -> bool:
        return self.it.exchange.delivery not in WITHHELD

    @property
    def is_cut(self) -> bool:
        return self.it.exchange.delivery == Delivery.CUT

    @property
    def badge(self) -> str:
        """Return the badge kind of the answer."""
        status = self.it.exchange.status
        if not self.is_answered or self.is_cut or status >= 500 or not status:
            return "danger"
        return "warn" if status >= 400 else "ok"

    @property
    def keys(self) -> str:
        exchange = self.it.exchange
        if exchange.partition is None:
            return ""
        return " / ".join((exchange.partition, *(() if exchange.row is None else (exchange.row,))))

    @property
    def milliseconds(self) -> float:
        return 1000 * self.it.seconds


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Comparison with the previous rehearsal for display."""

    it: Comparison

    @property
    def gone(self) -> list[tuple[str, str]]:
        return [(agent, gettext(kind.label)) for agent, kind in self.it.gone]


@dataclass(frozen=True, slots=True)
class RehearsalView:
    """Rehearsal for display."""

    it: Rehearsal
    summary: RehearsalSummary
    report: Report | None = None

    @property
    def is_running(self) -> bool:
        return self.summary.state == "running"

    @property
    def ended_at(self) -> datetime | None:
        return rehearsals.ended_at(self.it)

    @property
    def faults(self) -> int:
        """Return the number of findings that fail a run."""
        clients = () if self.report is None else self.report.clients
        return sum(it.severity is Severity.FAULT for client in clients for it in client.findings)

    @property
    def comparison(self) -> ComparisonView | None:
        compared = None if self.report is None else self.report.comparison
        return None if compared is None else ComparisonView(compared)

    @property
    def by(self) -> str:
        return name_actor(load_actor(self.it.started_by))

    @property
    def scale(self) -> str:
        return f"{100 * self.it.scale:g} %"

    @property
    def requests(self) -> int:
        return self.summary.requests

    @property
    def faulted(self) -> int:
        return self.summary.faulted
