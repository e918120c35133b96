"""Reports in the request log: the form of a request, and no data of the client."""

import pytest

from storage.domain.requests.routes import Address
from storage.inspector.facts import Facts, IncomingRequest, Key, ManagedAccount
from storage.inspector.records import dump_report, load_report
from storage.inspector.requests import inspect_request
from tests import mistakes
from tests.mistakes import ACCOUNT, ACCOUNT_TOKEN, FIRST, TABLE_TOKEN

ACME = ManagedAccount(ACCOUNT, (Key("key1", FIRST),), {"people": {"readers": None}})
FACTS = Facts({ACCOUNT: ACME}, 1_795_000_000.0, "http", "192.0.2.1")
KEPT_PATH = f"/{ACCOUNT}/people(PartitionKey='…',RowKey='…')"
SECRET = "Ada-secret"
LATE = "Sat, 21 Nov 2026 20:00:00 GMT"


def kept(method="GET", query="", **headers):
    path = f"/{ACCOUNT}/people(PartitionKey='{SECRET}',RowKey='{SECRET}')".encode()
    sent = IncomingRequest(
        Address(ACCOUNT, False, False, f"http://{SECRET}/{ACCOUNT}", path[len(ACCOUNT) + 1 :]),
        method,
        path,
        query.encode(),
        {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()},
        "http",
        "192.0.2.1",
    )
    record = dump_report(inspect_request(sent, FACTS), sent, KEPT_PATH, ACME)
    assert SECRET not in str(record)
    return load_report(record)


def signed(scheme="SharedKey"):
    return f"{scheme} {ACCOUNT}:{mistakes.signature('nothing')}"


def test_keeps_the_form_of_a_request():
    report = kept(
        query=f"comp=acl&$filter=Name%20eq%20%27{SECRET}%27&{SECRET}={SECRET}",
        authorization=signed(),
        x_ms_date=LATE,
        content_type=f"application/json; charset=utf-8; boundary={SECRET}",
        content_md5=SECRET,
        x_ms_version="2019-02-02",
        x_secret=SECRET,
    )
    assert [(it.name, it.text) for it in report.lines] == [
        ("Method", "GET"),
        ("Content-MD5", "…"),
        ("Content-Type", "application/json;charset=utf-8;…"),
        ("Date", LATE),
        ("/…", f"/{ACCOUNT}{KEPT_PATH}?comp=acl"),
    ]
    assert [(it.name, it.value, it.is_signed) for it in report.fields] == [
        ("method", "GET", True),
        ("account", ACCOUNT, True),
        ("path", KEPT_PATH, True),
        ("comp", "acl", True),
        ("$filter", "Name eq …", False),
        ("…", "…", False),
        ("x-ms-date", LATE, True),
        ("Content-Type", "application/json;charset=utf-8;…", True),
        ("Content-MD5", "…", True),
        ("x-ms-version", "2019-02-02", False),
        ("Authorization", "SharedKey", False),
        ("Authorization", ACCOUNT, False),
        ("Authorization", "…", False),
    ]


def test_keeps_the_two_lines_of_the_other_scheme():
    report = kept(query=f"comp={SECRET}", authorization=signed("SharedKeyLite"), x_ms_date=SECRET)
    assert [it.text for it in report.lines] == ["…", f"/{ACCOUNT}{KEPT_PATH}?comp=…"]


@pytest.mark.parametrize("fields", [TABLE_TOKEN, ACCOUNT_TOKEN])
def test_keeps_the_terms_of_a_token(fields):
    secret = {name: SECRET for name in ("spk", "srk", "epk", "erk") if name in fields}
    text = mistakes.having(**secret)(fields)
    report = kept(query=f"{text}&$top=5&{SECRET}={SECRET}")
    terms = {**fields, **dict.fromkeys(secret, "…")}
    assert {it.name: it.value for it in report.parameters} == {**terms, "sig": "…"}
    assert report.text == mistakes.text_of(terms)
    assert [(it.name, it.value) for it in report.fields if it.name.startswith(("$", "…"))] == [
        ("$top", "5"),
        ("…", "…"),
    ]


def test_keeps_names_of_existing_policies():
    for name, shown in (("readers", "readers"), ("a/b?c", "…")):
        report = kept(query=mistakes.good({"sv": "2019-02-02", "tn": "people", "si": name}))
        assert {it.name: it.value for it in report.parameters}["si"] == shown
