"""What a shared access signature says, in the reader's words; storage.domain.sas.explain knows what it means."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Final

from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy

from storage.domain.sas.explain import Ability, ExplainedParameter, KeyLimits, Meaning, TokenSummary
from storage.domain.sas.known import TokenState
from storage.domain.sas.tokens import read_instant
from storage.domain.values.edm import TICKS_PER_SECOND

STATES: Final[Mapping[TokenState, Promise]] = {
    TokenState.ACTIVE: gettext_lazy("active"),
    TokenState.EXPIRES_SOON: gettext_lazy("expires soon"),
    TokenState.NOT_YET_VALID: gettext_lazy("not yet valid"),
    TokenState.EXPIRED: gettext_lazy("expired"),
    TokenState.REVOKED: gettext_lazy("revoked"),
    TokenState.ORPHANED: gettext_lazy("policy missing"),
    TokenState.CONFLICTING: gettext_lazy("conflicts with policy"),
    TokenState.BLOCKED: gettext_lazy("blocked"),
}
# of badges
KINDS: Final[Mapping[TokenState, str]] = {
    TokenState.ACTIVE: "ok",
    TokenState.EXPIRES_SOON: "warn",
    TokenState.NOT_YET_VALID: "info",
    TokenState.EXPIRED: "",
    TokenState.REVOKED: "danger",
    TokenState.ORPHANED: "danger",
    TokenState.CONFLICTING: "danger",
    TokenState.BLOCKED: "danger",
}
REASONS: Final[Mapping[TokenState, Promise]] = {
    TokenState.ACTIVE: gettext_lazy("Requests with this token are accepted."),
    TokenState.EXPIRES_SOON: gettext_lazy("Requests with this token are accepted. It expires within 7 days."),
    TokenState.NOT_YET_VALID: gettext_lazy("Requests with this token are refused: it is not yet valid."),
    TokenState.EXPIRED: gettext_lazy("Requests with this token are refused: it has expired."),
    TokenState.REVOKED: gettext_lazy(
        "Requests with this token are refused: the key that signed it was rotated."
    ),
    TokenState.ORPHANED: gettext_lazy("Requests with this token are refused: its policy does not exist."),
    TokenState.CONFLICTING: gettext_lazy(
        "Requests with this token are refused: it sets a field that its policy sets too, or neither sets a"
        " required one."
    ),
    TokenState.BLOCKED: gettext_lazy("Requests with this token are refused: it is blocked."),
}

PERMISSIONS: Final[Mapping[str, Promise]] = {
    "r": pgettext_lazy("permission", "Query"),
    "a": pgettext_lazy("permission", "Add"),
    "u": pgettext_lazy("permission", "Update"),
    "d": pgettext_lazy("permission", "Delete"),
    "w": pgettext_lazy("permission", "Write"),
    "c": pgettext_lazy("permission", "Create"),
    "l": pgettext_lazy("permission", "List"),
}
RESOURCE_TYPES: Final[Mapping[str, Promise]] = {
    "s": gettext_lazy("Service"),
    "c": gettext_lazy("Tables"),
    "o": gettext_lazy("Entities"),
}
SERVICES: Final[Mapping[str, Promise]] = {
    "b": gettext_lazy("blobs"),
    "q": gettext_lazy("queues"),
    "t": gettext_lazy("tables"),
    "f": gettext_lazy("files"),
}
_LETTERS: Final[Mapping[Meaning, Mapping[str, Promise]]] = {
    Meaning.PERMISSIONS: PERMISSIONS,
    Meaning.RESOURCE_TYPES: RESOURCE_TYPES,
    Meaning.SERVICES: SERVICES,
}

MEANINGS: Final[Mapping[Meaning, Promise]] = {
    Meaning.VERSION: gettext_lazy("Version"),
    Meaning.TABLE: gettext_lazy("Table"),
    Meaning.SERVICES: gettext_lazy("Services"),
    Meaning.RESOURCE_TYPES: gettext_lazy("Resource types"),
    Meaning.PERMISSIONS: gettext_lazy("Permissions"),
    Meaning.START: gettext_lazy("Start"),
    Meaning.EXPIRY: gettext_lazy("Expiry"),
    Meaning.ADDRESS: gettext_lazy("IP addresses"),
    Meaning.PROTOCOL: gettext_lazy("Protocol"),
    Meaning.IDENTIFIER: gettext_lazy("Policy"),
    Meaning.START_PARTITION: gettext_lazy("First PartitionKey"),
    Meaning.START_ROW: gettext_lazy("First RowKey"),
    Meaning.END_PARTITION: gettext_lazy("Last PartitionKey"),
    Meaning.END_ROW: gettext_lazy("Last RowKey"),
    Meaning.ENCRYPTION_SCOPE: gettext_lazy("Encryption scope"),
    Meaning.SIGNATURE: gettext_lazy("Signature"),
    Meaning.UNKNOWN: gettext_lazy("Not a SAS parameter"),
}


_MINUTE: Final = timedelta(minutes=1)

# a parameter


def explained(it: ExplainedParameter, now: datetime) -> SafeString:
    """What a parameter of a token means, as a phrase."""
    if not it.is_well_formed:
        return SafeString(conditional_escape(_("Invalid value: the token is refused.")))
    match it.meaning:
        case Meaning.START | Meaning.EXPIRY:
            return _moment(it.value, now)
        case Meaning.PERMISSIONS | Meaning.RESOURCE_TYPES | Meaning.SERVICES:
            words = _LETTERS[it.meaning]
            return _listed(format_html("{}", words.get(letter, letter)) for letter in it.letters)
        case Meaning.PROTOCOL:
            text = _("only over HTTPS") if it.value == "https" else _("over HTTPS or HTTP")
        case Meaning.ADDRESS:
            text = _address(it.value)
        case Meaning.IDENTIFIER:
            text = _("Fields that the token leaves out come from this policy.")
        case Meaning.VERSION:
            text = _("The service version whose signing rules apply.")
        case Meaning.TABLE:
            text = _("The only table this token grants access to. Table names are case-insensitive.")
        case Meaning.SIGNATURE:
            text = _("Proves that the token was created with the account key.")
        case Meaning.START_PARTITION | Meaning.START_ROW | Meaning.END_PARTITION | Meaning.END_ROW:
            text = _("This key is included in the range.")
        case Meaning.ENCRYPTION_SCOPE:
            text = _("Ignored for tables.")
        case _:
            text = _("Not covered by the signature.")
    return SafeString(conditional_escape(text))


def _moment(text: str, now: datetime) -> SafeString:
    ticks = read_instant(text)
    moment = None if ticks is None else moment_of(ticks)
    if moment is None:
        return SafeString(conditional_escape(text))
    return format_html("{} ({})", clock(moment), distance(moment, now))


def moment_of(ticks: int) -> datetime | None:
    """None for a time that Python does not know."""
    try:
        return datetime.fromtimestamp(ticks // TICKS_PER_SECOND, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def distance(moment: datetime, now: datetime) -> str:
    """Of the two largest units, as `in 3 days, 2 hours`."""
    if abs(moment - now) < _MINUTE:
        return _("just now")
    if moment > now:
        return _("in %(time)s") % {"time": timeuntil(moment, now)}
    return _("%(time)s ago") % {"time": timesince(moment, now)}


def clock(moment: datetime) -> SafeString:
    """In the reader's zone, or where that is beyond the calendar as it is: tokens are made until 9999-12-31."""
    try:
        local = timezone.localtime(moment)
    except OverflowError:
        local = moment
    return format_html(
        '<time class="mono" datetime="{}">{}</time>', local.isoformat(), f"{local:%Y-%m-%d %H:%M %Z}"
    )


def _address(text: str) -> str:
    first, dash, last = text.partition("-")
    if dash:
        return _("only from %(first)s to %(last)s") % {"first": first, "last": last}
    return _("only from %(address)s") % {"address": first}


# all of it


def sentence(summary: TokenSummary, account: str) -> SafeString:
    """What a token is good for; to whom, when and from where."""
    # Translators: a sentence and its full stop
    return _fill(
        _("%(sentence)s."), sentence=reduce(_after, _conditions(summary), _abilities(summary, account))
    )


_ENTITIES: Final[Mapping[Ability, Promise]] = {
    Ability.QUERY: gettext_lazy("query"),
    Ability.ADD: gettext_lazy("add"),
    Ability.UPDATE: gettext_lazy("update"),
    Ability.DELETE: gettext_lazy("delete"),
}
_EVERYTHING: Final[Mapping[Ability, Promise]] = {
    Ability.QUERY: gettext_lazy("query entities"),
    Ability.ADD: gettext_lazy("add entities"),
    Ability.UPDATE: gettext_lazy("update entities"),
    Ability.DELETE: gettext_lazy("delete entities"),
    Ability.LIST_TABLES: gettext_lazy("list tables"),
    Ability.CREATE_TABLES: gettext_lazy("create tables"),
    Ability.DELETE_TABLES: gettext_lazy("delete tables"),
    Ability.READ_SERVICE: gettext_lazy("read service properties"),
    Ability.WRITE_SERVICE: gettext_lazy("set service properties"),
}


def _abilities(summary: TokenSummary, account: str) -> SafeString:
    # who may insert and update may do both at once: that is nothing more
    words = _ENTITIES if summary.table else _EVERYTHING
    found = [format_html("<b>{}</b>", words[it]) for it in summary.abilities if it in words]
    if not found:
        return SafeString(conditional_escape(_("Grants no permissions")))
    if not summary.table:
        return _fill(_("Can %(do)s in %(account)s"), do=_listed(found), account=_name(account))
    return _fill(
        _("Can %(do)s %(entities)s"), do=_listed(found), entities=_reach(summary.table, summary.keys)
    )


def _reach(table: str, keys: KeyLimits) -> SafeString:
    named = {"table": _name(table)}
    if keys == KeyLimits():
        return _fill(_("entities in %(table)s"), **named)
    if keys.start_partition == keys.end_partition:
        return _fill(_("entities in %(table)s with %(keys)s"), keys=_partition(keys), **named)
    first = _position(keys.start_partition, keys.start_row)
    last = _position(keys.end_partition, keys.end_row)
    if not (keys.start_row or keys.end_row) and keys.start_partition and keys.end_partition:
        ends = {"first": _name(keys.start_partition), "last": _name(keys.end_partition)}
        return _fill(_("entities in %(table)s with PartitionKey from %(first)s to %(last)s"), **ends, **named)
    if not keys.end_partition:
        return _fill(_("entities in %(table)s from %(first)s onward"), first=first, **named)
    if not keys.start_partition:
        return _fill(_("entities in %(table)s up to %(last)s"), last=last, **named)
    return _fill(_("entities in %(table)s from %(first)s to %(last)s"), first=first, last=last, **named)


def _partition(keys: KeyLimits) -> SafeString:
    """The rows of one partition."""
    parts = {
        "partition": _name(keys.start_partition),
        "first": _name(keys.start_row),
        "last": _name(keys.end_row),
    }
    if keys.start_row and keys.start_row == keys.end_row:
        return _fill(_("PartitionKey %(partition)s and RowKey %(first)s"), **parts)
    if keys.start_row and keys.end_row:
        return _fill(_("PartitionKey %(partition)s and RowKey from %(first)s to %(last)s"), **parts)
    if keys.start_row:
        return _fill(_("PartitionKey %(partition)s and RowKey from %(first)s onward"), **parts)
    if keys.end_row:
        return _fill(_("PartitionKey %(partition)s and RowKey up to %(last)s"), **parts)
    return _fill(_("PartitionKey %(partition)s"), **parts)


def _position(partition: str, row: str) -> SafeString:
    parts = {"partition": _name(partition), "row": _name(row)}
    return _fill(
        _("PartitionKey %(partition)s, RowKey %(row)s") if row else _("PartitionKey %(partition)s"), **parts
    )


def reach(keys: KeyLimits) -> SafeString:
    """The range of keys alone, as short as it goes: `A … F / 10`."""
    first, last = (keys.start_partition, keys.start_row), (keys.end_partition, keys.end_row)
    if first == last:
        return _ends(*first)
    if first[0] == last[0]:
        return format_html(
            '<bdi>{}</bdi><span class="faint"> / </span><bdi>{}</bdi> … <bdi>{}</bdi>', *first, last[1]
        )
    return format_html(
        "{} … {}", _ends(keys.start_partition, keys.start_row), _ends(keys.end_partition, keys.end_row)
    )


def _ends(partition: str, row: str) -> SafeString:
    if not partition:
        return SafeString("")
    if not row:
        return format_html("<bdi>{}</bdi>", partition)
    return format_html('<bdi>{}</bdi><span class="faint"> / </span><bdi>{}</bdi>', partition, row)


def _conditions(summary: TokenSummary) -> Iterable[SafeString]:
    for ticks, text in ((summary.start, _("not before %(time)s")), (summary.expiry, _("until %(time)s"))):
        moment = None if ticks is None else moment_of(ticks)
        if moment is not None:
            yield _fill(text, time=clock(moment))
    if summary.is_https_only:
        yield SafeString(conditional_escape(_("only over HTTPS")))
    if summary.address:
        yield SafeString(conditional_escape(_address(summary.address)))


def _listed(parts: Iterable[SafeString]) -> SafeString:
    """Join as ``a, b and c``."""
    found = list(parts)
    if len(found) < 2:
        return SafeString("".join(found))
    *most, last = found
    first = reduce(_comma, most)
    return _fill(
        pgettext("the last two items of a list", "%(first)s and %(second)s"), first=first, second=last
    )


def _comma(first: SafeString, second: SafeString) -> SafeString:
    return _fill(pgettext("items of a list", "%(first)s, %(second)s"), first=first, second=second)


def _after(first: SafeString, second: SafeString) -> SafeString:
    # Translators: two parts of a sentence
    return _fill(_("%(first)s, %(second)s"), first=first, second=second)


def _name(text: str) -> SafeString:
    return format_html('<bdi class="mono">{}</bdi>', text)


def _fill(text: str, **parts: SafeString) -> SafeString:
    # what is put in is escaped already; the text itself is ours, or a translator's
    return mark_safe(conditional_escape(text) % parts)  # noqa: S308
