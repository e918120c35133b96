"""The request log over the API: lists, one request, numbers, and requests as they are made."""

import json
from datetime import UTC, datetime

import pytest

from storage.accounts import accounts
from storage.domain.errors import EntityAlreadyExists
from storage.models import RecordedRequest
from storage.runtime.stream_access import AccessChanges
from storage.runtime.threads import in_thread
from tests.requests.test_operations import write
from tests.rest.test_errors import check
from tests.rest.test_streams import accept, following

pytestmark = pytest.mark.django_db(transaction=True)


def told(answer):
    return [item["id"] for item in answer.json()["items"]]


def test_members_see_the_requests_of_their_account(call, account):
    write(account, 3)
    write(accounts.add("other"), 1)
    first, second, third = RecordedRequest.objects.filter(account=account).order_by("pk")
    victor = call("victor", "read")

    assert told(victor("GET", "accounts/acme/requests")) == [third.pk, second.pk, first.pk]
    page = victor("GET", "accounts/acme/requests?limit=2&kind=problem&code=EntityAlreadyExists").json()
    assert told(victor("GET", page["next"].partition("testserver")[2])) == [first.pk]
    assert told(victor("GET", f"accounts/acme/requests?id={second.request_id}")) == [second.pk]
    assert told(victor("GET", "accounts/acme/requests?kind=failed")) == []
    result = victor("GET", f"accounts/acme/requests/{second.request_id}").json()
    assert (result["status"], result["code"], result["credential_name"]) == (
        409,
        "EntityAlreadyExists",
        "key1",
    )
    assert (result["explanation"], result["findings"], result["client_request_id"]) == ([], [], "mine")
    numbers = victor("GET", "accounts/acme/request-statistics").json()
    assert (numbers["kept"], numbers["credentials"][0]["requests"]) == (3, 3)

    check(call("sam", "read")("GET", "accounts/acme/requests"), 404)
    check(victor("GET", "accounts/other/requests"), 404)
    check(victor("GET", f"accounts/acme/requests/{account.pk:032}"), 404)
    for query in (
        "kind=odd",
        "min_seconds=1_0",
        "min_seconds=%D9%A1",
        "since=%D9%A2%D9%A0%D9%A2%D9%A6-01-01",
    ):
        check(victor("GET", f"accounts/acme/requests?{query}"), 400)
    for period in ("since=0001-01-01T00:00:00Z", "until=0001-01-01T00:00:00Z", "until=9999-12-31T23:59:59Z"):
        for path in ("request-statistics", "requests", "activity"):
            check(victor("GET", f"accounts/acme/{path}?{period}"), 400)


async def test_follows_requests(issue, cast, account):
    secret, _ = await in_thread(issue, "victor", "read")
    await in_thread(write, account, 2)
    first, second = await in_thread(lambda: list(RecordedRequest.objects.order_by("pk")))
    path = "/ui/api/v1/accounts/acme/requests"
    headers = {"Authorization": f"Bearer {secret}", "Last-Event-ID": str(first.pk)}

    async with following(*accept((path, headers)), AccessChanges()) as reader:
        text = b"".join(reader.texts)
        assert text.count(b"id: ") == 1
        assert json.loads(text.partition(b"data: ")[2])["request_id"] == str(second.request_id)
        await in_thread(write, account, 1)
        while b"".join(reader.texts).count(b"id: ") < 2:
            await reader.next()
    events = [it for it in reader.texts if it.startswith(b"id: ")]
    assert EntityAlreadyExists.__name__.encode() in events[-1]
    assert datetime.now(UTC) > second.at
