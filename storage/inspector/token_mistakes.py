"""What a client may get wrong when it signs a token, as variations of the right text."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice, permutations
from typing import Final
from urllib.parse import unquote

from storage.domain import sas
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.tokens import (
    FIRST_VERSION,
    NAMED_SERVICE,
    PARAMETERS,
    RESTRICTED,
    SCOPED,
    read_instant,
)
from storage.domain.values.edm import TICKS_PER_SECOND
from storage.domain.values.ticks import to_second
from storage.inspector.facts import Facts, ManagedAccount
from storage.inspector.reports import Mistake, finding
from storage.inspector.signatures import Draft, Variation, other_accounts, vary, vary_newlines

Token = TableSas | AccountSas

_TABLES: Final = 1000  # tables to try
_VERSIONS: Final = (
    FIRST_VERSION, "2015-04-05", "2017-07-29", "2018-03-28", "2019-02-02", "2019-07-07", "2020-12-06",
)  # fmt: skip
# neighbours in the signed text that are easily swapped
_SWAPPED: Final = {
    TableSas: (("srk", "epk"), ("st", "se"), ("sip", "spr"), ("sp", "st")),
    AccountSas: (("ss", "srt"), ("sp", "ss"), ("st", "se"), ("sip", "spr")),
}


def draft_token(token: Token, account: str) -> Draft:
    """Draft the right text of a token, by the names of its parameters."""
    is_of_table = isinstance(token, TableSas)
    values = {**dict.fromkeys(PARAMETERS[type(token)], ""), **dict(sas.to_parameters(token))}
    if isinstance(token, TableSas):
        values["tn"] = token.folded
    values |= {"account": account, "service": _service(token.version)}
    return Draft(values, _lines(token, token.version), has_final_newline=not is_of_table)


def _lines(token: Token, version: str) -> tuple[str, ...]:
    if isinstance(token, TableSas):
        restricted = ("{sip}", "{spr}") if version >= RESTRICTED else ()
        resource = "{service}/{account}/{tn}"
        keys = ("{spk}", "{srk}", "{epk}", "{erk}")
        return ("{sp}", "{st}", "{se}", resource, "{si}", *restricted, "{sv}", *keys)
    scope = ("{ses}",) if version >= SCOPED else ()
    return ("{account}", "{sp}", "{ss}", "{srt}", "{st}", "{se}", "{sip}", "{spr}", "{sv}", *scope)


def _service(version: str) -> str:
    return "/table" if version >= NAMED_SERVICE else ""


def usual_mistakes(token: Token, account: str, facts: Facts) -> list[Variation]:
    return [
        *_changed_on_the_way(token),
        *(_of_resource(token, account) if isinstance(token, TableSas) else ()),
        *(vary(mistake, {"account": name}) for name, mistake in other_accounts(account, facts)),
        *(
            vary(
                finding(Mistake.OTHER_LAYOUT, version=version),
                {"service": _service(version)},
                lines=_lines(token, version),
            )
            for version in (FIRST_VERSION, NAMED_SERVICE, RESTRICTED, SCOPED)
        ),
        *_times(token),
        *vary_newlines(has_final_newline=isinstance(token, AccountSas)),
        vary(finding(Mistake.SIGNED_ENCODED), is_encoded=True),
        *_orders(token),
        # parameters that were added after signing
        *(
            vary(finding(Mistake.PARAMETER_ADDED, name=name), {name: ""})
            for name, _ in sas.to_parameters(token)
            if name not in ("sv", "tn")
        ),
    ]


def _changed_on_the_way(token: Token) -> Iterator[Variation]:
    """Restore values that lost a plus or were encoded twice in transit."""
    values = [(name, value) for name, value in sas.to_parameters(token) if name != "tn"]
    for mistake, correct in (
        (Mistake.PLUS_AS_SPACE, lambda value: value.replace(" ", "+")),
        (Mistake.ENCODED_TWICE, unquote),
    ):
        corrected = {name: correct(value) for name, value in values if correct(value) != value}
        if corrected:
            yield vary(finding(mistake, name=", ".join(corrected)), corrected)
        if len(corrected) > 1:
            for name, value in corrected.items():
                yield vary(finding(mistake, name=name), {name: value})


def _of_resource(token: TableSas, account: str) -> Iterator[Variation]:
    yield vary(finding(Mistake.TABLE_CASE, table=token.table), {"tn": token.table})
    yield vary(finding(Mistake.ACCOUNT_DOUBLED, account=account), {"account": f"{account}/{account}"})
    right = _service(token.version)
    for service in ("/table", "table", ""):
        if service != right:
            resource = f"/{account}/{token.folded}"
            mistake = finding(Mistake.PARAMETER_CHANGED, name=right + resource, signed=service + resource)
            yield vary(mistake, {"service": service})


def _orders(token: Token) -> Iterator[Variation]:
    values = dict(sas.to_parameters(token))
    for first, second in _SWAPPED[type(token)]:
        swapped = {first: values.get(second, ""), second: values.get(first, "")}
        yield vary(finding(Mistake.FIELD_ORDER, names=f"{first}, {second}"), swapped)


def _times(token: Token) -> Iterator[Variation]:
    starts, expiries = _spell(token.start), _spell(token.expiry)
    for style in _STYLES:
        spelled = {"st": starts.get(style, token.start), "se": expiries.get(style, token.expiry)}
        mistake = finding(Mistake.TIME_PRECISION, signed=" … ".join(filter(None, spelled.values())))
        yield vary(mistake, spelled)
        yield vary(mistake, {"st": spelled["st"]})
        yield vary(mistake, {"se": spelled["se"]})


_STYLES: Final = (
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%dT%H:%MZ",
    "%Y-%m-%d",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S+00:00",
    "%Y-%m-%dT%H:%M:%S.{:.3}Z",
    "%Y-%m-%dT%H:%M:%S.{:.6}Z",
    "%Y-%m-%dT%H:%M:%S.{:.7}Z",
    "%Y-%m-%dT%H:%M:%S.{:.6}+00:00",
)


def _spell(text: str) -> dict[str, str]:
    """Write an instant in the styles of clients."""
    instant = read_instant(text) if text else None
    moment = None if instant is None else to_second(instant)
    if instant is None or moment is None:
        return {}
    fraction = f"{instant % TICKS_PER_SECOND:07}"
    return {style: moment.strftime(style).format(fraction) for style in _STYLES}


def rare_mistakes(token: Token, account: ManagedAccount) -> Iterator[Variation]:
    """Parameters that were changed after signing; they have many possible values."""
    values: dict[str, Iterable[str]] = {
        "sp": _permissions(token),
        "spr": ("https", "https,http", "http,https", "http"),
        "se": _hours(token.expiry),
        "st": _hours(token.start),
    }
    if isinstance(token, TableSas):
        values["tn"] = islice(account.policies, _TABLES)
        values["si"] = account.policies.get(token.folded, ())
    for name, signed in values.items():
        for value in signed:
            yield vary(finding(Mistake.PARAMETER_CHANGED, name=name, signed=value), {name: value})
    for version in _VERSIONS:
        yield vary(
            finding(Mistake.PARAMETER_CHANGED, name="sv", signed=version),
            {"sv": version, "service": _service(version)},
            lines=_lines(token, version),
        )


def _permissions(token: Token) -> Iterator[str]:
    if isinstance(token, TableSas):
        for size in range(1, 5):
            yield from map("".join, permutations("raud", size))
        return
    letters = "rwdlacu"
    for number in range(1, 1 << len(letters)):
        yield "".join(letter for place, letter in enumerate(letters) if number >> place & 1)
    yield "".join(sorted(token.permissions, key=lambda letter: ("rwdxylacuptmfi" + letter).index(letter)))
    yield "".join(sorted(token.permissions))


def _hours(text: str) -> Iterator[str]:
    """Shift a time that was signed in another time zone."""
    instant = read_instant(text) if re.search("T.*Z$", text) else None
    if instant is None:
        return
    for hours in (*range(-14, 0), *range(1, 15)):
        moment = to_second(instant + hours * 3600 * TICKS_PER_SECOND)
        if moment is not None:
            yield f"{moment:%Y-%m-%dT%H}{text[13:]}"
