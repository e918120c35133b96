"""Sentences about the permissions of a SAS token, in the reader's language."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Final

from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from console.access.sas.labels import LETTERS, MEANINGS
from console.site.times import describe_distance, to_local
from storage.domain.access.grants import Operation
from storage.domain.sas.explain import ExplainedParameter, KeyLimits, Meaning, TokenSummary
from storage.domain.sas.tokens import read_instant
from storage.domain.values.ticks import to_second

# parameters


@dataclass(frozen=True, slots=True)
class ParameterView:
    name: str
    value: str
    label: Promise
    text: SafeString
    is_wrong: bool


def view_parameters(parameters: Iterable[ExplainedParameter], now: datetime) -> list[ParameterView]:
    return [
        ParameterView(
            it.name, it.value, MEANINGS[it.meaning], describe_parameter(it, now), not it.is_well_formed
        )
        for it in parameters
    ]


def describe_parameter(it: ExplainedParameter, now: datetime) -> SafeString:
    if not it.is_well_formed:
        return SafeString(conditional_escape(_("Invalid value: the token is refused.")))
    match it.meaning:
        case Meaning.START | Meaning.EXPIRY:
            return _describe_moment(it.value, now)
        case Meaning.PERMISSIONS | Meaning.RESOURCE_TYPES | Meaning.SERVICES:
            words = LETTERS[it.meaning]
            return _join_with_and(format_html("{}", words.get(letter, letter)) for letter in it.letters)
        case Meaning.PROTOCOL:
            text = _("only over HTTPS") if it.value == "https" else _("over HTTPS or HTTP")
        case Meaning.ADDRESS:
            text = _describe_address(it.value)
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


def _describe_moment(text: str, now: datetime) -> SafeString:
    ticks = read_instant(text)
    moment = None if ticks is None else to_second(ticks)
    if moment is None:
        return SafeString(conditional_escape(text))
    return format_html("{} ({})", show_moment(moment), describe_distance(moment, now))


def show_moment(moment: datetime) -> SafeString:
    """Render a time in the user's time zone."""
    local = to_local(moment)
    return format_html(
        '<time class="mono" datetime="{}">{}</time>', local.isoformat(), f"{local:%Y-%m-%d %H:%M %Z}"
    )


def _describe_address(text: str) -> str:
    first, dash, last = text.partition("-")
    if dash:
        return _("only from %(first)s to %(last)s") % {"first": first, "last": last}
    return _("only from %(address)s") % {"address": first}


# all of it


def describe_summary(summary: TokenSummary, account: str) -> SafeString:
    """Describe a token's permissions, validity period and address range in a sentence."""
    # Translators: a sentence and its full stop
    return _fill(
        _("%(sentence)s."), sentence=reduce(_append, _conditions(summary), _abilities(summary, account))
    )


_IN_TABLE: Final[Mapping[Operation, Promise]] = {
    Operation.QUERY_ENTITIES: gettext_lazy("query"),
    Operation.INSERT_ENTITY: gettext_lazy("add"),
    Operation.UPDATE_ENTITY: gettext_lazy("update"),
    Operation.DELETE_ENTITY: gettext_lazy("delete"),
}
_IN_ACCOUNT: Final[Mapping[Operation, Promise]] = {
    Operation.QUERY_ENTITIES: gettext_lazy("query entities"),
    Operation.INSERT_ENTITY: gettext_lazy("add entities"),
    Operation.UPDATE_ENTITY: gettext_lazy("update entities"),
    Operation.DELETE_ENTITY: gettext_lazy("delete entities"),
    Operation.QUERY_TABLES: gettext_lazy("list tables"),
    Operation.CREATE_TABLE: gettext_lazy("create tables"),
    Operation.DELETE_TABLE: gettext_lazy("delete tables"),
    Operation.GET_SERVICE_PROPERTIES: gettext_lazy("read service properties"),
    Operation.SET_SERVICE_PROPERTIES: gettext_lazy("set service properties"),
}


def _abilities(summary: TokenSummary, account: str) -> SafeString:
    # upserts need no words of their own: they are adding and updating
    words = _IN_TABLE if summary.table else _IN_ACCOUNT
    abilities = [format_html("<b>{}</b>", words[it]) for it in summary.abilities if it in words]
    if not abilities:
        return SafeString(conditional_escape(_("Grants no permissions")))
    if not summary.table:
        return _fill(_("Can %(do)s in %(account)s"), do=_join_with_and(abilities), account=_name(account))
    return _fill(
        _("Can %(do)s %(entities)s"),
        do=_join_with_and(abilities),
        entities=_describe_entities(summary.table, summary.keys),
    )


def _describe_entities(table: str, keys: KeyLimits) -> SafeString:
    named = {"table": _name(table)}
    if keys == KeyLimits():
        return _fill(_("entities in %(table)s"), **named)
    if keys.start_partition == keys.end_partition:
        return _fill(_("entities in %(table)s with %(keys)s"), keys=_describe_rows(keys), **named)
    first = _describe_key(keys.start_partition, keys.start_row)
    last = _describe_key(keys.end_partition, keys.end_row)
    if not (keys.start_row or keys.end_row) and keys.start_partition and keys.end_partition:
        ends = {"first": _name(keys.start_partition), "last": _name(keys.end_partition)}
        return _fill(_("entities in %(table)s with PartitionKey from %(first)s to %(last)s"), **ends, **named)
    if not keys.end_partition:
        return _fill(_("entities in %(table)s from %(first)s onward"), first=first, **named)
    if not keys.start_partition:
        return _fill(_("entities in %(table)s up to %(last)s"), last=last, **named)
    return _fill(_("entities in %(table)s from %(first)s to %(last)s"), first=first, last=last, **named)


def _describe_rows(keys: KeyLimits) -> SafeString:
    """Describe rows of one partition."""
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


def _describe_key(partition: str, row: str) -> SafeString:
    parts = {"partition": _name(partition), "row": _name(row)}
    return _fill(
        _("PartitionKey %(partition)s, RowKey %(row)s") if row else _("PartitionKey %(partition)s"), **parts
    )


def _conditions(summary: TokenSummary) -> Iterable[SafeString]:
    for ticks, text in ((summary.start, _("not before %(time)s")), (summary.expiry, _("until %(time)s"))):
        moment = None if ticks is None else to_second(ticks)
        if moment is not None:
            yield _fill(text, time=show_moment(moment))
    if summary.is_https_only:
        yield SafeString(conditional_escape(_("only over HTTPS")))
    if summary.address:
        yield SafeString(conditional_escape(_describe_address(summary.address)))


def _join_with_and(parts: Iterable[SafeString]) -> SafeString:
    """Join items, such as "a, b and c"."""
    texts = list(parts)
    if len(texts) < 2:
        return SafeString("".join(texts))
    *most, last = texts
    first = reduce(_join_with_comma, most)
    return _fill(
        pgettext("the last two items of a list", "%(first)s and %(second)s"), first=first, second=last
    )


def _join_with_comma(first: SafeString, second: SafeString) -> SafeString:
    return _fill(pgettext("items of a list", "%(first)s, %(second)s"), first=first, second=second)


def _append(first: SafeString, second: SafeString) -> SafeString:
    # Translators: two parts of a sentence
    return _fill(_("%(first)s, %(second)s"), first=first, second=second)


def _name(text: str) -> SafeString:
    return format_html('<bdi class="mono">{}</bdi>', text)


def _fill(text: str, **parts: SafeString) -> SafeString:
    # the inserted parts are escaped already; the text itself is ours, or a translator's
    return mark_safe(conditional_escape(text) % parts)  # noqa: S308
