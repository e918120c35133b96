"""Rules of a rehearsal: when one strikes, and what it does; their form in JSON."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from storage.core.rehearsals import RequestFacts
from storage.domain.access.grants import CHANGES, Operation
from storage.domain.refusals import Refused
from storage.domain.translation import mark as _
from storage.rehearsal.subject import RehearsalReason

RULES_LIMIT: Final = 32
NAME_LIMIT: Final = 64
_TEXT_LIMIT: Final = 1024  # characters of a key, a name of a table or of a client
# PostgreSQL's JSON holds neither
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_RULE_NAME: Final = re.compile(rf"[ -+\--~]{{1,{NAME_LIMIT}}}")  # printable ASCII characters but the comma

Value = float | str


class Effect(StrEnum):
    """Effect of a rule on a request."""

    THROTTLE = "throttle"
    ERROR = "error"
    AMBIGUOUS_APPLIED = "ambiguous-applied"
    AMBIGUOUS_UNAPPLIED = "ambiguous-unapplied"
    CUT_ANSWER = "cut-answer"
    SLOW_ANSWER = "slow-answer"
    DELAY = "delay"
    SHORT_PAGE = "short-page"
    STALE_SECONDARY = "stale-secondary"
    LATE_POLICIES = "late-policies"
    CLOCK_SKEW = "clock-skew"


@dataclass(frozen=True, slots=True)
class Parameter:
    """Parameter of an effect: a number between bounds, or one of some words."""

    default: Value
    least: float = 0.0
    most: float = 0.0
    choices: tuple[str, ...] = ()
    unit: str = ""


@dataclass(frozen=True, slots=True)
class EffectForm:
    """Description of an effect, and its parameters."""

    text: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    operations: frozenset[Operation] | None = None  # the only ones that it is about
    only_secondary: bool = False
    is_chosen: bool = True  # for each request; False: it holds all the time, for a table or all of them


ANY: Final = "any"
ANSWERS: Final = ("timeout", "close", "reset", "silence", ANY)
_QUERIES: Final = frozenset({Operation.QUERY_ENTITIES, Operation.QUERY_TABLES})
_READS: Final = frozenset(
    {
        Operation.QUERY_ENTITY,
        Operation.QUERY_ENTITIES,
        Operation.QUERY_TABLE,
        Operation.QUERY_TABLES,
        Operation.GET_TABLE_ACL,
        Operation.GET_SERVICE_PROPERTIES,
        Operation.GET_SERVICE_STATS,
    }
)
_ANSWER: Final = {
    "answer": Parameter("timeout", choices=ANSWERS),
    "seconds": Parameter(30.0, 0.1, 120.0, unit="s"),
}

EFFECTS: Final[Mapping[Effect, EffectForm]] = {
    Effect.THROTTLE: EffectForm(
        _("Answers 503 ServerBusy, in Cosmos accounts 429; nothing is done."),
        {"retry_after": Parameter(1.0, 0.0, 60.0, unit="s")},
    ),
    Effect.ERROR: EffectForm(_("Answers 500 InternalError; nothing is done.")),
    Effect.AMBIGUOUS_APPLIED: EffectForm(
        _("Does the operation, and answers 500 OperationTimedOut, or not at all."), _ANSWER
    ),
    Effect.AMBIGUOUS_UNAPPLIED: EffectForm(
        _("Does nothing, and answers 500 OperationTimedOut, or not at all."), _ANSWER
    ),
    Effect.CUT_ANSWER: EffectForm(_("Does the operation, and closes the connection within the answer.")),
    Effect.SLOW_ANSWER: EffectForm(
        _("Sends the answer in pieces."), {"seconds": Parameter(5.0, 0.1, 120.0, unit="s")}
    ),
    Effect.DELAY: EffectForm(
        _("Waits before the operation."),
        {
            "p50": Parameter(100.0, 0.0, 60_000.0, unit="ms"),
            "p99": Parameter(100.0, 0.0, 60_000.0, unit="ms"),
        },
    ),
    Effect.SHORT_PAGE: EffectForm(
        _("Ends a page early, with a continuation token."),
        {
            "empty": Parameter(0.2, 0.0, 0.9),  # share of empty pages
            "at": Parameter("anywhere", choices=("anywhere", "partition")),
        },
        _QUERIES,
    ),
    Effect.STALE_SECONDARY: EffectForm(
        _("Reads by the secondary address see the account as it was."),
        {"lag": Parameter(120.0, 1.0, 86_400.0, unit="s")},
        _READS,
        only_secondary=True,
    ),
    Effect.LATE_POLICIES: EffectForm(
        _("Changed stored access policies hold late."),
        {"seconds": Parameter(30.0, 1.0, 600.0, unit="s")},
        is_chosen=False,
    ),
    Effect.CLOCK_SKEW: EffectForm(
        _("Authorizes by a clock that is ahead."), {"minutes": Parameter(20.0, -1440.0, 1440.0, unit="min")}
    ),
}

# names for several operations
GROUPS: Final[Mapping[str, frozenset[Operation]]] = {
    "reads": _READS,
    "writes": CHANGES,
}


class Per(StrEnum):
    """Unit by which a rate counts."""

    ACCOUNT = "account"
    TABLE = "table"
    PARTITION = "partition"


@dataclass(frozen=True, slots=True)
class When:
    """Conditions of a rule; all must hold, and the defaults always do."""

    operations: tuple[str, ...] = ()  # names of operations or groups
    table: str = ""  # to be folded by the kind of the account
    partition: str | None = None
    key_from: str | None = None  # PartitionKeys from here
    key_before: str | None = None  # to below here
    agent: str = ""  # part of the User-Agent
    credential: str = ""  # key1, key2, or the fingerprint of a SAS
    nth: tuple[int, ...] = ()  # only these of the requests that meet the conditions above, from 1
    every: int = 0  # only each so manieth of them
    share: float = 1.0  # probability for each of them
    rate: float = 0.0  # entities a second above which it strikes, at a scale of 1
    per: Per = Per.ACCOUNT

    def includes(self, facts: RequestFacts) -> bool:
        """Return whether a request meets the conditions that do not need a count."""
        if self.operations and facts.operation not in _operations(self.operations):
            return False
        if self.table and facts.table != self.table:
            return False
        if self.partition is not None and facts.partition != self.partition:
            return False
        if self.key_from is not None or self.key_before is not None:
            if facts.partition is None:
                return False
            if self.key_from is not None and facts.partition < self.key_from:
                return False
            if self.key_before is not None and facts.partition >= self.key_before:
                return False
        if self.agent and self.agent.lower() not in facts.agent.lower():
            return False
        if self.per is Per.PARTITION and self.rate and facts.partition is None:
            return False
        return not self.credential or facts.credential.endswith(f":{self.credential}")

    def strikes(self, number: int, drawn: float) -> bool:
        """Return whether the request with a number, from 1, among those included is struck, its rate aside."""
        if self.nth and number not in self.nth:
            return False
        if self.every and number % self.every:
            return False
        return drawn < self.share


def _operations(names: Collection[str]) -> frozenset[str]:
    return frozenset().union(*(GROUPS.get(name, frozenset({name})) for name in names))


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule of a rehearsal."""

    name: str
    effect: Effect
    when: When = When()
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def number(self, name: str) -> float:
        """Return the value of a numeric parameter."""
        return float(self.parameters.get(name, EFFECTS[self.effect].parameters[name].default))

    def word(self, name: str) -> str:
        """Return the value of a parameter that is a word."""
        return str(self.parameters.get(name, EFFECTS[self.effect].parameters[name].default))

    def concerns(self, facts: RequestFacts) -> bool:
        """Return whether the effect can be seen in a request that meets the rule's conditions."""
        form = EFFECTS[self.effect]
        if not form.is_chosen or (form.only_secondary and not facts.secondary):
            return False
        if form.operations is not None and facts.operation not in form.operations:
            return False
        return self.when.includes(facts)


# JSON: a list of objects with name, effect, when, and the parameters of the effect


def read_rules(written: object) -> tuple[Rule, ...]:
    """Parse rules; raises Refused, which names the place and what may be there."""
    if not isinstance(written, list) or not 1 <= len(written) <= RULES_LIMIT:
        raise Refused(RehearsalReason.RULES_MALFORMED, most=RULES_LIMIT)
    rules = tuple(_read_rule(number, rule) for number, rule in enumerate(written, start=1))
    names = [rule.name for rule in rules]
    for number, name in enumerate(names, start=1):
        if names.index(name) != number - 1:
            raise Refused(RehearsalReason.RULE_NAME_TWICE, number=number)
    return rules


def dump_rules(rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Serialize rules, leaving out what is as by default."""
    return [_dump_rule(rule) for rule in rules]


def _dump_rule(rule: Rule) -> dict[str, Any]:
    default, when = When(), rule.when
    conditions = {
        name: list(value) if isinstance(value, tuple) else value
        for name in When.__slots__
        if (value := getattr(when, name)) != getattr(default, name)
    }
    written: dict[str, Any] = {"name": rule.name, "effect": rule.effect.value, **rule.parameters}
    return {**written, "when": conditions} if conditions else written


def _refuse_other(number: int, member: str, choices: Iterable[str]) -> Refused:
    listed = ", ".join(choices)
    return Refused(RehearsalReason.RULE_CHOICE, number=number, member=member, choices=listed)


def _refuse_member(number: int, member: str, names: Iterable[str]) -> Refused:
    listed = ", ".join(names)
    return Refused(RehearsalReason.RULE_MEMBER, number=number, member=member, names=listed)


def _refuse_number(number: int, member: str, least: float, most: float) -> Refused:
    lowest, highest = f"{least:g}", f"{most:g}"
    return Refused(RehearsalReason.RULE_NUMBER, number=number, member=member, least=lowest, most=highest)


def _read_rule(number: int, written: object) -> Rule:
    if not isinstance(written, Mapping):
        raise Refused(RehearsalReason.RULE_NO_OBJECT, number=number)
    members = dict(written)
    effect = members.pop("effect", None)
    if effect not in tuple(Effect):
        raise _refuse_other(number, "effect", Effect)
    name = members.pop("name", effect)
    if not isinstance(name, str) or not _RULE_NAME.fullmatch(name):
        raise Refused(RehearsalReason.RULE_NAME, number=number, most=NAME_LIMIT)
    when = _read_when(number, members.pop("when", {}), Effect(effect))
    forms = EFFECTS[Effect(effect)].parameters
    for member, value in members.items():
        if member not in forms:
            raise _refuse_member(number, member, ("name", "effect", "when", *forms))
        _check_parameter(number, member, value, forms[member])
    return Rule(name, Effect(effect), when, members)


def _check_parameter(number: int, member: str, value: object, form: Parameter) -> None:
    if form.choices:
        if value not in form.choices:
            raise _refuse_other(number, member, form.choices)
    elif not _is_number(value, form.least, form.most):
        raise _refuse_number(number, member, form.least, form.most)


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _read_when(number: int, written: object, effect: Effect) -> When:
    if not isinstance(written, Mapping):
        raise Refused(RehearsalReason.RULE_WHEN, number=number)
    values: dict[str, Any] = {}
    for member, value in written.items():
        if not EFFECTS[effect].is_chosen and member != "table":
            raise _refuse_member(number, f"when.{member}", ("when.table",))
        values[member] = _read_condition(number, str(member), value)
    if values.get("per") and not values.get("rate"):
        raise Refused(RehearsalReason.RULE_WITHOUT_RATE, number=number)
    return When(**values)


def _read_condition(number: int, member: str, value: object) -> object:
    match member:
        case "operations":
            known = {*Operation, *GROUPS}
            if not isinstance(value, list) or not value or not known.issuperset(map(str, value)):
                choices = ", ".join(sorted(map(str, known)))
                raise Refused(RehearsalReason.RULE_LIST, number=number, member=member, choices=choices)
            return tuple(value)
        case "table" | "partition" | "key_from" | "key_before" | "agent" | "credential":
            if not isinstance(value, str) or len(value) > _TEXT_LIMIT or _UNSTORABLE.search(value):
                raise Refused(RehearsalReason.RULE_TEXT, number=number, member=member, most=_TEXT_LIMIT)
            return value
        case "nth":
            if not isinstance(value, list) or not value or not all(_is_count(it) for it in value):
                raise Refused(RehearsalReason.RULE_INTEGERS, number=number, member=member)
            return tuple(value)
        case "every":
            if not _is_count(value):
                raise Refused(RehearsalReason.RULE_INTEGER, number=number, member=member)
            return value
        case "share":
            if not _is_number(value, 0, 1):
                raise _refuse_number(number, member, 0, 1)
            return float(str(value))
        case "rate":
            if not _is_number(value, 0.01, 1e6):
                raise _refuse_number(number, member, 0.01, 1e6)
            return float(str(value))
        case "per":
            if value not in tuple(Per):
                raise _refuse_other(number, member, Per)
            return Per(str(value))
    raise _refuse_member(number, f"when.{member}", When.__slots__)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 10**9
