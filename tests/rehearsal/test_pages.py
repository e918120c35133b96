"""Pages of rehearsals: who starts and stops them, the report, the band, and sets of rules."""

import json
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from django.utils.html import strip_tags

from console.activity.sentences import plain_sentence
from storage.accounts import account_settings
from storage.core.rehearsals import Exchange
from storage.models import Activity, Rehearsal, RehearsalClient, RehearsalSet, RehearsedRequest
from storage.rehearsal import rehearsals
from storage.rehearsal.records import dump_exchange
from tests.requests.test_pages import keep

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/ui/a/acme/rehearsals/"
SDK = "azsdk-python-data-tables/12.7.0"
CHOICE = {"set": "short-pages", "minutes": "10", "seed": "7", "scale": "1"}


def text(answer):
    return " ".join(strip_tags(answer.content.decode()).split())


@pytest.fixture
def allowed(account):
    account_settings.change(account, may_rehearse=True)
    return account


def record(rehearsal, *exchanges, agent=SDK):
    """Add the requests of a client, one second apart, as the Table service does; return their ids."""
    client = RehearsalClient.objects.create(
        rehearsal=rehearsal, agent=agent, credential="key:key1", requests=len(exchanges), matches=[]
    )
    began = rehearsal.started_at.timestamp()
    rows = [
        RehearsedRequest(
            rehearsal=rehearsal,
            client=client,
            number=number,
            at=rehearsal.started_at + timedelta(seconds=number),
            request_id=uuid4(),
            exchange=json.loads(dump_exchange(Exchange(began + number, began + number + 0.01, **members))),
        )
        for number, members in enumerate(exchanges, start=1)
    ]
    RehearsedRequest.objects.bulk_create(rows)
    return [row.request_id for row in rows]


QUERY = {"operation": "QueryEntities", "method": "GET", "table": "people", "query": "q", "status": 200}
CUT = {**QUERY, "entities": 0, "next_token": "t", "rules": ["anywhere"], "faulted": True}
GET = {
    "operation": "QueryEntity",
    "method": "GET",
    "table": "people",
    "partition": "p",
    "row": "r",
    "status": 200,
}


def test_only_owners_allow_rehearsals(visit, account):
    assert "An owner of the account can allow them." in text(visit("max").get(PAGE))
    assert b"Start rehearsal" not in visit("max").get(PAGE).content
    visit("max").post(f"{PAGE}start/", CHOICE)
    assert not Rehearsal.objects.exists()

    alice = visit("alice")
    assert "Allow rehearsals" in text(alice.get(PAGE))
    alice.post(f"{PAGE}allow/", {"may_rehearse": "on"})
    assert "Start rehearsal" in text(alice.get(PAGE))
    account_settings.change(account, protected=True)
    assert "Protected accounts are not rehearsed" in text(alice.get(PAGE))
    assert "Start rehearsal" not in text(alice.get(PAGE))


def test_start_watch_and_stop(visit, allowed):
    max_, victor = visit("max"), visit("victor")
    assert "No rehearsals yet" in text(victor.get(PAGE))
    assert "maintainers and owners can start them" in text(victor.get(PAGE))
    refused = max_.post(f"{PAGE}start/", {**CHOICE, "seed": "-1"})
    assert refused.status_code == 422
    assert b'value="short-pages" checked' in b" ".join(refused.content.split())
    started = max_.post(f"{PAGE}start/", {**CHOICE, "table": "people"})
    rehearsal = Rehearsal.objects.get()
    address = f"{PAGE}{rehearsal.pk}/"
    assert (started.status_code, started["Location"]) == (302, address)
    assert (rehearsal.table_name, rehearsal.seed) == ("people", 7)
    assert rehearsal.ends_at - rehearsal.started_at == timedelta(minutes=10)

    band = "Failures are rehearsed in the table people: short-pages ends in"
    assert band in text(victor.get("/ui/a/acme/"))
    assert b"/stop/" not in victor.get("/ui/a/acme/").content
    assert f'action="{address}stop/"' in max_.get("/ui/a/acme/").content.decode()
    waiting = victor.get(address)
    assert "Waiting for the first request" in text(waiting)
    assert b'hx-trigger="every 2s"' in waiting.content
    assert band not in text(waiting)

    max_.post(f"{address}stop/")
    ended = max_.get(address)
    assert "Stopped the rehearsal short-pages." in text(ended)
    assert "No client sent a request" in text(ended)
    log = max_.get("/ui/a/acme/activity/").content.decode()
    assert f'started the rehearsal <a href="{address}">short-pages</a>' in log
    assert b"hx-trigger" not in ended.content.partition(b"<main")[2].partition(b"</main")[0]
    assert b"?set=short-pages&amp;table=people&amp;seed=7&amp;scale=1&amp;minutes=10" in ended.content
    again = max_.get(f"{PAGE}?set=short-pages&table=people&seed=7&scale=1&minutes=10").content
    assert b'value="people"' in again
    assert b'value="short-pages" checked' in b" ".join(again.split())
    assert band not in text(victor.get("/ui/a/acme/"))


def test_a_report_names_findings_and_shows_their_requests(visit, allowed):
    former = rehearsals.start(allowed, "short-pages", seed=7)
    rehearsals.stop(former)
    rehearsal = rehearsals.start(allowed, "short-pages", seed=7)
    ids = record(rehearsal, CUT, GET, {**QUERY, "entities": 3, "query": "other"})
    record(rehearsal, GET, agent="quiet")
    rehearsals.stop(rehearsal)
    victor, address = visit("victor"), f"{PAGE}{rehearsal.pk}/"

    page = text(victor.get(address))
    assert "Clients did 1 thing that fails on Azure" in page
    assert "key1 · 3 requests, 1 affected anywhere 1 fault Ignored a continuation token new" in page
    assert "Follow continuation tokens until an answer has none." in page
    assert page.index(SDK) < page.index("quiet")  # those with faults come first
    assert "1 new, 0 gone, 0 as before" in page

    shown = text(victor.get(f"{address}requests/"))
    assert "0 entities · continues anywhere" in shown
    assert "p / r 200" in shown
    assert "p / r" not in text(victor.get(f"{address}requests/?kind=affected"))
    assert "p / r" in text(victor.get(f"{address}requests/?ids={ids[1]},nonsense"))
    turkish = text(victor.get(address, headers={"Accept-Language": "tr"}))
    assert "Devam belirtecini yok saydı" in turkish


def test_a_rehearsal_without_faults_was_held(visit, allowed):
    rehearsal = rehearsals.start(allowed, "bad-day", seed=7)
    record(rehearsal, GET)
    address = f"{PAGE}{rehearsal.pk}/"
    assert "No fault so far" in text(visit("victor").get(address))
    rehearsals.stop(rehearsal)
    assert "Held under bad-day (seed 7)" in text(visit("victor").get(address))
    # rules of a newer version, which this one cannot read
    RehearsalSet.objects.create(account=allowed, name="newer", rules=[{"effect": "meltdown"}])
    assert "held 1 0" in text(visit("victor").get(PAGE))
    assert visit("victor").get(f"{PAGE}sets/newer/").status_code == 404


def test_own_sets_are_added_changed_and_restored(visit, allowed):
    client = visit("max")
    proposed = client.get(f"{PAGE}new-set/?from=flaky").content.decode()
    assert 'value="my-flaky"' in proposed and "internal-error" in proposed
    for rules, message in (
        ("[", "This is not JSON: there is an error in line 1, column 2."),
        ("[" * 100_000, "This is not JSON"),
        ("[]", "Rules are a list of 1 to 32 objects."),
        ('[{"effect": "throttle", "when": {"share": 2}}]', "Rule 1: “share” must be a number from 0 to 1."),
    ):
        refused = client.post(f"{PAGE}new-set/", {"name": "mine", "rules": rules})
        assert (refused.status_code, message in text(refused)) == (422, True), text(refused)
    ready = client.post(f"{PAGE}new-set/", {"name": "flaky", "rules": '[{"effect": "error"}]'})
    assert "“flaky” is the name of a ready set." in text(ready)
    rules = '[{"effect": "throttle", "when": {"share": 0.5}}]'
    client.post(f"{PAGE}new-set/", {"name": "mine", "description": "Half of all.", "rules": rules})
    assert "mine Half of all." in text(client.get(PAGE))
    assert "There is already a set" in text(client.post(f"{PAGE}new-set/", {"name": "mine", "rules": rules}))

    client.post(f"{PAGE}sets/mine/", {"description": "A few.", "rules": rules.replace("0.5", "0.1")})
    assert "share: 0.1" in text(visit("victor").get(f"{PAGE}sets/mine/"))
    assert visit("victor").post(f"{PAGE}sets/mine/", {"rules": "[]"}).status_code == 200
    client.post(f"{PAGE}sets/mine/delete/")
    assert not RehearsalSet.objects.exists()
    deleted = Activity.objects.latest("pk")
    assert plain_sentence(deleted) == "max deleted the rules mine for rehearsals of acme"
    client.post(f"/ui/undo/{deleted.pk}/")
    assert rehearsals.find_set(allowed, "mine").text == "A few."


def test_a_logged_request_leads_to_its_rehearsal(visit, allowed):
    rehearsal = rehearsals.start(allowed, "throttled", seed=7)
    request = keep(allowed)
    address = f"/ui/a/acme/requests/{request.request_id}/"
    assert f"{PAGE}{rehearsal.pk}/" not in visit("victor").get(address).content.decode().partition("<h1")[2]
    request.fault = {"rehearsed": {"rules": ["throttle"], "applied": None, "failure": True, "delay": 0}}
    request.at = timezone.now()
    request.save()
    shown = visit("victor").get(address).content.decode().partition("<h1")[2]
    assert f'href="{PAGE}{rehearsal.pk}/"' in shown
