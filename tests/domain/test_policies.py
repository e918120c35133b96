"""Stored access policies: their number, identifiers and contents."""

import pytest

from storage.domain.access.policies import (
    AccessPolicy,
    PolicyRule,
    SignedIdentifier,
    check_policies,
    find_faults,
    read_instant,
    read_policy,
)
from storage.domain.errors import InvalidXmlDocument, InvalidXmlNodeValue

START = "2013-11-26T08:49:37.0000000Z"


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2013-11-26", "2013-11-26T00:00:00.0000000Z"),
        ("2013-11-26T08:49:37.1Z", "2013-11-26T08:49:37.1000000Z"),
        ("2013-11-26T08:49:37-00:00", START),
        ("2013-11-26T14:19:37+05:30", START),
        ("2013-12-31T23:30-01:00", "2014-01-01T00:30:00.0000000Z"),
        ("2020-02-29", "2020-02-29T00:00:00.0000000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.0000000Z"),
        ("9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.9999999Z"),
    ],
)
def test_reads_an_instant(text, instant):
    assert read_instant(text) == instant
    assert read_instant(instant) == instant


@pytest.mark.parametrize(
    "text",
    [
        "", "tomorrow", "2013-11", "2013-11-26T08:49", "2013-11-26T08:49:37", "2013-11-26T08Z", "2013-11-26Z",
        "2013-11-26 08:49:37Z", "2013-11-26t08:49:37z", "2013-11-26T08:49:37.Z",
        "2013-11-26T08:49:37.12345678Z", "2013-11-26T08:49:37+0200", "2013-11-26T08:49:37+02",
        "2013-11-26T08:49:37+15:00", "2013-11-26T08:49:37+02:60", "2013-11-26T24:00:00Z",
        "2013-11-26T08:60:00Z", "2013-11-26T08:49:60Z", "2013-02-29", "2013-13-01", "0000-01-01",
        "0001-01-01T00:00:00+01:00", "9999-12-31T23:30:00-01:00", " 2013-11-26", "2013-11-26\n",
        "+2013-11-26", "２０１３-11-26", "20131126", "2013-W48-2",
    ],
)  # fmt: skip
def test_refuses_other_instants(text):
    with pytest.raises(InvalidXmlNodeValue):
        read_instant(text)


@pytest.mark.parametrize("permission", ["x", "R", "rr", "raudr", "r a", "rl", " "])
def test_refuses_other_permissions(permission):
    with pytest.raises(InvalidXmlNodeValue):
        read_policy(None, None, permission)


def test_an_empty_field_counts_as_absent():
    assert read_policy(None, None, None) == read_policy("", "", "") == AccessPolicy()
    assert read_policy("2013-11-26T08:49:37Z", "", "duar") == AccessPolicy(START, None, "duar")


@pytest.mark.parametrize(
    "names", [[], "12345", ["a", "A"], ["é", "e\u0301"], [" ", "  "], ["😀" * 32], ["<&>\"'\r\n\t"]]
)
def test_accepts_up_to_five_identifiers(names):
    check_policies([SignedIdentifier(name) for name in names])


@pytest.mark.parametrize(
    "names", ["123456", "aba", [""], ["x" * 65], ["😀" * 32 + "x"], ["a\x01"], ["\ud800"], ["\uffff"]]
)
def test_refuses_a_sixth_a_duplicate_and_an_invalid_policy(names):
    with pytest.raises(InvalidXmlDocument):
        check_policies([SignedIdentifier(name) for name in names])


def test_names_every_fault_with_its_place():
    wrong = AccessPolicy("soon", "2026-11-21", "rr")
    faults = find_faults(
        [SignedIdentifier(name, wrong if name == "a" else None) for name in ("a", "b", "b", "", "c", "d")]
    )
    assert list(faults) == [
        (PolicyRule.NUMBER, None),
        (PolicyRule.UNIQUE, 2),
        (PolicyRule.IDENTIFIER, 3),
        (PolicyRule.START, 0),
        (PolicyRule.EXPIRY, 0),
        (PolicyRule.PERMISSION, 0),
    ]
