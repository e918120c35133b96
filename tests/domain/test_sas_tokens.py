"""Fields of a token in a URL: accepted ones, and malformed ones that no client of the service sends."""

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


def test_a_token_needs_a_signature():
    assert sas.read({name: value for name, value in TABLE.items() if name != "sig"}) is None
    assert sas.read({}) is None


def test_other_parameters_are_ignored():
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


def test_parameters_omit_signature_and_absent_fields():
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


# refused fields


def refusal(options):
    with pytest.raises(AuthenticationFailed) as refused:
        sas.read(options)
    detail = refused.value.details["AuthenticationErrorDetail"]
    assert SIG not in detail
    return detail


# accepted fields


# texts that some reader of dates, addresses or names would take; the wire cases have more
MALFORMED = {
    "sv": ["2012-02-11", "2019-02-30", "20190202", "2019-02-02 ", "2019-02-02\n", "2019-W05-6", "latest"],
    "st": ["2030", "2030-1-1", "2030-02-30", "0000-01-01", "1500-02-30", "2030-01-01T00:00:00", "2030-01-01T24:00Z",
        "2030-01-01T00Z", "2030-01-01T00:00:00.Z", "2030-01-01 00:00Z", "2030-01-01t00:00z", "20300101", "2030-W01-1",
        "２０３０-01-01", " 2030-01-01", "2030-01-01\n"],
    "se": ["2030-01-01T00:00:00.12345678Z", "never"],
    "sip": ["10.0.0.1-", "10.0.0", "10.0.0.256", "10.0.0.1/8", "10.0.0.1-10.0.0.2-10.0.0.3", "010.0.0.1",
        "10.0.0.1-::1", "10.0.0.1 - 10.0.0.2", "١0.0.0.1", "fe80::1%eth0", "10.0.0.1:80", "0x7f000001"],
    "spr": ["http", "HTTPS", "https,", "https,https", "https, http"],
    "skoid": ["2030-01-01"],
}  # fmt: skip
MALFORMED_IN_TABLE = {
    "tn": ["pe", "p" * 64, "1people", "peo-ple", "people\n", "Tables", "\u212aeople", "ſtaff", "pİe", "people/x",
        "$Metrics\u212a", "../people", "$logs", "$MetricsHour/..", "people\x00"],
    "sp": ["rx", "R", "w", "l", "r ", "r,a", "ｒ"],
    "si": ["i" * 65, "readers\n"],
    "spk": ["a\nb", "a" * 1025],
    "epk": ["\x7f", "\ud800"],
    **{name: ["1"] for name in ("srk", "erk", "ss", "srt", "ses")},
}  # fmt: skip
MALFORMED_IN_ACCOUNT = {
    "ss": ["x", "T", "t ", "tt\n"],
    "srt": ["x", "S", "so "],
    "sp": ["R", "r ", "r1", "é"],
    "sv": [*MALFORMED["sv"], "2015-02-21"],
    **{name: ["x"] for name in ("ses", "tn", "si", "spk", "srk", "epk", "erk")},
}


@pytest.mark.parametrize(
    ("options", "malformed"),
    [(TABLE, MALFORMED | MALFORMED_IN_TABLE), (ACCOUNT, MALFORMED | MALFORMED_IN_ACCOUNT)],
)
def test_refuses_a_malformed_field(options, malformed):
    for name, values in malformed.items():
        for value in values:
            assert refusal(options | {name: value}) == f"Signature fields not well formed: {name}.", value


@pytest.mark.parametrize(
    ("options", "names"),
    [(TABLE, ["sv", "tn"]), (ACCOUNT, ["sv", "sp", "se"]), (ACCOUNT | {"tn": "People"}, ["ss", "srt"])],
)
def test_refuses_a_token_without(options, names):
    for name in names:
        refusal(options | {name: ""})


@pytest.mark.parametrize(("name", "value"), [("sip", "10.0.0.1"), ("spr", "https")])
def test_refuses_a_restriction_unsigned_in_the_version(name, value):
    assert sas.read(TABLE | {"sv": "2015-04-05", name: value})
    assert refusal(TABLE | {"sv": "2015-02-21", name: value}) == f"Signature fields not well formed: {name}."


def test_refuses_a_row_without_its_partition():
    bounds = {"spk": "a", "srk": "1", "epk": "b", "erk": "2"}
    assert sas.read(TABLE | bounds)
    refusal(TABLE | bounds | {"spk": ""})
    refusal(TABLE | bounds | {"epk": ""})


WELL_FORMED = {
    "sv": ["2012-02-12", "2013-08-15", "2019-02-02", "2026-04-06", "2099-01-01"],
    "st": ["2026-01-01", "2026-01-01T00:00Z", "2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.1234567Z",
        "2026-01-01T00:00+01:00", "2024-02-29"],
    "tn": ["abc", "p" * 63, "PEOPLE", "$MetricsHourPrimaryTransactionsTable"],
    "sp": ["r", "dura", "raud"],
    "si": ["é" * 64],
    "spk": ["a" * 1024, " ", "a&b=c+%41 é😀"],
}  # fmt: skip


@pytest.mark.parametrize("name", WELL_FORMED)
def test_accepts_and_writes(name):
    for value in WELL_FORMED[name]:
        token = sas.read(TABLE | {name: value})
        assert dict(sas.to_parameters(token))[name] == value
        assert sas.read(dict(parse_qsl(sas.write(token), strict_parsing=True))) == token
