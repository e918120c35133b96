"""Findings in tokens, requests and connection strings: none in valid ones, the mistakes in others."""

import base64
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.pipeline.transport import HttpTransport
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableSasPermissions,
    TableServiceClient,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.domain import sas
from storage.domain.access.addresses import read_network
from storage.domain.access.policies import AccessPolicy
from storage.domain.sas import TableSas
from storage.domain.values.kinds import AccountKind
from storage.inspector import Facts, Key, ManagedAccount, Mistake, Report, ReportKind, UnreadableText, inspect
from storage.inspector.sentences import describe
from tests import mistakes
from tests.cost import costs_less_than
from tests.examples import of_usual
from tests.mistakes import (
    ACCOUNT,
    ACCOUNT_TOKEN,
    DEVELOPMENT,
    FIRST,
    OLD,
    OTHER,
    SECOND,
    TABLE_TOKEN,
    Request,
)
from tests.strategies import keys

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC).timestamp()
HOST = "tables.example.org:10002"
ACME = ManagedAccount(
    ACCOUNT,
    (Key("key1", FIRST), Key("key2", SECOND), Key("key1 (old)", OLD, is_accepted=False)),
    {
        "people": {
            "readers": AccessPolicy(None, "2099-01-01", "r"),
            "past": AccessPolicy(None, "2020-01-01", "r"),
            "partial": AccessPolicy(None, "2099-01-01", None),
        },
        "orders": {},
    },
)
FACTS = Facts(
    {ACCOUNT: ACME, "other": ManagedAccount("other", (Key("key1", b"o" * 64), Key("key2", OTHER)))},
    NOW,
    "http",
    "192.0.2.1",
    HOST,
    ("table.localhost",),
    Key("", DEVELOPMENT),
)


def found(text, facts=FACTS, account=""):
    report = inspect(text, facts, account)
    assert isinstance(report, Report), report
    return [it.mistake for it in report.findings]


def details(text, mistake, facts=FACTS):
    (it,) = [it for it in inspect(text, facts).findings if it.mistake is mistake]
    return dict(it.details)


def of_account(**fields):
    return replace(FACTS, accounts={**FACTS.accounts, ACCOUNT: replace(ACME, **fields)})


# tokens

instants = st.integers(2027, 2090).map(lambda year: f"{year}-02-03T04:05:06Z")
table_tokens = st.fixed_dictionaries(
    {
        "sv": st.sampled_from(
            ["2012-02-12", "2015-02-21", "2015-04-05", "2019-02-02", "2020-12-06", "2026-11-01"]
        ),
        "tn": st.sampled_from(["People", "people", "Orders"]),
        "sp": st.sampled_from(["r", "ra", "raud", "du"]),
        "se": instants,
    },
    optional={"st": st.just("2026-01-01"), "spk": keys.filter(bool), "epk": keys.filter(bool)},
)
account_tokens = st.fixed_dictionaries(
    {
        "sv": st.sampled_from(["2015-04-05", "2019-02-02", "2020-12-06"]),
        "ss": st.sampled_from(["t", "bqtf"]),
        "srt": st.sampled_from(["o", "sco", "co"]),
        "sp": st.sampled_from(["r", "rwdlacu", "rau"]),
        "se": instants,
    },
    optional={"st": st.just("2026-01-01"), "spr": st.just("https,http")},
)


@given(table_tokens | account_tokens, st.sampled_from([FIRST, SECOND]))
def test_finds_nothing_in_a_good_token(fields, key):
    report = inspect(mistakes.good(fields, key), FACTS)
    assert (report.account, report.key, report.findings) == (ACCOUNT, "key1" if key == FIRST else "key2", [])
    assert report.verdict.error is None
    assert report.text == mistakes.text_of(fields)


OF_KEYS_AND_LINES = {
    Mistake.ENCODED_TWICE, Mistake.PADDING, Mistake.HEXADECIMAL, Mistake.RETIRED_KEY,
    Mistake.OTHER_ACCOUNT_KEY, Mistake.KEY_NOT_DECODED, Mistake.OTHER_ACCOUNT, Mistake.NEWLINE,
}  # fmt: skip


@given(table_tokens, st.sampled_from([case for case in mistakes.OF_TOKENS if case[0] in OF_KEYS_AND_LINES]))
@settings(max_examples=of_usual(40))
def test_names_the_mistake_whatever_the_token_says(fields, case):
    mistake, make = case
    assert mistake in found(make(fields), account=ACCOUNT)


@pytest.mark.parametrize(
    ("fields", "mistake", "make"),
    [
        *((TABLE_TOKEN, *case) for case in mistakes.OF_TABLE_TOKENS),
        *((ACCOUNT_TOKEN, *case) for case in mistakes.OF_ACCOUNT_TOKENS),
    ],
)
def test_names_the_mistake_in_a_token(fields, mistake, make):
    text = make(fields)
    report = inspect(text, FACTS, ACCOUNT)
    assert [it.mistake for it in report.findings if it.mistake not in OF_THE_CHANGE] == [mistake]
    assert report.verdict.error.code == "AuthenticationFailed"
    # in an address it is the same
    assert mistake in found(f"http://{HOST}/{ACCOUNT}/{fields.get('tn', 'people')}?{text}")


# a changed field may be a mistake by itself
OF_THE_CHANGE = {Mistake.POLICY_MISSING, Mistake.POLICY_RENAMED, Mistake.POLICY_CONFLICT, Mistake.HTTPS_ONLY}


def test_a_known_token_reveals_the_exact_changes():
    token = sas.sign(TableSas("2019-02-02", "people", "r", "", "2050-06-01"), ACCOUNT, FIRST)
    known = {sas.fingerprint(token): sas.to_parameters(token)}
    facts = of_account(known=known.get)
    text = sas.write(token).replace("se=2050-06-01", "se=2077-12-24&spk=a").replace("sp=r", "sp=rau")
    assert [(it.mistake, dict(it.details)) for it in inspect(text, facts).findings] == [
        (Mistake.PARAMETER_CHANGED, {"name": "sp", "signed": "r"}),
        (Mistake.PARAMETER_CHANGED, {"name": "se", "signed": "2050-06-01"}),
        (Mistake.PARAMETER_ADDED, {"name": "spk"}),
    ]
    # for an unknown token, only that the signature does not match this text
    assert found(text, account=ACCOUNT) == [Mistake.UNKNOWN_KEY]


def test_a_mistake_in_the_signature_is_named_beside_one_in_the_key():
    assert found(mistakes.keyed(OLD)(TABLE_TOKEN).replace("%3D", "%253D"), account=ACCOUNT) == [
        Mistake.ENCODED_TWICE,
        Mistake.RETIRED_KEY,
    ]


def test_a_token_of_the_sdk():
    credential = AzureNamedKeyCredential(ACCOUNT, base64.b64encode(FIRST).decode())
    until = {"expiry": datetime(2090, 1, 1, tzinfo=UTC)}
    of_table = generate_table_sas(credential, "People", permission=TableSasPermissions(read=True), **until)
    types, reading = ResourceTypes(object=True), AccountSasPermissions(read=True)
    of_all = generate_account_sas(credential, types, reading, **until)
    assert found(of_table) == found(of_all) == []


@pytest.mark.parametrize(
    ("change", "mistake", "code"),
    [
        ({"se": "2026-11-21T19:59:59Z"}, Mistake.EXPIRED, "AuthenticationFailed"),
        ({"st": "2026-11-21T20:00:01Z"}, Mistake.NOT_YET_VALID, "AuthenticationFailed"),
        ({"sip": "198.51.100.0-198.51.100.9"}, Mistake.ADDRESS_OUTSIDE, "AuthorizationSourceIPMismatch"),
        ({"spr": "https"}, Mistake.HTTPS_ONLY, "AuthorizationProtocolMismatch"),
        ({"si": "readers"}, Mistake.POLICY_CONFLICT, "AuthenticationFailed"),
        ({"si": "readers", "se": "", "sp": "", "st": ""}, None, None),
        ({"si": "past", "se": "", "sp": "", "st": ""}, Mistake.EXPIRED, "AuthenticationFailed"),
        ({"si": "partial", "se": "", "sp": "", "st": ""}, Mistake.POLICY_INCOMPLETE, "AuthenticationFailed"),
        ({"si": "reader", "se": "", "sp": "", "st": ""}, Mistake.POLICY_RENAMED, "AuthenticationFailed"),
        ({"si": "zzz", "se": "", "sp": "", "st": ""}, Mistake.POLICY_MISSING, "AuthenticationFailed"),
        ({"si": "zzz", "tn": "gone"}, Mistake.TABLE_MISSING, "AuthenticationFailed"),
    ],
)
def test_s5_names_what_invalidates_a_correctly_signed_token(change, mistake, code):
    fields = {name: value for name, value in {**TABLE_TOKEN, **change}.items() if value}
    report = inspect(mistakes.good(fields), FACTS)
    assert [it.mistake for it in report.findings] == ([mistake] if mistake else [])
    assert (report.verdict.error.code if report.verdict.error else None) == code
    assert report.key == "key1"


@pytest.mark.parametrize(
    ("query", "mistake"),
    [
        ("tn=people&sp=r&se=2099-13-01&sig=x", Mistake.MALFORMED_PARAMETER),
        ("tn=people&sp=xyz&se=2099-12-01&sig=x", Mistake.MALFORMED_PARAMETER),
        ("tn=people&sp=r&se=2099-12-01T10:00:00+02:00&sig=x", Mistake.MALFORMED_PARAMETER),
        ("ss=t&srt=xyz&sp=r&se=2099-12-01&sig=x", Mistake.MALFORMED_PARAMETER),
        ("tn=people&se=2099-12-01&sp=r&sp=raud&sig=x", Mistake.PARAMETER_TWICE),
        ("sp=r&se=2099-12-01&sig=x", Mistake.PARAMETER_MISSING),
        ("tn=people&sp=r&se=2099-12-01", Mistake.PARAMETER_MISSING),
        ("tn=people&sp=r&se=2099-12-01&skoid=1&sig=x", Mistake.USER_DELEGATION),
    ],
)
def test_names_what_is_no_token(query, mistake):
    assert mistake in found(f"sv=2019-02-02&{query}", account=ACCOUNT)


PLAIN = {"sv": "2019-02-02", "tn": "people", "sp": "a", "se": "2099-01-01"}


@pytest.mark.parametrize(
    ("fields", "mistake"),
    [
        ({"is_enabled": False}, Mistake.ACCOUNT_DISABLED),
        ({"accepts_keys": False}, Mistake.KEYS_NOT_ACCEPTED),
        ({"networks": (read_network("10.0.0.0/8"),)}, Mistake.NETWORK),
        ({"blocked": {mistakes.fingerprint_of(PLAIN)}}, Mistake.BLOCKED),
        ({"is_read_only": True}, Mistake.READ_ONLY),
    ],
)
def test_names_what_the_account_refuses(fields, mistake):
    text = f"POST /acme/people?{mistakes.good(PLAIN)} HTTP/1.1\nHost: {HOST}"
    report = inspect(text, of_account(**fields))
    assert [it.mistake for it in report.findings] == [mistake]
    assert report.verdict.status == 403


def test_without_keys_all_but_the_signature_is_explained():
    facts = replace(FACTS, accounts={})
    report = inspect(
        f"http://{HOST}/{ACCOUNT}/people?{mistakes.good({**TABLE_TOKEN, 'se': '2026-01-02'})}", facts
    )
    assert (report.account, report.is_managed, report.verdict) == (ACCOUNT, False, None)
    assert [it.mistake for it in report.findings] == [Mistake.EXPIRED]
    assert [it.name for it in report.parameters][:3] == ["sv", "tn", "sp"]
    assert report.text.startswith("ra\n2026-01-01T00:00:00Z\n")


def test_finding_the_account_of_a_token_is_cheap_among_many():
    names = [f"shop{number}" for number in range(200)]
    accounts = {
        name: ManagedAccount(name, (Key("key1", name.encode() * 8), Key("key2", name.encode() * 9)))
        for name in names
    }
    with costs_less_than(2):
        report = inspect(mistakes.good(TABLE_TOKEN), replace(FACTS, accounts=accounts))
    assert (report.account, [it.mistake for it in report.findings]) == ("", [Mistake.ACCOUNT_NOT_NAMED])


@pytest.mark.parametrize(
    ("request_line", "token", "mistake", "status"),
    [
        ("POST /acme-secondary/people", ACCOUNT_TOKEN, None, 0),
        ("GET /acme/people", TABLE_TOKEN, Mistake.RANGE_IN_COSMOS, 405),
    ],
)
def test_s5_knows_what_a_cosmos_account_takes(request_line, token, mistake, status):
    facts = replace(FACTS, accounts={ACCOUNT: replace(ACME, kind=AccountKind.COSMOS)})
    report = inspect(f"{request_line}?{mistakes.good(token)} HTTP/1.1\nHost: {HOST}", facts)
    assert [it.mistake for it in report.findings] == ([] if mistake is None else [mistake])
    assert report.verdict.status == status


@pytest.mark.parametrize(
    ("request_line", "token", "mistake", "status"),
    [
        ("GET /acme/people(PartitionKey='a',RowKey='1')", TABLE_TOKEN, None, 0),
        ("GET /acme/people(PartitionKey='a',RowKey='0')", TABLE_TOKEN, Mistake.OUTSIDE_RANGE, 404),
        ("GET /acme/people(PartitionKey='c',RowKey='1')", TABLE_TOKEN, Mistake.OUTSIDE_RANGE, 404),
        ("DELETE /acme/people(PartitionKey='a',RowKey='1')", TABLE_TOKEN, Mistake.PERMISSION, 403),
        ("GET /acme/orders", TABLE_TOKEN, Mistake.OTHER_TABLE, 403),
        ("GET /acme/Tables", TABLE_TOKEN, Mistake.NOT_BY_TOKEN, 403),
        ("POST /acme-secondary/people", TABLE_TOKEN, Mistake.SECONDARY_WRITE, 403),
        ("GET /acme/Tables", {**ACCOUNT_TOKEN, "srt": "o"}, Mistake.RESOURCE_TYPE, 403),
        ("GET /acme/Tables", {**ACCOUNT_TOKEN, "ss": "b"}, Mistake.NO_TABLE_SERVICE, 403),
    ],
)
def test_s5_names_what_a_token_does_not_reach(request_line, token, mistake, status):
    report = inspect(f"{request_line}?{mistakes.good(token)} HTTP/1.1\nHost: {HOST}", FACTS)
    assert report.kind is ReportKind.REQUEST
    assert [it.mistake for it in report.findings] == ([mistake] if mistake else [])
    assert report.verdict.status == status


# requests, as the SDK sends them


class Captured(Exception):
    pass


class Capture(HttpTransport):
    """Keeps what would be sent."""

    def send(self, request, **kwargs):
        self.request = request
        raise Captured

    def open(self):
        pass

    def close(self):
        pass

    def __exit__(self, *args):
        pass


def sent_by_the_sdk(do):
    credential = AzureNamedKeyCredential(ACCOUNT, base64.b64encode(FIRST).decode())
    endpoint, transport = f"http://{HOST}/{ACCOUNT}", Capture()
    service = TableServiceClient(endpoint, credential=credential, transport=transport, retry_total=0)
    with pytest.raises(Captured):
        do(service, service.get_table_client("People"))
    return Request(transport.request.method, transport.request.url, dict(transport.request.headers))


ENTITY = {"PartitionKey": "o'neill", "RowKey": "é 100%+&?", "Age": 36}
OPERATIONS = {
    "list": lambda service, table: list(service.list_tables()),
    "create": lambda service, table: table.create_table(),
    "query": lambda service, table: list(table.query_entities("Age gt 30", select=["Age"])),
    "get": lambda service, table: table.get_entity("o'neill", "é 100%+&"),
    "insert": lambda service, table: table.create_entity(ENTITY),
    "upsert": lambda service, table: table.upsert_entity({**ENTITY, "RowKey": "1"}, mode=UpdateMode.REPLACE),
    "delete": lambda service, table: table.delete_entity("a b", "@"),
    "acl": lambda service, table: table.get_table_access_policy(),
    "set acl": lambda service, table: table.set_table_access_policy(
        {"readers": TableAccessPolicy(permission="r")}
    ),
    "properties": lambda service, table: service.get_service_properties(),
    "batch": lambda service, table: table.submit_transaction([("upsert", {**ENTITY, "RowKey": "1"})]),
}


@pytest.fixture(params=OPERATIONS)
def request_of_the_sdk(request):
    return sent_by_the_sdk(OPERATIONS[request.param])


def facts_now():
    return replace(FACTS, now=time.time())


def test_finds_nothing_in_a_good_request(request_of_the_sdk):
    lite = mistakes.sign_lite(request_of_the_sdk)
    for text in (request_of_the_sdk.as_http(), request_of_the_sdk.as_curl(), lite.as_http()):
        report = inspect(text, facts_now())
        assert (report.findings, report.verdict.error, report.key) == ([], None, "key1")


def test_names_the_mistake_in_a_request(request_of_the_sdk):
    unsigned = request_of_the_sdk.having(Authorization=None, Date=None)
    for mistake, make in mistakes.OF_REQUESTS:
        request = make(unsigned)
        for text in (request.as_http(), request.as_curl()):
            report = inspect(text, facts_now())
            names = [it.mistake for it in report.findings]
            assert mistake in names, (mistake, names)
            assert len(names) == 1 or mistake in SAID_TOGETHER, names
            assert report.verdict.error is not None


# a request whose date is gone, and one that is for another account, is not signed any more either
SAID_TOGETHER = {Mistake.NO_DATE, Mistake.ACCOUNT_DIFFERS}


def test_names_an_omitted_comp_and_a_signed_query():
    for operation, mistake in (
        ("acl", Mistake.COMP_LEFT_OUT),
        ("set acl", Mistake.COMP_LEFT_OUT),
        ("properties", Mistake.COMP_LEFT_OUT),
        ("query", Mistake.QUERY_SIGNED),
    ):
        request = sent_by_the_sdk(OPERATIONS[operation]).having(Authorization=None)
        query = "?" + request.url.partition("?")[2] if operation == "query" else ""
        for make in mistakes.of_both(lambda it, query=query: f"/{ACCOUNT}{it.path}{query}"):
            assert found(make(request).as_http(), facts_now()) == [mistake]


def test_names_a_path_signed_differently_than_sent():
    request = sent_by_the_sdk(OPERATIONS["create"]).having(Authorization=None)
    request = replace(
        request, method="GET", url=f"http://{HOST}/{ACCOUNT}/People(PartitionKey='a%2Fb',RowKey='%25')"
    )
    cases = {
        Mistake.PATH_DECODED: f"/{ACCOUNT}/{ACCOUNT}/People(PartitionKey='a/b',RowKey='%')",
        Mistake.TABLE_CASE: f"/{ACCOUNT}/{ACCOUNT}/people(partitionkey='a%2fb',rowkey='%25')",
    }
    for mistake, resource in cases.items():
        assert found(
            mistakes.authorized(request, mistakes.full(request, resource)).as_http(), facts_now()
        ) == [mistake]


def test_says_of_a_filter_what_the_console_says():
    request = sent_by_the_sdk(OPERATIONS["query"]).having(Authorization=None)
    for text, code, sentence in (
        ("Name eq 'Ada", "InvalidInput", "The string has no closing quote. This filter works: Name eq 'Ada'"),
        (
            "startswith(Name,'A')",
            "NotImplemented",
            "startswith() isn't supported in filters. This filter works: Name ge 'A' and Name lt 'B'",
        ),
    ):
        asked = replace(request, url=f"http://{HOST}/{ACCOUNT}/people()?$filter={quote(text)}")
        report = inspect(mistakes.sign(asked).as_http(), facts_now())
        (it,) = report.findings
        assert (it.mistake, report.verdict.error.code) == (Mistake.FILTER, code)
        assert str(describe(it)).partition(". ")[2] == sentence


def test_a_missing_table_is_named_with_a_similar_one():
    request = sent_by_the_sdk(OPERATIONS["query"]).having(Authorization=None)
    for name, similar in (("poeple", "people"), ("elsewhere", None)):
        asked = replace(request, url=f"http://{HOST}/{ACCOUNT}/{name}()")
        told = details(mistakes.sign(asked).as_http(), Mistake.TABLE_MISSING, facts_now())
        assert (told["table"], told.get("similar")) == (name, similar)


def test_an_address_by_host_has_the_account_once():
    request = sent_by_the_sdk(OPERATIONS["list"]).having(Authorization=None)
    ours = replace(request, url="http://acme.table.localhost:10002/Tables")
    assert found(mistakes.sign(ours).as_http(), facts_now()) == []
    doubled = mistakes.authorized(ours, mistakes.full(ours, "/acme/acme/Tables"))
    assert found(doubled.as_http(), facts_now()) == [Mistake.ACCOUNT_DOUBLED]
    azure = replace(request, url="https://acme.table.core.windows.net/Tables")
    assert found(mistakes.sign(azure).as_http(), facts_now()) == [Mistake.ELSEWHERE]


def test_a_bearer_token_is_not_judged():
    report = inspect(f"GET /acme/Tables HTTP/1.1\nHost: {HOST}\nAuthorization: Bearer abc.def.ghi", FACTS)
    assert (report.verdict, [it.mistake for it in report.findings]) == (None, [Mistake.BEARER])


def test_two_authorizations():
    text = f"GET /acme/people?{mistakes.good(TABLE_TOKEN)} HTTP/1.1\nHost: {HOST}\nAuthorization: SharedKey acme:bQ=="
    report = inspect(text, FACTS)
    assert Mistake.TWO_AUTHORIZATIONS in [it.mistake for it in report.findings]
    assert report.verdict.detail == "Two kinds of authorization came at once."


# how it was pasted


def test_names_what_could_not_be_read():
    for text, mistake in (
        ('curl "http://h/acme/people?$filter=a" -H "x: y"', Mistake.SHELL_VARIABLE),
        ("curl --frobnicate http://h/acme/people", Mistake.OPTION_UNKNOWN),
        ("curl -sZ http://h/acme/people", Mistake.OPTION_UNKNOWN),
        ("GET /acme/people HTTP/1.1\nHost: h\nwhat is this", Mistake.LINE_UNREADABLE),
        ("GET /acme/people HTTP/1.1\nx-ms-date: y", Mistake.NO_HOST),
    ):
        assert mistake in found(text)
    for text, reason in (
        ("", UnreadableText.EMPTY),
        (" \n\t", UnreadableText.EMPTY),
        ("hello", UnreadableText.NOTHING_KNOWN),
        ("hello world", UnreadableText.NOTHING_KNOWN),
        ("x-ms-date: Sat\nAuthorization: SharedKey a:b", UnreadableText.HEADERS_ONLY),
        ("x" * 70_000, UnreadableText.TOO_LONG),
    ):
        assert inspect(text, FACTS) is reason


@pytest.mark.parametrize(
    "command",
    [
        "curl http://h/acme/people -X PUT -H 'X-A: 1' --data '{}'",
        "curl -XPUT --url http://h/acme/people -H'X-A: 1' -d '{}'",
        "$ curl \\\n -sS --request PUT \\\n --header 'X-A: 1' --data-raw $'{\\'a\\': 1}' http://h/acme/people",
        'curl.exe -X PUT ^\n -H "X-A: 1" ^\n -d "{}" http://h/acme/people',
    ],
)
def test_reads_curl_in_every_shell(command):
    report = inspect(command, FACTS)
    told = {it.name: it.value for it in report.fields}
    assert (told["method"], told["path"]) == ("PUT", "/acme/people")
    assert told["Content-Type"] == "application/x-www-form-urlencoded"
    assert [it.mistake for it in report.findings] == [Mistake.NO_AUTHORIZATION]


@given(st.text(max_size=200) | st.from_regex(r"(curl |GET |sv=|AccountName=)[ -~\n]{0,200}", fullmatch=True))
@settings(max_examples=of_usual(40))
def test_whatever_is_pasted_is_answered(text):
    report = inspect(text, FACTS)
    assert isinstance(report, Report | UnreadableText)
    # nothing that it says holds a key
    assert base64.b64encode(FIRST).decode() not in repr(report)


SIGNATURE = mistakes.signature("nothing")
LONG = {
    "a value": f"sv=2019-02-02&tn=people&sp=r&se=2099-01-01&spk={'a%20' * 15_000}&sig={SIGNATURE}",
    "permissions": f"sv=2019-02-02&ss=t&srt=o&sp={'rw' * 30_000}&se=2099-01-01&sig={SIGNATURE}",
    "a signature": f"sv=2019-02-02&tn=people&sp=r&se=2099-01-01&sig={'%2B' * 20_000}",
    "parameters": "a=1&" * 15_000 + f"sv=2019-02-02&tn=people&sp=r&se=2099-01-01&sig={SIGNATURE}",
    "a path": f"GET /acme/{'%7E' * 20_000} HTTP/1.1\nHost: h\nAuthorization: SharedKey acme:{SIGNATURE}",
    "a query": f"GET /acme/p?{'x=%20&' * 10_000} HTTP/1.1\nHost: h\nAuthorization: SharedKey acme:{SIGNATURE}",
    "headers": "GET /acme/p HTTP/1.1\n" + "a: b\n" * 12_000,
    "options": "curl http://h/acme/p " + "-s" * 30_000,
    "words": "curl http://h/acme/p " + "-sZ " * 15_000,
    "quotes": "curl http://h/acme/p " + "$'" * 30_000,
    "parts": "AccountName=acme;" + "x;" * 30_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_input_is_inspected_quickly(text):
    many = {f"other{number}": ManagedAccount(f"other{number}", ACME.keys) for number in range(50)}
    with costs_less_than(2):
        inspect(text, replace(FACTS, accounts=FACTS.accounts | many))


# connection strings


def connection(**parts):
    defaults = {
        "DefaultEndpointsProtocol": "http",
        "AccountName": ACCOUNT,
        "AccountKey": base64.b64encode(FIRST).decode(),
        "TableEndpoint": f"http://{HOST}/{ACCOUNT}",
    }
    return ";".join(f"{name}={value}" for name, value in {**defaults, **parts}.items() if value is not None)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        (connection(), None),
        (connection() + ";", None),
        (f'TABLES="{connection()};"', None),
        (connection(TableEndpoint="http://acme.table.localhost:10002"), None),
        ("UseDevelopmentStorage=true", None),
        (connection(AccountKey=base64.b64encode(OLD).decode()), Mistake.RETIRED_KEY),
        (connection(AccountKey=base64.b64encode(OTHER).decode()), Mistake.OTHER_ACCOUNT_KEY),
        (connection(AccountKey=base64.b64encode(DEVELOPMENT).decode()), Mistake.DEVELOPMENT_KEY),
        (connection(AccountKey=base64.b64encode(b"?" * 64).decode()), Mistake.KEY_UNKNOWN),
        (connection(AccountKey=base64.b64encode(FIRST).decode()[:-2]), Mistake.KEY_NOT_BASE64),
        (connection(AccountKey=None), Mistake.NO_CREDENTIAL),
        (connection(TableEndpoint=None), Mistake.NO_TABLE_ENDPOINT),
        (connection(TableEndpoint=f"http://{HOST}"), Mistake.ENDPOINT_WITHOUT_ACCOUNT),
        (connection(TableEndpoint=f"http://{HOST}/other"), Mistake.ENDPOINT_OTHER_ACCOUNT),
        (connection(TableEndpoint="http://other.table.localhost"), Mistake.ENDPOINT_OTHER_ACCOUNT),
        (connection(TableEndpoint="localhost:10002/acme"), Mistake.ENDPOINT_MALFORMED),
        (connection(DefaultEndpointsProtocol="https"), None),
        (connection(AccountName="Acme!"), Mistake.NO_ACCOUNT_NAME),
        (connection(Foo="1"), Mistake.PART_UNKNOWN),
        (connection() + ";AccountName=other", None),
        (connection() + ";nonsense", Mistake.PART_MALFORMED),
    ],
)
def test_names_the_mistake_in_a_connection_string(text, mistake):
    names = found(text)
    assert mistake in names if mistake else names == []
    for key in (FIRST, OLD, OTHER):
        assert base64.b64encode(key).decode() not in repr(inspect(text, FACTS))


def test_a_connection_string_with_a_token():
    text = connection(AccountKey=None, SharedAccessSignature=mistakes.keyed(OLD)(TABLE_TOKEN))
    report = inspect(text, FACTS)
    assert report.kind is ReportKind.CONNECTION
    assert [it.mistake for it in report.findings] == [Mistake.RETIRED_KEY]
    assert len(report.settings) > 2
    assert len(report.parameters) > 5


def test_every_mistake_is_made_in_a_test():
    tests = Path(__file__).read_text() + Path(mistakes.__file__).read_text()
    assert [it.name for it in Mistake if f"Mistake.{it.name}" not in tests] == []
