"""Every token that is built does what it says and nothing else, from signature to key."""

from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain import sas
from storage.domain.access.grants import Operation
from storage.domain.entities.entity import EntityKey
from storage.domain.errors import StorageError
from storage.domain.sas import AccountSas, TableSas
from tests.domain import test_grants
from tests.examples import of_usual
from tests.strategies import keys

KEYS = {"key1": b"1" * 64, "key2": b"2" * 64, "another": b"3" * 64}
# some seconds with their texts, in order
MOMENTS = {
    1_798_804_799: "2027-01-01T11:59:59Z",
    1_798_804_800: "2027-01-01T12:00:00.0Z",
    1_798_804_801: "2027-01-01T12:00:01.0000000Z",
    1_798_848_000: "2027-01-02",
}
ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "::1"]
TABLES = ["people", "People", "peoples", "peopl", "things"]

# by operation: letters of a table token, levels and letters of an account token; commas part choices
NEEDS = {
    Operation(name): (of_table, levels, letters)
    for name, levels, letters, of_table in test_grants.NEEDS
    if name not in ("EntityGroupTransaction", "TablePreflightRequest")
}


@dataclass(frozen=True)
class Request:
    operation: Operation
    table: str
    key: EntityKey
    now: int
    scheme: str
    address: str
    account: str


def letters(of, **limits):
    return st.lists(st.sampled_from(of), unique=True, **limits).map("".join)


some_keys = st.sampled_from(["", "a", "b", "b ", "bb", "c"]) | keys
bounds = st.just("") | some_keys
moments = st.sampled_from(list(MOMENTS.values()))
# mostly what lets a token through, so that each condition decides in its turn
validity = {
    "start": st.sampled_from(["", "", "", *list(MOMENTS.values())[:2]]),
    "expiry": st.sampled_from([*MOMENTS.values(), "2028-01-01", "2028-01-01", "2028-01-01"]),
}
restrictions = {
    "address": st.sampled_from(["", "", "", "10.0.0.1", "10.0.0.1-10.0.0.2", "::-::ff"]),
    "protocol": st.sampled_from(["", "", "https", "https,http"]),
}
requests = st.builds(
    Request,
    st.sampled_from(list(NEEDS)),
    st.sampled_from([*["people"] * 4, *TABLES]),
    st.builds(EntityKey, some_keys, some_keys),
    st.sampled_from(list(MOMENTS)),
    st.sampled_from(["https", "https", "http"]),
    st.sampled_from(ADDRESSES),
    st.sampled_from(["acct", "acct", "acct", "accu"]),
)


@st.composite
def table_tokens(draw):
    version = draw(
        st.sampled_from(["2012-02-12", "2014-02-14", "2015-02-21", "2015-04-05", "2019-02-02", "2026-01-01"])
    )
    start_partition, end_partition = draw(bounds), draw(bounds)
    return TableSas(
        version,
        draw(st.sampled_from(TABLES[:2])),
        draw(st.just("raud") | letters("raud", min_size=1)),
        draw(validity["start"]),
        draw(validity["expiry"]),
        "",
        *((draw(field) for field in restrictions.values()) if version >= "2015-04-05" else ("", "")),
        start_partition,
        draw(bounds) if start_partition else "",
        end_partition,
        draw(bounds) if end_partition else "",
    )


account_tokens = st.builds(
    AccountSas,
    st.sampled_from(["2015-04-05", "2019-02-02", "2020-12-06", "2026-01-01"]),
    st.just("t") | letters("bqtf", min_size=1),
    st.just("sco") | letters("sco", min_size=1),
    st.just("rwdlacu") | letters("rwdlacuxyitf", min_size=1),
    **validity,
    **restrictions,
)


@pytest.mark.slow
@settings(max_examples=of_usual(200))
@given(table_tokens() | account_tokens, st.sampled_from(list(KEYS)), requests)
def test_a_token_permits_exactly_its_grant(token, key, request):
    sent = read(sas.write(sas.sign(token, "acct", KEYS[key])))
    assert replace(sent, signature="") == token

    expected = key != "another" and request.account == "acct" and grants(token, request)

    assert let_in(sent, request) == expected


@pytest.mark.slow
@settings(max_examples=of_usual(100))
@given(st.data(), table_tokens() | account_tokens, requests)
def test_no_field_can_be_changed_after_signing(data, token, request):
    sent = sas.sign(token, "acct", KEYS["key1"])
    options = dict(parse_qsl(sas.write(sent), strict_parsing=True))
    others = dict(
        parse_qsl(
            sas.write(sas.sign(data.draw(table_tokens() | account_tokens), "acct", b"x")), strict_parsing=True
        )
    )
    del others["sig"]
    name = data.draw(st.sampled_from(sorted(options | others)))
    kind = data.draw(st.sampled_from(["other", "none", "longer", "shifted"]))
    match kind:
        case "other":
            options[name] = others.get(name, "")
        case "none":
            options.pop(name, None)
        case "longer":
            options[name] = options.get(name, "") + data.draw(st.sampled_from("ra0Z= \n\x00é"))
        case _:
            neighbour = data.draw(st.sampled_from(sorted(options)))
            options[neighbour], options[name] = options.get(name, "") + "\n" + options[neighbour], ""

    try:
        result = sas.read(options)
    except StorageError:
        return
    if result is not None and sas.find_signing_key(result, "acct", [KEYS["key1"]]) is not None:
        assert sas.string_to_sign(result, "acct") == sas.string_to_sign(sent, "acct")
        assert type(result) is type(sent)
        assert let_in(result, request) == let_in(sent, request)


def read(query):
    token = sas.read(dict(parse_qsl(query, strict_parsing=True)))
    assert token is not None
    return token


def let_in(token, request):
    """Return whether the server's checks accept a request: the signature, then times and addresses, then
    permissions.
    """
    if sas.find_signing_key(token, request.account, [KEYS["key1"], KEYS["key2"]]) is None:
        return False
    try:
        granted = sas.authorize(token, None, now=request.now, scheme=request.scheme, address=request.address)
        granted.check(request.operation, request.table.lower())
        if "Entity" in request.operation:
            granted.check_key(request.key)
    except StorageError:
        return False
    return True


def grants(token, request):
    """Return whether the token permits the request, by a second implementation of its rules."""
    of_table, levels, of_account = NEEDS[request.operation]
    if not is_now(token, request.now) or not is_there(token, request):
        return False
    if isinstance(token, AccountSas):
        reached = "t" in token.services and set(levels) & set(token.resource_types)
        return bool(reached) and permitted(of_account, token.permissions)
    if token.table.lower() != request.table.lower() or not permitted(of_table, token.permissions):
        return False
    return "Entity" not in request.operation or is_between(token, request.key)


def permitted(choices, given):
    return choices is not None and any(set(choice) <= set(given) for choice in choices.split(","))


def is_now(token, now):
    texts = [*MOMENTS.values(), "2028-01-01"]
    index = list(MOMENTS).index(now)
    begun = not token.start or texts.index(token.start) <= index
    return begun and index < texts.index(token.expiry)


def is_there(token, request):
    allowed = {
        "": ADDRESSES,
        "10.0.0.1": ["10.0.0.1"],
        "10.0.0.1-10.0.0.2": ["10.0.0.1", "10.0.0.2"],
        "::-::ff": ["::1"],
    }[token.address]
    return request.address in allowed and (token.protocol != "https" or request.scheme == "https")


def is_between(token, key):
    partition, row = key
    after = (
        not token.start_partition
        or partition > token.start_partition
        or (partition == token.start_partition and row >= token.start_row)
    )
    before = (
        not token.end_partition
        or partition < token.end_partition
        or (partition == token.end_partition and (not token.end_row or row <= token.end_row))
    )
    return after and before
