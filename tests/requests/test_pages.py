"""The pages of the request log: who may see it, the list and its numbers, and why a request was refused or slow."""

import json
import re
from html import unescape
from time import perf_counter
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils import timezone

from storage.domain.access.grants import Operation
from storage.domain.errors import (
    AuthenticationFailed,
    EntityAlreadyExists,
    InvalidInput,
    PartKind,
    TableNotFound,
)
from storage.domain.filters.parser import parse
from storage.domain.filters.query import EntityQuery
from storage.domain.requests.observed import Authentication, Credential, ObservedRequest, Rehearsed
from storage.domain.requests.recorded import KeptRequest, SentRequest, read_fault
from storage.models import PropertyIndex, RecordedRequest, RegisteredSas
from storage.requests.recording import RequestLog
from storage.tables import tables

pytestmark = pytest.mark.django_db
LIST = "/ui/a/acme/requests/"
SIGNED = Credential(Authentication.KEY, "key1")


def keep(account, error=None, *, query=b"", headers=(), searched=None, age=0, **fields):
    """Add a request to the log."""
    now = perf_counter()
    values = {
        "started": now - 0.001,
        "account_id": account.pk,
        "account": account.name,
        "operation": Operation.QUERY_ENTITIES,
        "table": "people",
        "authentication": Authentication.KEY,
        "credential": SIGNED,
        "address": "192.0.2.7",
        "agent": b"an SDK",
        "request_id": str(uuid4()),
        "status": 200 if error is None else error.status,
        "refusal": error,
        "query": EntityQuery(filter=parse(searched)) if searched else None,
        "answered": now,
        "sent": now,
    }
    request = ObservedRequest(**{**values, **fields})
    sent = SentRequest(
        "GET", b"/acme/people()", query, {b"host": b"127.0.0.1", **dict(headers)}, "http", "192.0.2.7"
    )
    log = RequestLog()
    log.add(KeptRequest(request, sent, read_fault(request)), timezone.now().timestamp() - age)
    log.write()
    return RecordedRequest.objects.get(request_id=request.request_id)


def text(answer):
    """Return the text of a page without tags, as a reader sees it."""
    return " ".join(unescape(re.sub("<[^>]+>", " ", answer.content.decode())).split())


def page(request):
    return reverse("requests:show", args=("acme", request.request_id))


def test_rehearsed_requests_are_marked_and_their_failures_need_no_attention(visit, account):
    failed = keep(account, status=0, rehearsed=Rehearsed(("lost <answer>",), True, True, True))
    slowed = keep(account, rehearsed=Rehearsed(("slow",), delay=0.25))
    keep(account)
    victor = visit("victor")
    assert victor.get(LIST).content.decode().count('<tr id="request-') == 0
    listed = text(victor.get(LIST, {"kind": "rehearsed"}))
    assert listed.count("Rehearsed QueryEntities") == 2
    shown = text(victor.get(page(failed)))
    assert "The rehearsal made this request fail: lost <answer> . The write was committed" in shown
    assert "closed the connection" not in shown
    assert "It waited 250 ms first, which are not part of its duration." in text(victor.get(page(slowed)))


def test_a_served_request_that_azure_would_refuse_needs_attention(visit, account):
    row = keep(account, warnings=("int32_literal", "of_a_newer_version"))
    keep(account)
    victor = visit("victor")
    for kind in ("problem", "warned"):
        assert victor.get(LIST, {"kind": kind}).content.decode().count('<tr id="request-') == 1
    assert "200 not on Azure QueryEntities" in text(victor.get(LIST))
    shown = victor.get(page(row))
    assert "200 Azure would refuse this request. In a filter, an integer beyond 32 bits needs" in text(shown)
    assert 'href="https://github.com/Azure/azure-storage-node/issues/316"' in shown.content.decode()


def test_the_list_and_its_filters(visit, account):
    first = keep(account, EntityAlreadyExists(), operation=Operation.INSERT_ENTITY)
    keep(account, headers=[(b"x-ms-client-request-id", b"mine")])
    victor = visit("victor")

    shown = text(victor.get(LIST, {"kind": "all"}))
    assert "409 EntityAlreadyExists InsertEntity people key1 192.0.2.7 an SDK" in shown
    assert "QueryEntities" in shown
    for query, number in (
        ({"kind": "problem"}, 1),
        ({"code": "EntityAlreadyExists", "how": "key", "credential": "key1"}, 1),
        ({"operation": "QueryEntities", "table": "PEOPLE", "client": "192.0.2."}, 1),
        ({"id": "mine"}, 1),
        ({"id": str(first.request_id)}, 1),
        ({}, 1),
        ({"q": "an SDK"}, 2),
        ({"q": "an SDK", "kind": "problem"}, 1),
        ({"q": "mine", "kind": "failed"}, 0),
        ({"q": str(first.request_id), "kind": "slow"}, 1),
        ({"kind": "failed"}, 0),
        (
            {
                "kind": "odd",
                "table": "people",
                "span": "odd",
                "operation": "odd",
                "how": "odd",
                "before": "odd",
            },
            2,
        ),
        ({"before": first.pk}, 0),
    ):
        answer = victor.get(LIST, query)
        assert answer.content.decode().count('<tr id="request-') == number, query
    opened = victor.get(LIST)
    current = [label for label, _address, is_current in opened.context["kinds"] if is_current]
    assert current == ["Needs attention"]
    everything = victor.get(LIST + opened.context["all_address"]).content.decode()
    assert everything.count('<tr id="request-') == 2
    assert "every 2s" in victor.get(LIST, {"live": "1"}).content.decode()
    assert "every 2s" not in victor.get(LIST).content.decode()
    assert victor.get(page(first)).status_code == 200
    for reader, status in (("sam", 404), (None, 302)):
        assert visit(reader).get(LIST).status_code == status
        assert visit(reader).get(page(first)).status_code == status
    assert victor.get(reverse("requests:show", args=("acme", uuid4()))).status_code == 404


def test_a_refused_access_is_explained_with_the_inspector_open(visit, account):
    token = {
        "sv": "2019-02-02",
        "tn": "people",
        "sp": "r",
        "se": "2026-01-01T00:00:00Z",
        "sig": "A" * 43 + "%3D",
    }
    query = "&".join(f"{name}={value}" for name, value in token.items()).encode()
    sent = {"query": query, "credential": None, "authentication": Authentication.SAS}
    refused = keep(account, AuthenticationFailed(), **sent)
    RegisteredSas.objects.create(
        account=account, fingerprint=refused.credential, parameters=[], label="nightly", author="max"
    )

    shown = text(visit("victor").get(page(refused)))

    assert re.search(
        r"The token nightly expired \d+ days before this request, at 2026-01-01T00:00:00Z", shown
    )
    assert "The signature doesn't match any key" in shown
    assert "What this token allows" in shown
    assert "String to sign" in shown
    assert "AAAA" not in shown


def test_the_offending_part_of_a_filter_is_marked(visit, account):
    error = InvalidInput().within(PartKind.OPTION, "$filter").at(14, 17)
    refused = keep(account, error, query=b"%24filter=Name%20eq%20'Ada'%20und%20Age%20gt%205")
    answer = visit("victor").get(page(refused))
    assert "Name eq … <mark>und</mark> Age gt …" in unescape(answer.content.decode())
    assert "The filter has an error at position 15. Unknown operator “ und ”. Did you mean and ?" in text(
        answer
    )
    (repaired,) = answer.context["remedies"]
    assert parse_qs(urlsplit(repaired.address).query) == {"f": ["Name eq '{{value1}}' and Age gt {{value2}}"]}


def test_a_missing_table_leads_to_the_one_with_a_similar_name(visit, account, add_entity):
    near, far = (
        keep(account, TableNotFound(), table=name, searched="Age gt 5") for name in ("peopel", "elsewhere")
    )
    victor = visit("victor")

    answer = victor.get(page(near))
    assert "This account has no table peopel . Did you mean people ?" in text(answer)
    assert [it.address for it in answer.context["remedies"]] == ["/ui/a/acme/t/people/"]
    assert victor.get(page(far)).context["remedies"] == []
    assert "How the query ran" not in text(answer)


def test_a_missing_table_is_explained_by_its_deletion_before_the_request(account):
    tables.create(account, "later")
    tables.delete(account, "later")
    early, late = (keep(account, TableNotFound(), table="later", age=seconds) for seconds in (60, 0))
    assert "change" not in (early.fault or {})
    assert late.fault["change"]["op"] == "table"


def test_a_slow_query_offers_the_index_that_helps(visit, account, add_entity):
    request = keep(account, started=perf_counter() - 2, searched="Age gt 5")
    button = '<button class="button" name="property" value="Age">'

    shown = visit("victor").get(page(request))
    assert "Table scan Reads the whole table." in text(shown)
    assert button not in shown.content.decode()
    max_ = visit("max")
    assert button in max_.get(page(request)).content.decode()
    max_.post(reverse("tables:add_index", args=("acme", "people")), {"property": "Age"})
    assert PropertyIndex.objects.filter(name="Age").exists()
    assert button not in max_.get(page(request)).content.decode()


def test_a_range_of_time_and_its_bars(now, visit, account):
    keep(account, EntityAlreadyExists())
    keep(account)
    victor = visit("victor")

    shown = victor.get(LIST, {"span": "hour", "client": "192.0.2."})
    assert shown.context["numbers"].counts == {"done": 1, "refused": 1, "failed": 0}
    assert not shown.context["numbers"].is_counted
    bar = next(it for it in reversed(shown.context["chart"].bars) if it.bucket.total)
    assert [(it.kind, it.y) for it in bar.parts] == [("done", 24), ("refused", 0)]
    assert bar.title.endswith(": 2")
    narrowed = victor.get(LIST + bar.address).content.decode()
    assert narrowed.count('<tr id="request-') == 2
    assert "Show all times" in narrowed
    earlier = {"since": "2026-01-01T00:00", "until": "2026-01-01T01:00"}
    for odd in ({"since": "odd"}, {"since": "2999-01-01T00:00"}, {"since": "2001-01-01T00:00"}, earlier):
        answer = victor.get(LIST, {**odd, "kind": "all"})
        assert answer.content.decode().count('<tr id="request-') == 2


def test_a_search_finds_an_id_in_a_message_and_opens_what_it_finds(visit, account):
    refused = keep(account, EntityAlreadyExists())
    keep(account)
    message = (
        f"The specified entity already exists.\\nRequestId:{refused.request_id}\\nTime:2026-11-26T10:00:00Z"
    )

    victor = visit("victor")
    result = victor.get(LIST, {"q": message})
    assert result.content.decode().count('<tr id="request-') == 1
    assert result.context["opened"] == refused
    assert "409 EntityAlreadyExists The specified entity already exists." in text(result)
    hits = victor.get(reverse("home:palette"), {"q": message})
    assert page(refused) in hits.content.decode()
    assert page(refused) not in visit("sam").get(reverse("home:palette"), {"q": message}).content.decode()
    missing = victor.get(LIST, {"q": str(uuid4())})
    assert "This request is not in the log" in text(missing)
    assert victor.get(LIST, {"q": "an SDK"}).content.decode().count('<tr id="request-') == 2


def test_exports_contain_the_filtered_requests(visit, account):
    keep(account, EntityAlreadyExists())
    keep(account)
    victor, address = visit("victor"), reverse("requests:export", args=("acme",))

    lines = (
        b"".join(victor.get(address, {"code": "EntityAlreadyExists", "format": "ndjson"}))
        .decode()
        .splitlines()
    )
    assert [json.loads(line)["code"] for line in lines] == ["EntityAlreadyExists"]
    rows = b"".join(victor.get(address, {"format": "csv"})).decode().splitlines()
    assert (len(rows), rows[0].split(",")[:3]) == (3, ["id", "at", "request_id"])


@pytest.mark.parametrize(
    ("fields", "remedy"),
    [("sp=r&se=2026-01-01T00:00:00Z", "Renew the token"), ("si=nobody", "Edit the policy")],
)
def test_a_refused_access_has_a_button_that_mends_it(visit, account, add_entity, fields, remedy):
    query = f"sv=2019-02-02&tn=people&{fields}&sig={'A' * 43}%3D".encode()
    sent = {"query": query, "credential": None, "authentication": Authentication.SAS}
    refused = keep(account, AuthenticationFailed(), **sent)

    labels = [it.label for it in visit("max").get(page(refused)).context["remedies"]]
    assert labels == ["Keys and connection strings", remedy] or labels == [
        remedy,
        "Keys and connection strings",
    ]
    assert visit("victor").get(page(refused)).context["remedies"] == []


def test_a_token_may_name_what_no_table_can_be_called(visit, account):
    query = f"sv=2019-02-02&tn=a/b&sp=r&se=2026-01-01T00:00:00Z&si=nobody&sig={'A' * 43}%3D".encode()
    refused = keep(
        account, AuthenticationFailed(), query=query, credential=None, authentication=Authentication.SAS
    )

    labels = [it.label for it in visit("max").get(page(refused)).context["remedies"]]
    assert labels == ["Keys and connection strings"]


def test_a_request_is_written_as_code_without_secrets(visit, account):
    query = keep(account, query=b"$filter=Age%20gt%205&$top=7", searched="Age gt 5")
    entity = keep(account, EntityAlreadyExists(), operation=Operation.INSERT_ENTITY)
    victor = visit("victor")

    code = {it.title: it.code for it in victor.get(page(query)).context["snippets"]}
    assert list(code) == ["curl", "Python", "JavaScript", "C#", "Go"]
    assert "Age gt" in code["Python"]
    assert "VALUE" in code["curl"]
    code = {it.title: it.code for it in victor.get(page(entity)).context["snippets"]}
    assert "create_entity" in code["Python"]
    assert "$TABLES_SAS" in code["curl"]
