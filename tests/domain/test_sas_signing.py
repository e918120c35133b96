"""The text that each version signs, compared with the documentation and with the SDKs that sign it."""

import base64
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import ResourceTypes, generate_account_sas, generate_table_sas
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain import sas
from storage.domain.errors import AuthenticationFailed
from storage.domain.sas import AccountSas, TableSas
from tests.clients.python.legacy import SharedAccessSignature, TableSharedAccessSignature
from tests.examples import of_usual
from tests.strategies import keys

KEY, OTHER_KEY = b"1" * 64, b"2" * 64
TEXT_KEY = base64.b64encode(KEY).decode()


def table_sas(version, **fields):
    bounds = {"start_partition": "a", "start_row": "1", "end_partition": "b", "end_row": "2"}
    token = TableSas(version, "People", "raud", "2026-01-01", "2027-01-01T12:00Z", "readers", **bounds)
    return replace(token, **fields)


def account_sas(version, **fields):
    return AccountSas(version, "bt", "sco", "rwdlacu", "2026-01-01", "2027-01-01T12:00Z", **fields)


@pytest.mark.parametrize(
    ("version", "resource"), [("2012-02-12", "/acct/people"), ("2015-02-21", "/table/acct/people")]
)
def test_a_table_token_without_restrictions_signs_ten_fields(version, resource):
    text = f"raud\n2026-01-01\n2027-01-01T12:00Z\n{resource}\nreaders\n{version}\na\n1\nb\n2"
    assert sas.string_to_sign(table_sas(version), "acct") == text


@pytest.mark.parametrize("version", ["2015-04-05", "2019-02-02", "2020-12-06", "2026-11-01", "2099-12-31"])
def test_a_table_token_signs_address_and_protocol_from_2015_04_05(version):
    token = table_sas(version, address="10.0.0.1-10.0.0.9", protocol="https,http")
    assert sas.string_to_sign(token, "acct") == (
        "raud\n2026-01-01\n2027-01-01T12:00Z\n/table/acct/people\nreaders\n10.0.0.1-10.0.0.9\nhttps,http\n"
        f"{version}\na\n1\nb\n2"
    )


@pytest.mark.parametrize("version", ["2015-04-05", "2019-02-02", "2020-10-02"])
def test_an_account_token_signs_nine_lines(version):
    token = account_sas(version, address="10.0.0.1", protocol="https")
    assert sas.string_to_sign(token, "acct") == (
        f"acct\nrwdlacu\nbt\nsco\n2026-01-01\n2027-01-01T12:00Z\n10.0.0.1\nhttps\n{version}\n"
    )


@pytest.mark.parametrize(("scope", "line"), [("", ""), ("vault", "vault")])
@pytest.mark.parametrize("version", ["2020-12-06", "2024-11-04"])
def test_an_account_token_signs_its_encryption_scope_from_2020_12_06(version, scope, line):
    token = account_sas(version, encryption_scope=scope)
    assert sas.string_to_sign(token, "acct") == (
        f"acct\nrwdlacu\nbt\nsco\n2026-01-01\n2027-01-01T12:00Z\n\n\n{version}\n{line}\n"
    )


# the signing key


@pytest.mark.parametrize("token", [table_sas("2019-02-02"), account_sas("2019-02-02")])
def test_finds_the_key_that_signed(token):
    signed = sas.sign(token, "acct", KEY)
    assert sas.find_signing_key(signed, "acct", [KEY, OTHER_KEY]) == 0
    assert sas.find_signing_key(signed, "acct", [OTHER_KEY, KEY]) == 1
    assert sas.find_signing_key(signed, "acct", [OTHER_KEY]) is None
    assert sas.find_signing_key(signed, "acct", []) is None
    assert sas.find_signing_key(signed, "accu", [KEY]) is None


def test_the_table_may_be_in_another_letter_case():
    signed = sas.sign(table_sas("2019-02-02"), "acct", KEY)
    assert sas.find_signing_key(replace(signed, table="pEOPLE"), "acct", [KEY]) == 0


def test_a_signature_has_one_spelling():
    signed = sas.sign(table_sas("2019-02-02"), "acct", KEY)
    text = signed.signature
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".index(text[-2])
    twin = text[:-2] + "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[last ^ 1] + "="
    assert base64.b64decode(twin) == base64.b64decode(text)
    others = [twin, text[:-1], text + "=", text + "\n", " " + text, text.replace("/", "_"), text + "é"]
    for other in filter(text.__ne__, others):
        assert sas.find_signing_key(replace(signed, signature=other), "acct", [KEY]) is None


def test_the_signature_is_in_no_representation():
    signed = sas.sign(table_sas("2019-02-02"), "acct", KEY)
    assert signed.signature not in repr(signed)
    assert signed.signature not in str(sas.to_parameters(signed))


def test_builds_only_acceptable_tokens():
    with pytest.raises(AuthenticationFailed):
        sas.sign(table_sas("2012-02-12", address="10.0.0.1"), "acct", KEY)


# the SDKs

dates = st.dates().map(lambda day: f"{max(day.year, 1700)}-{day:%m-%d}")
optional_keys = st.none() | keys.filter(str.isprintable).filter(bool)
permissions = st.sets(st.sampled_from("raud"), min_size=1).map(
    lambda letters: "".join(sorted(letters, key="raud".index))
)
tables = st.from_regex(r"[A-Za-z][A-Za-z0-9]{2,20}", fullmatch=True).filter(
    lambda name: name.lower() != "tables"
)
addresses = st.none() | st.sampled_from(["168.1.5.65", "168.1.5.60-168.1.5.70"])
protocols = st.none() | st.sampled_from(["https", "https,http"])


@settings(max_examples=of_usual(40))
@given(
    table=tables,
    permission=permissions,
    expiry=dates,
    start=st.none() | dates,
    ip=addresses,
    protocol=protocols,
    policy=st.none() | st.text("abc -_=é", min_size=1, max_size=64),
    bounds=st.tuples(optional_keys, optional_keys, optional_keys, optional_keys),
)
def test_signs_a_table_token_as_the_python_sdks_do(
    table, permission, expiry, start, ip, protocol, policy, bounds
):
    start_pk, start_rk, end_pk, end_rk = bounds
    ranges = {
        "start_pk": start_pk,
        "start_rk": start_rk if start_pk else None,
        "end_pk": end_pk,
        "end_rk": end_rk if end_pk else None,
    }
    modern = generate_table_sas(
        AzureNamedKeyCredential("acct", TEXT_KEY),
        table,
        permission=permission,
        expiry=expiry,
        start=start,
        ip_address_or_range=ip,
        policy_id=policy,
        protocol=protocol,
        **ranges,
    )
    legacy = TableSharedAccessSignature("acct", TEXT_KEY).generate_table(
        table, permission, expiry, start, policy, ip, protocol, **ranges
    )
    for query, version in ((modern, "2019-02-02"), (legacy, "2017-04-17")):
        token = read(query)
        assert token.version == version
        assert sas.find_signing_key(token, "acct", [OTHER_KEY, KEY]) == 1
        ours = TableSas(
            version, table, permission, start or "", expiry, policy or "", ip or "", protocol or "",
            *(value or "" for value in ranges.values()),
        )  # fmt: skip
        assert sas.sign(ours, "acct", KEY) == token


@given(
    types=st.sampled_from(["s", "sco", "o", "co"]),
    permission=st.sampled_from(["r", "rwdlacu", "rl", "a"]),
    expiry=dates,
    start=st.none() | dates,
    ip=addresses,
    protocol=protocols,
)
def test_signs_an_account_token_as_the_python_sdks_do(types, permission, expiry, start, ip, protocol):
    modern = generate_account_sas(
        AzureNamedKeyCredential("acct", TEXT_KEY),
        ResourceTypes.from_string(types),
        permission,
        expiry,
        start=start,
        ip_address_or_range=ip,
        protocol=protocol,
    )
    legacy = SharedAccessSignature("acct", TEXT_KEY, x_ms_version="2018-03-28").generate_account(
        "bqtf", types, permission, expiry, start, ip, protocol
    )
    for query in (modern, legacy):
        token = read(query)
        assert sas.find_signing_key(token, "acct", [OTHER_KEY, KEY]) == 1
        assert sas.read(dict(parse_qsl(sas.write(token), strict_parsing=True))) == token


def read(query):
    token = sas.read(dict(parse_qsl(query, strict_parsing=True)))
    assert token is not None
    return token
