"""The service properties as they are being edited: texts, which may be wrong, and what is wrong with them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from django.http import QueryDict
from django.utils.translation import gettext as _

from storage.domain.errors import InvalidXmlNodeValue, StorageError
from storage.domain.service.service_properties import (
    CORS_METHODS,
    CORS_RULE_LIMIT,
    CORS_SIZE_LIMIT,
    HEADER_LIMIT,
    MAX_AGE,
    ORIGIN_LIMIT,
    PREFIX_LIMIT,
    RETENTION_DAYS,
    CorsRule,
    Logging,
    Metrics,
    PropertiesFault,
    ServiceProperties,
    cors_size,
    find_faults,
)

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "MERGE", "DELETE", "OPTIONS")
assert set(METHODS) == CORS_METHODS
MOST_DRAFTS: Final = 12  # rules of a form; more than may be saved, so that a surplus can be told

_NUMBER = re.compile(r"[0-9]{1,10}")
_NONE: Final = -1  # in the place of what is no number: out of every range


@dataclass(frozen=True, slots=True)
class Told:
    """What is wrong: the service's code and sentence, and the rule in other words."""

    error: StorageError
    rule: str
    where: str  # for people


@dataclass(frozen=True, slots=True)
class RuleDraft:
    """``id`` stays the same while the rule is moved."""

    id: str
    origins: str = ""
    methods: tuple[str, ...] = ()
    allowed_headers: str = ""
    exposed_headers: str = ""
    max_age: str = "3600"

    def read(self) -> CorsRule:
        return CorsRule(
            _texts(self.origins),
            self.methods,
            _texts(self.allowed_headers),
            _texts(self.exposed_headers),
            _number(self.max_age),
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """``version`` of the properties that somebody began with."""

    version: str
    rules: tuple[RuleDraft, ...]
    logging: Logging
    hour_metrics: Metrics
    minute_metrics: Metrics
    days: Mapping[str, str] = field(default_factory=dict)  # by part, as typed

    def read(self) -> ServiceProperties:
        """With numbers out of range where there are none."""
        logs, hours, minutes = (_days(self.days.get(part, "")) for part in PARTS)
        return ServiceProperties(
            replace(self.logging, retention=logs),
            replace(self.hour_metrics, retention=hours),
            replace(self.minute_metrics, retention=minutes),
            tuple(rule.read() for rule in self.rules),
        )

    def faults(self) -> list[PropertiesFault]:
        found = list(find_faults(self.read()))
        wrong = {part for part, text in self.days.items() if _days(text) == _NONE}
        # of a text that is no number the service says something else than of one out of range
        return [
            PropertiesFault(it.where, InvalidXmlNodeValue())
            if it.where[0] in wrong and it.where[-1] == "retention"
            else it
            for it in found
        ]

    def told(self) -> dict[str, Told]:
        """What is wrong, by the field: ``cors``, ``<id of a rule>-<field>``, ``<part>-retention``."""
        return {
            self._name(fault): Told(fault.error, self._rule(fault), _where(fault)) for fault in self.faults()
        }

    def _name(self, fault: PropertiesFault) -> str:
        match fault.where:
            case ("cors", int(place), name):
                return f"{self.rules[place].id}-{name}"
            case _:
                return "-".join(map(str, fault.where))

    def _rule(self, fault: PropertiesFault) -> str:
        if fault.where == ("cors",) and len(self.rules) <= CORS_RULE_LIMIT:
            size = cors_size(self.read().cors)
            return _("The rules take %(size)s bytes. The limit is %(most)s bytes.") % {
                "size": size,
                "most": CORS_SIZE_LIMIT,
            }
        return rule_of(str(fault.where[-1]))

    @property
    def size(self) -> int:
        return cors_size(self.read().cors)


def _where(fault: PropertiesFault) -> str:
    match fault.where:
        case ("cors", int(place), _field):
            return _("Rule %(number)s") % {"number": place + 1}
        case ("logging", _field):
            return _("Request logs")
        case ("hour_metrics", _field):
            return _("Hour metrics")
        case ("minute_metrics", _field):
            return _("Minute metrics")
        case _:
            return _("CORS rules")


PARTS: Final = ("logging", "hour_metrics", "minute_metrics")


def rule_of(name: str) -> str:
    match name:
        case "cors":
            return _("You can have at most %(most)s rules.") % {"most": CORS_RULE_LIMIT}
        case "origins":
            return _(
                "Enter 1 to %(most)s origins such as https://example.org, without a path. * allows every origin."
            ) % {"most": ORIGIN_LIMIT}
        case "methods":
            return _("Select at least one method.")
        case "allowed_headers" | "exposed_headers":
            return _("Enter at most %(names)s header names and %(prefixes)s that end in *.") % {
                "names": HEADER_LIMIT,
                "prefixes": PREFIX_LIMIT,
            }
        case "max_age":
            return _("Enter a whole number of seconds, at most %(most)s.") % {"most": MAX_AGE[-1]}
        case _:
            return _("Enter %(least)s to %(most)s days, or leave the field empty to keep everything.") % {
                "least": RETENTION_DAYS[0],
                "most": RETENTION_DAYS[-1],
            }


def write_draft(properties: ServiceProperties, version: str) -> Draft:
    rules = tuple(_write_rule(f"r{place}", rule) for place, rule in enumerate(properties.cors))
    parts = {part: getattr(properties, part).retention for part in PARTS}
    days = {part: "" if number is None else str(number) for part, number in parts.items()}
    return Draft(version, rules, properties.logging, properties.hour_metrics, properties.minute_metrics, days)


def _write_rule(id_: str, rule: CorsRule) -> RuleDraft:
    return RuleDraft(
        id_,
        ", ".join(rule.origins),
        rule.methods,
        ", ".join(rule.allowed_headers),
        ", ".join(rule.exposed_headers),
        str(rule.max_age),
    )


def read_draft(data: QueryDict) -> Draft:
    """The fields of the form."""
    ids = [id_ for id_ in dict.fromkeys(data.getlist("rule")) if re.fullmatch(r"r[0-9]{1,6}", id_)]
    return Draft(
        data.get("version", ""),
        tuple(_read_rule(data, id_) for id_ in ids[:MOST_DRAFTS]),
        Logging(read="logging-read" in data, write="logging-write" in data, delete="logging-delete" in data),
        _read_metrics(data, "hour_metrics"),
        _read_metrics(data, "minute_metrics"),
        {part: data.get(f"{part}-retention", "").strip() for part in PARTS},
    )


def _read_rule(data: QueryDict, id_: str) -> RuleDraft:
    chosen = data.getlist(f"{id_}-methods")
    names = ("origins", "allowed_headers", "exposed_headers", "max_age")
    origins, allowed, exposed, max_age = (data.get(f"{id_}-{name}", "").strip() for name in names)
    return RuleDraft(id_, origins, tuple(it for it in METHODS if it in chosen), allowed, exposed, max_age)


def _read_metrics(data: QueryDict, name: str) -> Metrics:
    is_enabled = f"{name}-enabled" in data
    return Metrics(enabled=is_enabled, include_apis=is_enabled and f"{name}-include_apis" in data)


def _texts(text: str) -> tuple[str, ...]:
    return tuple(part for part in map(str.strip, text.split(",")) if part)


def _number(text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else _NONE


def _days(text: str) -> int | None:
    return _number(text) if text else None


# what the buttons of the form do to its rules


def added(draft: Draft, *rules: RuleDraft) -> Draft:
    return replace(draft, rules=(*draft.rules, *(replace(rule, id=_free_id(draft)) for rule in rules)))


def _free_id(draft: Draft) -> str:
    return f"r{1 + max((int(rule.id[1:]) for rule in draft.rules), default=-1)}"


def removed(draft: Draft, id_: str) -> Draft:
    return replace(draft, rules=tuple(rule for rule in draft.rules if rule.id != id_))


def moved(draft: Draft, id_: str, by: int) -> Draft:
    """Towards the end by one, or towards the start by minus one."""
    rules = list(draft.rules)
    place = next((place for place, rule in enumerate(rules) if rule.id == id_), None)
    if place is None or not 0 <= place + by < len(rules):
        return draft
    rules[place], rules[place + by] = rules[place + by], rules[place]
    return replace(draft, rules=tuple(rules))


RECIPES: Final[Mapping[str, Sequence[RuleDraft]]] = {
    "blank": (RuleDraft(""),),
    "localhost": (
        RuleDraft(
            "",
            "http://localhost:3000, http://localhost:5173, http://localhost:8080",
            ("GET", "HEAD", "POST", "PUT", "PATCH", "MERGE", "DELETE", "OPTIONS"),
            "*",
            "*",
            "60",
        ),
    ),
    "origin": (
        RuleDraft(
            "",
            "https://app.example.org",
            ("GET", "POST", "OPTIONS"),
            "content-type, accept, x-ms-*",
            "x-ms-*",
        ),
    ),
}
