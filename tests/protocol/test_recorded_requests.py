"""Requests to the service in the request log, and data that is never stored there."""

import base64
import json
import re
from datetime import UTC, datetime
from email.utils import formatdate
from time import time
from urllib.parse import quote, urlencode

import pytest

from storage.accounts import accounts
from storage.accounts.accounts import NewAccount
from storage.domain.values.kinds import AccountKind
from storage.models import Account, RecordedRequest
from storage.requests import explanations, recording
from storage.requests.requests import RequestClass, RequestFilter, find
from storage.runtime.threads import in_thread
from storage.tables import tables
from tests.faults.marked import CHARACTERS, MALFORMED_KEYS
from tests.protocol.test_table_service import ACCOUNT, JSON, KEY, running, sender
from tests.wire import tokens

pytestmark = pytest.mark.django_db(transaction=True)

PATH = "/people(PartitionKey='Ada-secret',RowKey='r')"
TOKEN = {"tn": "people", "sp": "r", "se": "2099-12-31T23:59:59Z"}


@pytest.fixture(autouse=True)
def _time_to_explain(monkeypatch):
    """Read the history for as long as it takes, also on a busy machine."""
    monkeypatch.setattr(recording, "_WAIT", 60.0)


@pytest.fixture
async def service():
    account = await in_thread(accounts.add, ACCOUNT, NewAccount(KEY))
    await in_thread(tables.create, account, "people")
    async with running() as service:
        yield service


@pytest.fixture
def send(service):
    return sender(service)


def sas(path, **fields):
    token = tokens.parameters({"sas": {**TOKEN, **fields}}, ACCOUNT, base64.b64encode(KEY).decode())
    return f"{path}?{urlencode(token)}"


async def kept(service):
    """Return the requests in the log, oldest first."""
    await service._service.observer.flush()
    return await in_thread(lambda: list(find(RequestFilter()).order_by("pk")))


def told(request):
    return explanations.explain(request)


async def test_tells_why_access_was_refused(service, send):
    body = b"<SignedIdentifiers><SignedIdentifier><Id>reader</Id><AccessPolicy><Expiry>2099-01-01T00:00:00Z</Expiry>"
    body += b"<Permission>r</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>"
    xml = {**JSON, "Content-Type": "application/xml"}
    assert (await send("PUT", "/people?comp=acl", body, xml)).status == 204
    late = formatdate(time() - 20 * 60, usegmt=True)
    unsigned = {**JSON, "User-Agent": "an SDK", "x-ms-client-request-id": "mine"}
    expired = sas("/people()", se="2026-01-01T00:00:00Z")
    by_policy = sas(PATH, si="reader", sp=False, se=False)
    sent = [
        await send("GET", expired, headers=unsigned, signed=False),
        await send("DELETE", by_policy, headers={**JSON, "If-Match": "*"}, signed=False),
        await send("GET", "/people()", headers={**JSON, "x-ms-date": late}),
        await send("GET", "/people()", key=b"x" * 64),
        await send("GET", "/people()", signed=False),
    ]
    assert [reply.status for reply in sent] == [403] * 5

    _, by_sas, deletion, skewed, foreign, anonymous = await kept(service)

    token = by_sas.credential[:8]
    assert re.fullmatch(
        rf"The token {token} expired \d+ days before this request, at 2026-01-01T00:00:00Z\.", told(by_sas)[0]
    )
    assert (by_sas.client_request_id, by_sas.agent) == ("mine", "an SDK")
    assert str(by_sas.request_id) == sent[0].headers["x-ms-request-id"]
    assert (len(by_sas.credential), by_sas.authentication) == (64, "sas")
    assert told(deletion) == ["The policy reader has no d, which DeleteEntity needs. Its permissions are r."]
    assert told(skewed)[0].startswith("The date is 20 minutes away from this server's clock (")
    assert told(foreign)[0].startswith("The signature doesn't match any key of this account.")
    assert told(anonymous) == [
        "The request is not signed: it has no Authorization header, and its URL has no sig parameter."
    ]


async def test_names_the_part_that_was_refused(service, send):
    entity = {"PartitionKey": "p", "RowKey": "r"}
    requests = [
        ("GET", "/people()?$filter=" + quote("Name eq 'Ada-secret' und Age gt 5"), b"", {}),
        ("GET", "/people()?$top=many", b"", {}),
        ("POST", "/people", {**entity, "Born@odata.type": "Edm.Int64", "Born": "Ada-secret"}, {}),
        ("POST", "/people", b'{"PartitionKey": "Ada-secret", ?}', {}),
        ("PUT", PATH, {}, {"If-Match": "Ada-secret"}),
        ("GET", "/people()?$expand=Ada-secret", b"", {}),
    ]
    for method, path, body, headers in requests:
        assert (await send(method, path, body, {**JSON, **headers})).status in (400, 501)

    result = await kept(service)
    assert {it.outcome for it in result} == {"refused"}  # also what is not implemented

    assert [(it.fault["part"], it.fault["name"]) for it in result] == [
        ("option", "$filter"),
        ("option", "$top"),
        ("property", "Born"),
        ("body", ""),
        ("header", "If-Match"),
        ("option", "$expand"),
    ]
    assert result[0].options == [["$filter", "Name eq … und Age gt …"]]
    assert (result[0].fault["position"], result[0].fault["span"]) == (21, [10, 13])
    assert told(result[0]) == [
        (
            "The filter has an error at position 22. Unknown operator “und”. Did you mean and?"
            " This filter works: Name eq '…' and Age gt …"
        )
    ]
    assert told(result[1]) == ["The query option $top is not valid."]
    assert told(result[3]) == ["The body cannot be read. The error is at position 32."]
    assert told(result[5]) == ["Table storage doesn't support the query option $expand."]
    assert result[4].path == f"/{ACCOUNT}/people(PartitionKey='…',RowKey='…')"


@pytest.mark.parametrize(
    ("sent", "kept_text", "marked", "explanation"),
    [
        (
            "Name eq 'Ada-secret",
            "Name eq …",
            "…",
            "The filter has an error at position 9. The string has no closing quote. This filter works: Name eq '…'",
        ),
        (
            "startswith(Name,'Ada-secret')",
            "startswith(…,…)",
            "startswith",
            (
                "The filter has an error at position 1. startswith() isn't supported in filters."
                " This filter works: Name ge '…' and Name lt '…'"
            ),
        ),
        (
            "Age gt 5 and contains(Name,'Ada-secret')",
            "Age gt … and contains(…,…)",
            "contains",
            (
                "The filter has an error at position 14. contains() isn't supported in filters. Filters compare"
                " properties with values and join conditions with and, or, not. Do the rest in the client."
            ),
        ),
        (
            "Name = 'Ada-secret'",
            "… = …",
            "=",
            (
                "The filter has an error at position 6. Filters have operators of their own: eq, ne, gt, ge, lt, le,"
                " and, or, not. This filter works: Name eq '…'"
            ),
        ),
    ],
)
async def test_explains_a_refused_filter_as_the_grid_does(
    service, send, sent, kept_text, marked, explanation
):
    reply = await send("GET", "/people()?$filter=" + quote(sent))
    assert reply.status in (400, 501)

    (recorded,) = await kept(service)

    start, end = recorded.fault["span"]
    assert (recorded.outcome, recorded.access_path, recorded.candidates) == ("refused", "", None)
    assert (recorded.options, recorded.options[0][1][start:end]) == ([["$filter", kept_text]], marked)
    assert told(recorded) == [explanation]
    assert "secret" not in str([recorded.fault, recorded.options])


async def test_proposes_the_table_with_a_similar_name(service, send):
    for path in ("/peopel()", "/elsewhere()"):
        assert (await send("GET", path + "?$filter=" + quote("Age gt 5"))).status == 404

    near, far = await kept(service)

    assert told(near) == ["This account has no table peopel. Did you mean people?"]
    assert (told(far), near.access_path, far.access_path) == ([], "", "")


async def test_names_the_operation_of_a_refused_token(service, send):
    for method, path in (("GET", "/people()"), ("PATCH", PATH), ("DELETE", "/Tables('people')")):
        query = sas(path, se="2026-01-01T00:00:00Z")
        assert (await send(method, query, headers=JSON, signed=False)).status == 403

    assert [(it.operation, it.table_name) for it in await kept(service)] == [
        ("QueryEntities", "people"),
        ("InsertOrMergeEntity", "people"),
        ("DeleteTable", "people"),
    ]


async def test_a_change_set_is_refused_although_it_is_answered(service, send):
    part = (
        "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        "POST http://h/{0}/people HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{1}\r\n"
    )
    texts = [json.dumps({"PartitionKey": "p", "RowKey": key, "N": n}) for key, n in (("a", 1), ("b", {}))]
    changes = "".join(part.format(ACCOUNT, text) for text in texts).replace("--b", "--c") + "--c--\r\n"
    body = f"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{changes}--b--\r\n".encode()
    reply = await send("POST", "/$batch", body, {"Content-Type": "multipart/mixed; boundary=b"})
    assert reply.status == 202

    (recorded,) = await kept(service)

    assert (recorded.outcome, recorded.error, recorded.fault["place"]) == ("refused", "InvalidInput", 1)
    assert told(recorded) == [
        "Operation 2 of the change set was refused; the others were not made either.",
        "The property N is not valid.",
    ]


async def test_notes_what_azure_would_refuse(service, send):
    entity = {"PartitionKey": "p", "RowKey": "r", "N": 5_000_000_000}
    accept = {"Accept": JSON["Accept"], "x-ms-version": "2019-02-02"}
    long, many = "N gt 4000000000", "N ne 1" + " and N ne 2" * 15
    query = "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    query += f"GET http://h/{ACCOUNT}/people()?$filter={quote(long)} HTTP/1.1\r\n\r\n\r\n--b--\r\n"
    requests = [
        ("POST", "/Tables", {"TableName": "others"}, accept),
        ("POST", "/people", entity, accept),
        ("GET", "/people()", b"", {"x-ms-version": "2019-02-02"}),
        ("GET", "/Tables", b"", {"x-ms-version": "2019-02-02"}),
        ("GET", f"/people()?$filter={quote(f'{long} and {many}')}", b"", JSON),
        ("GET", "/people()?NextPartitionKey=1!4!cA--&NextRowKey=", b"", JSON),
        ("POST", "/$batch", query.encode(), {"Content-Type": "multipart/mixed; boundary=b"}),
        ("POST", "/Tables", {"TableName": "Others"}, JSON),
    ]
    usual = [
        ("GET", f"/people()?$filter={quote(f'N gt 4000000000L and {many[:-22]}')}", b"", JSON),
        (
            "GET",
            f"/people()?$filter={quote('A eq ' + repr('1234567890') + ' or N gt 2147483647')}",
            b"",
            JSON,
        ),
        ("GET", "/people()?NextPartitionKey=1!4!cA--", b"", JSON),
    ]
    for method, path, body, headers in (*requests, *usual):
        if body == {"TableName": "Others"}:
            assert (await send("DELETE", "/Tables('others')")).status == 204
        assert (await send(method, path, body, headers)).status in (200, 201, 202)

    result = [it.fault["warnings"] for it in await kept(service) if it.fault]

    assert result == [
        ["missing_content_type"],
        ["missing_content_type"],
        ["missing_accept"],
        ["missing_accept"],
        ["int32_literal", "too_many_comparisons"],
        ["empty_next_row_key"],
        ["int32_literal"],
        ["table_being_deleted"],
    ]
    warned = await in_thread(lambda: list(find(RequestFilter(kind=RequestClass.WARNED)).order_by("pk")))
    assert [it.outcome for it in warned] == ["done"] * len(requests)
    (sentence,) = told(warned[0])
    assert sentence == (
        "Azure would refuse this request."
        " A request that sends a table or an entity needs the header Content-Type."
        " Source: https://github.com/Azure/azure-sdk-for-net/issues/35185"
    )
    assert told(warned[4])[1].startswith(
        "Azure's documentation does not allow this request. A filter may contain"
    )


async def test_names_the_rule_on_which_a_strict_account_insists(service, send):
    await in_thread(lambda: Account.objects.filter(name=ACCOUNT).update(strictness="azure"))
    assert (await send("GET", f"/people()?$filter={quote('N gt 4000000000')}")).error == "InvalidInput"

    (recorded,) = await kept(service)

    assert (recorded.fault["rule"], recorded.fault["position"]) == ("int32_literal", 5)
    assert recorded.options == [["$filter", "N gt …"]]
    assert told(recorded) == [
        (
            "This account is as strict as Azure, which refuses such requests. In a filter, an integer beyond 32 bits"
            " needs the suffix L. Source: https://github.com/Azure/azure-storage-node/issues/316"
        )
    ]


async def test_tells_how_a_slow_query_read(service, send, settings):
    settings.REQUEST_LOG = settings.REQUEST_LOG._replace(slow=0.0)
    await send("GET", "/people()?$filter=" + quote("Age gt 5 and Name eq 'Ada-secret' or Born lt 3"))

    (recorded,) = await kept(service)

    assert (recorded.outcome, recorded.access_path) == ("done", "table-scan")
    assert recorded.options == [["$filter", "Age gt … and Name eq … or Born lt …"]]
    assert recorded.candidates == ["Born"]
    assert told(recorded) == ["It read the whole table.", "An index of Born would spare it rows."]


async def test_tells_what_was_done_before_to_what_was_not_as_expected(service, send):
    entity = {"PartitionKey": "Ada-secret", "RowKey": "r"}
    part = (
        "--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"POST http://h/{ACCOUNT}/people HTTP/1.1\r\nContent-Type: application/json\r\n\r\n{json.dumps(entity)}\r\n"
    )
    batch = f"--a\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{part}--b--\r\n--a--\r\n".encode()
    etag = (await send("POST", "/people", entity)).headers["ETag"]
    assert (await send("POST", "/people", entity)).status == 409
    assert (
        await send("POST", "/$batch", batch, {"Content-Type": "multipart/mixed; boundary=a"})
    ).status == 202
    for number in range(3):
        await send("MERGE", PATH, {"N": number}, {**JSON, "If-Match": "*"})
    assert (await send("MERGE", PATH, {"N": 9}, {**JSON, "If-Match": etag})).status == 412
    assert (await send("DELETE", PATH, headers={**JSON, "If-Match": etag})).status == 412
    assert (await send("DELETE", PATH, headers={**JSON, "If-Match": "*"})).status == 204
    assert (await send("GET", PATH)).status == 404
    assert (await send("GET", "/people(PartitionKey='none',RowKey='r')")).status == 404
    await send("POST", "/people", entity)  # later, so not the reason
    await kept(service)
    assert (await send("DELETE", "/Tables('people')")).status == 204
    assert (await send("GET", PATH)).status == 404

    refused = [it for it in await kept(service) if it.outcome == "refused"]

    assert [it.error for it in refused] == [
        "EntityAlreadyExists",
        "EntityAlreadyExists",
        "UpdateConditionNotSatisfied",
        "UpdateConditionNotSatisfied",
        "ResourceNotFound",
        "ResourceNotFound",
        "TableNotFound",
    ]
    changes = [(it.fault or {}).get("change", {}) for it in refused]
    ops = ["insert", "insert", "update", "update", "delete", None, "table"]
    assert [it.get("op") for it in changes] == ops
    assert [it.get("further") for it in changes] == [0, 0, 2, 2, 0, None, 0]
    assert {it["name"] for it in changes if it.get("op") in {"insert", "update", "delete"}} == {"key1"}
    assert told(refused[2])[0].startswith("The entity was last changed by key1 at ")
    assert told(refused[2])[0].endswith(" It is the last of 3 changes that the client had not seen.")
    assert told(refused[-1])[0].startswith("The table was deleted by key1 at ")
    assert "secret" not in str([it.__dict__ for it in refused])


async def test_a_read_of_the_past_is_not_explained_by_what_was_done_since(service, send):
    before = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    await send("POST", "/people", {"PartitionKey": "Ada-secret", "RowKey": "r"})
    await send("DELETE", PATH, headers={**JSON, "If-Match": "*"})
    assert (await send("GET", PATH, headers={**JSON, "x-tablero-as-of": before})).status == 404

    (recorded,) = [it for it in await kept(service) if it.outcome == "refused"]

    assert (recorded.error, told(recorded)) == ("ResourceNotFound", [])


async def test_the_log_contains_no_secrets_keys_or_values(service, send):
    value = "Ada-secret"
    body = {"PartitionKey": value, "RowKey": value, "Name": value}
    filters = [f"Name eq '{value}'", f"Name eq '{value}", f'Name eq "{value}"', f"Name eq {value} eq"]
    targets = [f"/people()?$filter={quote(text)}" for text in filters]
    targets += [PATH, f"/people(PartitionKey=%27{value}%27,RowKey=%27{value}%27)", f"/people('{value}')"]
    targets += [sas(PATH, spk=value, srk=value, epk=value, erk=value, se="2026-01-01T00:00:00Z")]
    targets += [sas(PATH, spk=value, srk="a").replace("sig=", "sig=x"), f"/people()?NextPartitionKey={value}"]
    for number, target in enumerate(targets):
        await send("GET", target, signed="sig=" not in target)
        await send("GET", target, signed=False, headers={**JSON, "Authorization": f"SharedKey {value}"})
        await send("GET", target, key=bytes([number]) * 64)
    for _ in range(2):
        await send("POST", "/people", body)
        await send("PUT", PATH, body, {**JSON, "If-Match": f'W/"{value}"'})

    assert len(await kept(service)) > 20

    rows = await in_thread(lambda: [str(row.__dict__) for row in RecordedRequest.objects.all()])
    assert [row for row in rows if "secret" in row] == []
    secret = base64.b64encode(KEY).decode()
    assert not any(secret[:20] in row or "sig=" in row for row in rows)


async def test_tells_why_an_address_names_no_resource(service, send):
    for path in ('/people("Ada-secret")', "/people/Ada-secret", "/nothing/Ada-secret", "/Ada-secret()"):
        assert 400 <= (await send("GET", path)).status < 500, path

    kept_requests = await kept(service)

    assert [(it.path, it.table_name) for it in kept_requests] == [
        (f"/{ACCOUNT}/people(…)", "people"),
        (f"/{ACCOUNT}/people/…", "people"),
        (f"/{ACCOUNT}/…/…", ""),
        (f"/{ACCOUNT}/…()", ""),
    ]
    assert kept_requests[1].fault["address"] == {"rule": "depth", "segments": 2, "length": 17}
    told_of_quotes = told(kept_requests[0])
    assert told_of_quotes[0] == (
        "The address names no resource. Segments after the account: 1, characters: 20."
    )
    assert told_of_quotes[1].startswith("What is in parentheses is no key.")


async def test_in_a_cosmos_account_nearly_every_text_is_a_name(service, send):
    """A possible key in a malformed address is stored, and counted, if there is a table of that name."""
    await in_thread(lambda: Account.objects.filter(name=ACCOUNT).update(kind=AccountKind.COSMOS))
    account = await in_thread(Account.objects.get, name=ACCOUNT)
    odd = 'people("odd", 1)'
    await in_thread(tables.create, account, odd)
    for form in MALFORMED_KEYS:
        target = quote(form.format(k="Ada=secret", r="r"), safe=CHARACTERS)
        await send("GET", f"/{target}", headers={})
    assert (await send("GET", f"/{quote(odd)}", headers={})).status == 200
    assert (await send("GET", f"/{quote(odd)}?$top=many", headers={})).status == 400

    result = await kept(service)

    assert len(result) > 60
    assert [(it.table_name, it.path) for it in result[-2:]] == [(odd, f"/{ACCOUNT}/{odd}")] * 2
    rows = await in_thread(lambda: [str(row.__dict__) for row in RecordedRequest.objects.all()])
    assert [row for row in rows if "secret" in row] == []


async def test_a_signature_that_was_encoded_with_the_address_is_not_in_it(service, send):
    targets = [
        "/people%3Fsv=1%26sig%3Dsecret",
        "/people%3Fsv=1&sig=secret",
        "/people()?sv%3D1%26sig%3Dsecret",
    ]
    for target in targets:
        await send("GET", target, signed=False)
        await send("GET", target, key=bytes(64))
    assert len(await kept(service)) == 2 * len(targets)
    rows = await in_thread(lambda: [str(row.__dict__) for row in RecordedRequest.objects.all()])
    assert [row for row in rows if "secret" in row] == []


async def test_keeps_no_names_that_are_none(service, send):
    """One that the database cannot store must not cost the requests that are written with it."""
    for name in ("a\\u0000b", "a\\ud800b"):
        body = f'{{"PartitionKey":"p","RowKey":"r","{name}":1,"{name}":2}}'.encode()
        assert (await send("POST", "/people", body)).status == 400
    assert (await send("GET", "/people()?$a%00b=1", headers=JSON)).status == 501

    faults = [it.fault for it in await kept(service)]
    assert [it["name"] for it in faults if it] == ["…", "…", "…"]
