"""What a token may say in a URL, and what no client of the service would."""

from dataclasses import replace
from hashlib import sha256
from urllib.parse import parse_qsl

import pytest

from storage.domain import sas
from storage.domain.errors import AuthenticationFailed
from storage.domain.sas import AccountSas, TableSas

SIG = "c2lnbmF0dXJlIG9mIGEgdG9rZW4gdGhhdCBpcyBub25lIQ=="
TABLE = {"sv": "2019-02-02", "tn": "People", "sp": "raud", "se": "2030-01-01T00:00:00Z", "sig": SIG}
ACCOUNT = {"sv": "2019-02-02", "ss": "t", "srt": "sco", "sp": "rwdlacu", "se": "2030-01-01", "sig": SIG}


def test_reads_a_table_token():
    options = {
        **TABLE, "st": "2026-01-01", "si": "readers", "sip": "10.0.0.1", "spr": "https",
        "spk": "a", "srk": "1", "epk": "b", "erk": "2",
    }  # fmt: skip
    assert sas.read(options) == TableSas(
        "2019-02-02", "People", "raud", "2026-01-01", "2030-01-01T00:00:00Z", "readers", "10.0.0.1", "https",
        "a", "1", "b", "2", SIG,
    )  # fmt: skip


def test_reads_an_account_token():
    assert sas.read(ACCOUNT | {"ss": "bqtf", "sp": "rwdlacupxyitf"}) == AccountSas(
        "2019-02-02", "bqtf", "sco", "rwdlacupxyitf", "", "2030-01-01", signature=SIG
    )


def test_without_a_signature_there_is_no_token():
    assert sas.read({name: value for name, value in TABLE.items() if name != "sig"}) is None
    assert sas.read({}) is None


def test_an_empty_signature_is_one():
    token = sas.read(TABLE | {"sig": ""})
    assert token is not None
    assert sas.find_signing_key(token, "acct", [b"1" * 64]) is None


def test_other_parameters_are_none_of_the_tokens():
    assert sas.read(
        TABLE | {"$filter": "a eq 1", "api-version": "2014-02-14", "sr": "b", "x": "\n"}
    ) == sas.read(TABLE)


@pytest.mark.parametrize("options", [TABLE, ACCOUNT])
def test_an_empty_parameter_is_an_absent_one(options):
    """The signed text is the same, so the meaning must be."""
    empty = dict.fromkeys(
        ("st", "si", "sip", "spr", "spk", "srk", "epk", "erk", "ses", "skoid", "ss" * ("tn" in options)), ""
    )
    assert sas.read(options | empty) == sas.read(options)


@pytest.mark.parametrize("options", [TABLE, ACCOUNT])
def test_what_is_written_is_read(options):
    token = sas.read(options | {"st": "2020-01-01", "sip": "::1-::9", "spr": "https,http"})
    assert sas.read(dict(parse_qsl(sas.write(token), strict_parsing=True))) == token


def test_keys_with_any_character_are_written_and_read():
    token = TableSas(
        "2019-02-02", "People", "r", "", "2030-01-01", start_partition="a&b=c+%41 é😀", signature=SIG
    )
    assert sas.read(dict(parse_qsl(sas.write(token), strict_parsing=True))) == token


def test_parameters_leave_the_signature_and_what_is_absent_out():
    token = sas.read(TABLE)
    assert sas.to_parameters(token) == (
        ("sv", "2019-02-02"),
        ("tn", "People"),
        ("sp", "raud"),
        ("se", "2030-01-01T00:00:00Z"),
    )


def test_a_fingerprint_is_the_hash_of_the_signature():
    token = sas.read(TABLE)
    assert sas.fingerprint(token) == sha256(SIG.encode()).hexdigest()
    assert sas.fingerprint(token) == sas.fingerprint(replace(token, permissions="r"))
    assert sas.fingerprint(token) != sas.fingerprint(replace(token, signature="other"))


# what is refused


def refusal(options):
    with pytest.raises(AuthenticationFailed) as refused:
        sas.read(options)
    detail = refused.value.details["AuthenticationErrorDetail"]
    assert SIG not in detail
    return detail


@pytest.mark.parametrize("name", ["sv", "tn"])
def test_refuses_a_table_token_without(name):
    assert refusal(TABLE | {name: ""}) == "Missing mandatory parameters for valid Shared Access Signature."


@pytest.mark.parametrize("name", ["sv", "sp", "se"])
def test_refuses_an_account_token_without(name):
    assert refusal(ACCOUNT | {name: ""}) == "Missing mandatory parameters for valid Shared Access Signature."


@pytest.mark.parametrize("name", ["ss", "srt"])
def test_half_an_account_token_is_no_table_token(name):
    refusal(ACCOUNT | {name: ""})
    refusal(ACCOUNT | {name: "", "tn": "People"})


INSTANTS = [
    "2030", "2030-01", "2030-1-1", "2030-02-30", "2030-13-01", "0000-01-01", "1500-02-30", "2030-01-01T00:00:00",
    "2030-01-01T24:00Z", "2030-01-01T00:60Z", "2030-01-01T00:00:60Z", "2030-01-01T00Z",
    "2030-01-01T00:00:00.Z", "2030-01-01T00:00:00.12345678Z", "2030-01-01 00:00Z", "2030-01-01t00:00z",
    "20300101", "2030-W01-1", "２０３０-01-01", " 2030-01-01", "2030-01-01\n", "never", "99999-01-01",
]  # fmt: skip
RANGES = [
    "10.0.0.1-", "-10.0.0.1", "10.0.0", "10.0.0.256", "10.0.0.1/8", "10.0.0.1-10.0.0.2-10.0.0.3", "010.0.0.1",
    "10.0.0.1 - 10.0.0.2", "10.0.0.1-::1", "localhost", "١0.0.0.1", "fe80::1%eth0", "10.0.0.1:80", "*", "0x7f000001",
]  # fmt: skip
VERSIONS = [
    "2012-02-11", "2009-04-14", "0001-01-01", "2019-02-30", "2019-2-2", "20190202", "2019-02-02 ", "2019-02",
    "latest", "２０１９-02-02", "2019-02-02\n", "99999-01-01", "2019-W05-6",
]  # fmt: skip
TABLES = [
    "pe", "p" * 64, "1people", "peo-ple", "people ", "people\n", "tables", "Tables", "\u212aeople", "ſtaff", "pİe",
    "people/x", "$Metrics\u212a", "../people", "people()", "$logs", "$Metrics", "$MetricsHour/..", "péople",
    "people\x00",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("sv", value) for value in VERSIONS),
        *(("st", value) for value in INSTANTS),
        *(("se", value) for value in INSTANTS),
        *(("sip", value) for value in RANGES),
        *(
            ("spr", value)
            for value in ("http", "HTTPS", "https,", "https,https", "https http", "ftp", "https, http")
        ),
    ],
)
@pytest.mark.parametrize("options", [TABLE, ACCOUNT])
def test_refuses_a_malformed_field(options, name, value):
    assert refusal(options | {name: value}) == f"Signature fields not well formed: {name}."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("tn", value) for value in TABLES),
        *(("sp", value) for value in ("rx", "R", "w", "l", "r ", "c", "r,a", "ｒ")),
        ("si", "i" * 65),
        ("si", "readers\n"),
        ("spk", "a\nb"),
        ("spk", "a" * 1025),
        ("epk", "\x7f"),
        ("epk", "\ud800"),
        ("srk", "1"),
        ("erk", "1"),
        ("ss", "t"),
        ("srt", "o"),
        ("ses", "scope"),
    ],
)
def test_refuses_a_malformed_field_of_a_table_token(name, value):
    assert refusal(TABLE | {name: value}) == f"Signature fields not well formed: {name}."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ss", value) for value in ("x", "T", "t ", "tt\n")),
        *(("srt", value) for value in ("x", "S", "so ")),
        *(("sp", value) for value in ("R", "r ", "r1", "é")),
        ("sv", "2015-02-21"),
        ("ses", "scope"),
        *((name, "x") for name in ("tn", "si", "spk", "srk", "epk", "erk")),
    ],
)
def test_refuses_a_malformed_field_of_an_account_token(name, value):
    assert refusal(ACCOUNT | {name: value}) == f"Signature fields not well formed: {name}."


@pytest.mark.parametrize("name", ["sip", "spr"])
@pytest.mark.parametrize("version", ["2012-02-12", "2014-02-14", "2015-02-21"])
def test_refuses_a_restriction_that_the_version_does_not_sign(name, version):
    value = {"sip": "10.0.0.1", "spr": "https"}[name]
    assert refusal(TABLE | {"sv": version, name: value}) == f"Signature fields not well formed: {name}."


@pytest.mark.parametrize("name", ["skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid"])
@pytest.mark.parametrize("options", [TABLE, ACCOUNT])
def test_refuses_a_user_delegation(options, name):
    assert refusal(options | {name: "2030-01-01"}) == f"Signature fields not well formed: {name}."


def test_refuses_a_field_without_the_one_it_accompanies():
    assert sas.read(TABLE | {"spk": "a", "srk": "1", "epk": "b", "erk": "2"})
    refusal(TABLE | {"spk": "", "srk": "1", "epk": "b", "erk": "2"})
    refusal(TABLE | {"spk": "a", "srk": "1", "epk": "", "erk": "2"})


# what is taken


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("sv", value) for value in ("2012-02-12", "2013-08-15", "2019-02-02", "2026-04-06", "2099-01-01")),
        *(
            ("st", value)
            for value in (
                "2026-01-01", "2026-01-01T00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.1Z",
                "2026-01-01T00:00:00.1234567Z", "2026-01-01T00:00+01:00", "2024-02-29",
            )
        ),
        *(("tn", value) for value in ("abc", "p" * 63, "PEOPLE", "$MetricsHourPrimaryTransactionsTable")),
        *(("sp", value) for value in ("r", "a", "dura", "raud")),
        ("si", "é" * 64),
        ("spk", "a" * 1024),
        ("spk", " "),
    ],
)  # fmt: skip
def test_accepts(name, value):
    assert dict(sas.to_parameters(sas.read(TABLE | {name: value})))[name] == value


@pytest.mark.parametrize("table", ["people", "$metricshourprimarytransactionstable"])
def test_a_table_is_known_by_its_lower_case(table):
    assert sas.read(TABLE | {"tn": table.upper()}).folded == table
