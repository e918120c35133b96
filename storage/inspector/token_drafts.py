"""Texts that a client may have signed by mistake for a token: the right rules with one of them broken."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice, permutations
from typing import Final
from urllib.parse import quote, unquote

from storage.domain import sas
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.tokens import (
    FIRST_VERSION,
    NAMED_SERVICE,
    RESTRICTED,
    SCOPED,
    read_instant,
    with_parameters,
)
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.domain.values.names import DEVELOPMENT_ACCOUNT
from storage.inspector.facts import Facts, ManagedAccount
from storage.inspector.reports import Finding, Mistake, finding
from storage.inspector.search import Change

Token = TableSas | AccountSas
Way = tuple[Finding, "TokenDraft"]

_TABLES: Final = 1000  # tables to try


@dataclass(frozen=True, slots=True)
class TokenDraft:
    """A token and how to write its text; ``layout`` is the version whose fields are signed."""

    token: Token
    account: str
    layout: str
    resource: str = ""  # replaces the right resource of a table SAS
    newline: str = "\n"
    swapped: tuple[int, int] | None = None
    has_final_newline: bool | None = None  # None: as it should be
    is_encoded: bool = False


def write(draft: TokenDraft) -> bytes:
    text = sas.string_to_sign(draft.token, draft.account, draft.layout)
    lines = text.split("\n")
    if draft.resource and isinstance(draft.token, TableSas):
        lines[3] = draft.resource
    if draft.is_encoded:
        lines = [quote(line, safe="/") for line in lines]
    if draft.swapped is not None:
        first, second = draft.swapped
        lines[first], lines[second] = lines[second], lines[first]
    if draft.has_final_newline is not None:
        lines = lines[:-1] if lines[-1] == "" and not draft.has_final_newline else lines
        lines = [*lines, ""] if lines[-1] != "" and draft.has_final_newline else lines
    return draft.newline.join(lines).encode("utf-8", "surrogatepass")


def usual_changes(facts: Facts) -> list[Change[TokenDraft]]:
    return [
        _corrected,
        _resources,
        partial(_accounts, facts=facts),
        _layouts,
        _times,
        _newlines,
        _final,
        _encoded,
        _orders,
        _dropped,
    ]


def rare_changes(account: ManagedAccount) -> list[Change[TokenDraft]]:
    return [
        partial(_tables, account=account),
        partial(_identifiers, account=account),
        _permissions,
        _versions,
        _protocols,
        _hours,
    ]


def _corrected(draft: TokenDraft) -> Iterator[Way]:
    """Restore values that lost a plus or were encoded twice in transit."""
    values = dict(sas.to_parameters(draft.token))
    for mistake, corrected in (
        (Mistake.PLUS_AS_SPACE, {name: value.replace(" ", "+") for name, value in values.items()}),
        (Mistake.ENCODED_TWICE, {name: unquote(value) for name, value in values.items()}),
    ):
        names = [name for name, value in values.items() if corrected[name] != value]
        if names:
            yield finding(mistake, name=", ".join(names)), _with(draft, corrected)
        if len(names) > 1:
            for name in names:
                yield finding(mistake, name=name), _with(draft, {name: corrected[name]})


def _resources(draft: TokenDraft) -> Iterator[Way]:
    if not isinstance(draft.token, TableSas):
        return
    table, folded = draft.token.table, draft.token.folded
    service = "/table" if draft.layout >= NAMED_SERVICE else ""
    right = f"{service}/{draft.account}"
    if table != folded:
        yield finding(Mistake.TABLE_CASE, table=table), replace(draft, resource=f"{right}/{table}")
    yield (
        finding(Mistake.ACCOUNT_DOUBLED, account=draft.account),
        replace(draft, resource=f"{right}/{draft.account}/{folded}"),
    )
    for wrong in (f"{right}/{folded}"[1:], f"/table{right}/{folded}", f"/{draft.account}/{folded}"):
        if wrong != f"{right}/{folded}":
            yield (
                finding(Mistake.PARAMETER_CHANGED, name=f"{right}/{folded}", signed=wrong),
                replace(draft, resource=wrong),
            )


def _accounts(draft: TokenDraft, facts: Facts) -> Iterator[Way]:
    secondary = f"{draft.account}-secondary"
    yield finding(Mistake.SECONDARY_ACCOUNT, account=secondary), replace(draft, account=secondary)
    for name in {*facts.accounts, DEVELOPMENT_ACCOUNT} - {draft.account}:
        yield finding(Mistake.OTHER_ACCOUNT, account=name), replace(draft, account=name)


def _layouts(draft: TokenDraft) -> Iterator[Way]:
    eras = (
        (FIRST_VERSION, NAMED_SERVICE, RESTRICTED)
        if isinstance(draft.token, TableSas)
        else (RESTRICTED, SCOPED)
    )
    for era in eras:
        yield finding(Mistake.OTHER_LAYOUT, version=era), replace(draft, layout=era)


def _times(draft: TokenDraft) -> Iterator[Way]:
    token = draft.token
    starts, expiries = _spellings(token.start), _spellings(token.expiry)
    for style in dict.fromkeys([*starts, *expiries]):
        start, expiry = starts.get(style, token.start), expiries.get(style, token.expiry)
        signed = " … ".join(filter(None, (start, expiry)))
        for changed in ({"st": start, "se": expiry}, {"st": start}, {"se": expiry}):
            if any(value != dict(sas.to_parameters(token)).get(name, "") for name, value in changed.items()):
                yield finding(Mistake.TIME_PRECISION, signed=signed), _with(draft, changed)


_STYLES: Final = {
    "seconds": "%Y-%m-%dT%H:%M:%SZ",
    "minutes": "%Y-%m-%dT%H:%MZ",
    "day": "%Y-%m-%d",
    "no zone": "%Y-%m-%dT%H:%M:%S",
    "offset": "%Y-%m-%dT%H:%M:%S+00:00",
    "milliseconds": "%Y-%m-%dT%H:%M:%S.{:.3}Z",
    "microseconds": "%Y-%m-%dT%H:%M:%S.{:.6}Z",
    "ticks": "%Y-%m-%dT%H:%M:%S.{:.7}Z",
    "python": "%Y-%m-%dT%H:%M:%S.{:.6}+00:00",
}


def _spellings(text: str) -> dict[str, str]:
    """Write an instant in the ways that clients do."""
    instant = read_instant(text) if text else None
    if instant is None:
        return {}
    seconds, fraction = divmod(instant, TICKS_PER_SECOND)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return {}
    return {
        style: moment.strftime(form).format(f"{fraction:07}") if "{" in form else moment.strftime(form)
        for style, form in _STYLES.items()
    }


def _newlines(draft: TokenDraft) -> Iterator[Way]:
    yield finding(Mistake.NEWLINE), replace(draft, newline="\r\n")
    yield finding(Mistake.ESCAPED_NEWLINE), replace(draft, newline="\\n")


def _final(draft: TokenDraft) -> Iterator[Way]:
    is_there = isinstance(draft.token, AccountSas)
    wanted = "1" if is_there else ""
    yield finding(Mistake.FINAL_NEWLINE, wanted=wanted), replace(draft, has_final_newline=not is_there)


def _encoded(draft: TokenDraft) -> Iterator[Way]:
    yield finding(Mistake.SIGNED_ENCODED), replace(draft, is_encoded=True)


def _orders(draft: TokenDraft) -> Iterator[Way]:
    if isinstance(draft.token, TableSas):
        last = len(sas.string_to_sign(draft.token, draft.account, draft.layout).split("\n")) - 1
        pairs = [
            ("srk, epk", (last - 2, last - 1)),
            ("st, se", (1, 2)),
            ("sip, spr", (5, 6)),
            ("sp, st", (0, 1)),
        ]
    else:
        pairs = [("ss, srt", (2, 3)), ("sp, ss", (1, 2)), ("st, se", (4, 5)), ("sip, spr", (6, 7))]
    for names, places in pairs:
        yield finding(Mistake.FIELD_ORDER, names=names), replace(draft, swapped=places)


def _dropped(draft: TokenDraft) -> Iterator[Way]:
    """Remove parameters that were added after signing."""
    for name, _value in sas.to_parameters(draft.token):
        if name not in ("sv", "tn"):
            yield finding(Mistake.PARAMETER_ADDED, name=name), _with(draft, {name: ""})


def _tables(draft: TokenDraft, account: ManagedAccount) -> Iterator[Way]:
    if isinstance(draft.token, TableSas):
        for table in islice(account.policies, _TABLES):
            yield _changed(draft, "tn", table)


def _identifiers(draft: TokenDraft, account: ManagedAccount) -> Iterator[Way]:
    if isinstance(draft.token, TableSas):
        for identifier in account.policies.get(draft.token.folded, ()):
            yield _changed(draft, "si", identifier)


def _permissions(draft: TokenDraft) -> Iterator[Way]:
    letters = "raud" if isinstance(draft.token, TableSas) else "".join(dict.fromkeys(draft.token.permissions))
    sizes = range(1, len(letters) + 1) if len(letters) <= 4 else ()
    words = ("".join(order) for size in sizes for order in permutations(letters, size))
    for word in (*words, *_account_words(draft)):
        yield _changed(draft, "sp", word)


_USUAL_ORDER: Final = "rwdxylacuptmfi"


def _account_words(draft: TokenDraft) -> Iterator[str]:
    if isinstance(draft.token, AccountSas):
        letters = "rwdlacu"
        for number in range(1, 1 << len(letters)):
            yield "".join(letter for place, letter in enumerate(letters) if number >> place & 1)
        own = draft.token.permissions
        yield "".join(sorted(own, key=lambda letter: (_USUAL_ORDER + letter).index(letter)))
        yield "".join(sorted(own))


def _versions(draft: TokenDraft) -> Iterator[Way]:
    later = ("2015-04-05", "2017-07-29", "2018-03-28", "2019-02-02", "2019-07-07", "2020-12-06")
    for version in (FIRST_VERSION, *later):
        yield (
            finding(Mistake.PARAMETER_CHANGED, name="sv", signed=version),
            replace(_with(draft, {"sv": version}), layout=version),
        )


def _protocols(draft: TokenDraft) -> Iterator[Way]:
    for protocol in ("https", "https,http", "http,https", "http"):
        yield _changed(draft, "spr", protocol)


_HOUR: Final = 3600 * TICKS_PER_SECOND


def _hours(draft: TokenDraft) -> Iterator[Way]:
    """Shift times that were signed in another time zone."""
    for name, value in (("se", draft.token.expiry), ("st", draft.token.start)):
        instant = read_instant(value) if value else None
        if instant is None or not re.search("T.*Z$", value):
            continue
        for hours in (*range(-14, 0), *range(1, 15)):
            shifted = _as(value, instant + hours * _HOUR)
            if shifted:
                yield _changed(draft, name, shifted)


def _as(text: str, instant: int) -> str:
    """Write an instant in the same format as the text."""
    try:
        moment = datetime.fromtimestamp(instant // TICKS_PER_SECOND, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{moment:%Y-%m-%dT%H}{text[13:]}"


def _changed(draft: TokenDraft, name: str, value: str) -> Way:
    return finding(Mistake.PARAMETER_CHANGED, name=name, signed=value), _with(draft, {name: value})


def _with(draft: TokenDraft, values: dict[str, str]) -> TokenDraft:
    return replace(draft, token=with_parameters(draft.token, values))
