"""The record of activity as pages and as files."""

import csv
import io
import json
from datetime import timedelta
from uuid import UUID

import pytest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from console.activity import recorded
from console.activity.sentences import plain_sentence
from storage.access import policies
from storage.accounts import account_settings, accounts, service_properties
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.domain.access.actor import COMMAND, SERVER, Actor, ActorKind
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.access.roles import Role
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.service_properties.properties import (
    DEFAULT_PROPERTIES,
    CorsRule,
    Metrics,
    ServiceProperties,
)
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import edits
from storage.models import Activity, RegisteredSas
from storage.people import members
from storage.people.subject import PeopleVerb
from storage.tables import tables
from storage.tables.tables import DELETED_TABLE_RETENTION
from storage.undo.undo import undo

PAGE = "/ui/a/acme/activity/"
SERVER_PAGE = "/ui/activity/"
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}
EVE = Actor(ActorKind.USER, "eve", "192.0.2.7", "Firefox", "7f3a19c0-0000-4000-8000-000000000007")


@pytest.fixture
def table(add_entity, account):
    return tables.get(account, "people")


def apply(table, *changes, by=EVE):
    return edits.apply(table, changes, by=by).activity


def entity(key="ada", **properties):
    values = {n: v if isinstance(v, EdmValue) else EdmValue(Edm.STRING, v) for n, v in properties.items()}
    return Entity(EntityKey("se", key), values)


@pytest.fixture
def read(visit):
    def read(path=PAGE, who="victor", **parameters):
        answer = visit(who).get(path, parameters)
        assert answer.status_code == 200
        return answer

    return read


def said(answer):
    return [
        " ".join(strip_tags(answer.content.decode().split(f'id="activity-{it.done.pk}"')[1].split("<details")[0])
                 .split(">", 1)[-1].split())
        for day in answer.context["days"] for run in day.rows for it in run.entries
    ]  # fmt: skip


def details(read, done, who="victor"):
    return read(reverse("activity:entry", args=["acme", done.pk]), who).content.decode()


def test_activities_are_grouped_by_day_and_undo_is_hidden_without_permission(now, read, account, table):
    apply(table, Insert(entity()), Insert(entity("bob")))
    apply(table, Delete(EntityKey("se", "ada"), ANY))
    answer = read()
    assert said(answer) == [
        "eve deleted se / ada from people",
        "eve inserted 2 entities into people",
        "The server created the table people",
        "The server created the account acme",
    ]
    assert b"Today" in answer.content
    assert b">just now</time>" in answer.content
    assert b"data-undo" not in answer.content
    assert b"/ui/undo/" not in answer.content
    # the first insert was changed since, so that it cannot be undone
    assert read(who="eve").content.count(b"/ui/undo/") == 1
    assert read(who="max").content.count(b"/ui/undo/") == 2
    # the deletion of the table only
    tables.delete(account, "people")
    assert read(who="max").content.count(b"/ui/undo/") == 1


def test_the_log_names_the_actor(account):
    for actor, expected in [
        (COMMAND, " created the account acme (command line)"),
        (SERVER, "The server created the account acme"),
        (Actor(ActorKind.KEY, "key1"), "A client using key1 created"),
        (Actor(ActorKind.SAS, "0123456789abcdef"), "A client using SAS token 01234567 created"),
        (
            Actor(ActorKind.BEARER, "<b>subject</b>"),
            "A client using a bearer token of <b>subject</b> created",
        ),
    ]:
        done = activity.record(AccountVerb.CREATE, actor, account=account)
        assert expected in plain_sentence(done), (actor, expected)


def test_a_sas_token_is_named_by_its_label_and_leads_to_it(visit, account):
    RegisteredSas.objects.create(
        account=account, fingerprint="0123456789abcdef", kind="account", parameters=[], label="CI", author=""
    )
    tables.create(account, "made", by=Actor(ActorKind.SAS, "0123456789abcdef"))
    link = '<a href="/ui/a/acme/sas/0123456789abcdef/"><bdi>CI</bdi></a>'
    assert link in visit("max").get("/ui/a/acme/activity/").content.decode()
    page = visit("victor").get("/ui/a/acme/activity/").content.decode()
    assert "<bdi>CI</bdi>" in page and "0123456789abcdef" not in page


def test_hostile_names_are_text(read, account, table):
    hostile = "<img src=x onerror=alert(1)> %(who)s {{ 7|add:7 }}"
    actor = Actor(ActorKind.BEARER, hostile, hostile[:64], hostile)
    done = edits.apply(
        table, [Insert(Entity(EntityKey(hostile.replace("/", ""), hostile), {"A": EdmValue(Edm.STRING, hostile)}))],
        by=actor,
    ).activity  # fmt: skip
    for page in (read().content.decode(), details(read, done)):
        assert "<img" not in page
        assert "&lt;img src=x onerror=alert(1)&gt; %(who)s {{ 7|add:7 }}" in page


def test_filters(now, visit, account, table):
    apply(table, Insert(entity("a%b")))
    account_settings.change(account, label="New", by=COMMAND)
    today, client = timezone.localdate(now), visit("victor")
    for number, asked in [
        (1, {"what": "tables"}),
        (1, {"what": "entities"}),
        (1, {"key": "%"}),
        (1, {"who": "EV"}),
        (2, {"what": "settings"}),
        (2, {"table": "PEOPLE"}),
        (4, {"since": today, "until": today}),
        (0, {"since": today + timedelta(days=1)}),
        (0, {"until": today - timedelta(days=1)}),
        (0, {"what": "people"}),
    ]:
        assert len(said(client.get(PAGE, asked))) == number, asked
    assert b"No matching activity" in client.get(PAGE, {"what": "people"}).content
    assert client.get(PAGE, headers=HTMX).content.lstrip().startswith(b'<div id="timeline"')


def test_an_address_that_makes_no_sense_is_the_whole(read, account):
    for wrong in [
        {"what": "x"},
        {"since": "yesterday"},
        {"until": "2026-99-99"},
        {"before": "9" * 40},
        {"key": "\0"},
    ]:
        assert said(read(**wrong)) == said(read()), wrong


def test_pages_lead_forth_and_back(visit, account):
    for number in range(102):
        account_settings.change(account, label=str(number))
    for who, page in [("victor", PAGE), ("ada", SERVER_PAGE)]:
        client = visit(who)
        first = client.get(page, {"what": "settings"})
        second = client.get(page + first.context["older"].removeprefix(page))
        assert second.context["days"][0].rows[0].entries[0].done.after == {"label": "51"}, (who, page)
        back = client.get(page + second.context["newer"].removeprefix(page))
        assert back.content.count(b'class="event"') == 50, (who, page)
        assert not back.context["newer"], (who, page)
        last = client.get(page + second.context["older"].removeprefix(page))
        assert last.content.count(b'class="event"') == 3, (who, page)
        assert not last.context["older"], (who, page)
        assert "what=settings" in last.context["newer"], (who, page)


def test_an_undone_activity_links_to_its_undo(read, account, table):
    done = apply(table, Insert(entity()))
    undone = undo(done, EVE)
    page = read(who="eve").content.decode()
    assert reverse("activity:entry", args=["acme", undone.pk]) in page
    assert f"/ui/undo/{done.pk}/" not in page
    assert f"/ui/undo/{undone.pk}/" in page
    assert "This change was undone" in details(read, done)
    assert "This undid an earlier change" in details(read, undone)


# changes


def test_shows_an_entity_property_by_property(read, table):
    guid, big = EdmValue(Edm.GUID, str(UUID(int=0))), EdmValue(Edm.INT64, 2**63 - 1)
    before = entity(Name="Ada", Long="x" * 500, Same="s", Zero=EdmValue(Edm.DOUBLE, 0.0), Gone=guid)
    after = entity(Name="Ada", Long="x" * 400 + "y" * 100, Same="s", Zero=EdmValue(Edm.DOUBLE, -0.0), Big=big)
    apply(table, Insert(before))
    done = apply(table, Update(after, ANY, merge=False))
    [changed], _ = recorded.of_activity(done)
    assert [(it.name, it.kind) for it in changed.differences] == [
        ("Long", "changed"), ("Zero", "changed"), ("Gone", "removed"), ("Big", "added"),
    ]  # fmt: skip
    assert changed.same == 2
    page = details(read, done)
    assert "9223372036854775807" in page
    assert "…" in page and "yyyy" in page
    assert "192.0.2.7" in page and "Firefox" in page and "7f3a19c0-0000-4000-8000-000000000007" in page
    assert "2 other properties are unchanged." in page


def test_shows_the_json_as_it_is_stored(read, table):
    done = apply(table, Insert(entity(Text="\0é\ud800", Big=EdmValue(Edm.INT64, 5))))
    [changed], _ = recorded.of_activity(done)
    assert changed.before == ""
    assert '"PartitionKey":"se","RowKey":"ada"' in changed.after
    assert '\n  "Big":"5"' in changed.after
    assert '\n  "Big@odata.type":"Edm.Int64"' in changed.after
    json.loads(changed.after)


def test_shows_a_part_of_many(read, table):
    for partition in range(2):
        apply(table, *(Insert(Entity(EntityKey(f"p{partition}", str(n)), {})) for n in range(60)))
    page = details(read, Activity.objects.order_by("pk").last())
    assert page.count('class="entity-change"') == 50
    assert "And 10 more entities" in page


@pytest.mark.parametrize(("properties", "size", "shown"), [(200, 10, 5), (10, 30_000, 3), (100, 5_100, 1)])
def test_shows_fewer_of_large_entities(read, table, properties, size, shown):
    values = {f"P{number}": "x" * size for number in range(properties)}
    apply(table, *(Insert(entity(str(number), **values)) for number in range(10)))
    page = details(read, Activity.objects.order_by("pk").last())
    assert page.count('class="entity-change"') == shown
    assert f"And {10 - shown} more entities" in page


@pytest.mark.django_db(transaction=True)
def test_shows_settings(read, account, table, cast):
    shown = [
        (
            account_settings.change(account, read_only=True, networks=["10.0.0.0/8"]),
            ["Read-only", "yes", "10.0.0.0/8"],
        )
    ]
    account_settings.change(account, read_only=False)
    one = [SignedIdentifier("readers", AccessPolicy(None, "2030-01-01T00:00:00.0000000Z", "r"))]
    properties = ServiceProperties(
        DEFAULT_PROPERTIES.logging,
        DEFAULT_PROPERTIES.hour_metrics,
        Metrics(enabled=True),
        (CorsRule(("*",), ("GET",), (), (), 5),),
    )
    shown += [
        (policies.replace_by_name(account, "people", one), ["readers", "2030-01-01"]),
        (service_properties.replace(account, lambda _: properties), ["minute_metrics.enabled", "cors"]),
        (tables.change(table, description="Of people", tags=["a", "b"]), ["Of people", "a, b"]),
        (members.set_role(account, cast["eve"], Role.OWNER, by=EVE), ["eve", "Role", "Owner", "Editor"]),
        (tables.delete(account, "people", keep=DELETED_TABLE_RETENTION), ["7"]),
    ]
    for done, texts in shown:
        page = details(read, done)
        assert [text for text in texts if text not in page] == []


# visibility by role


def test_activities_of_other_accounts_are_hidden(read, visit, account):
    other = accounts.add("other")
    done = Activity.objects.get(account=other.pk)
    assert said(read()) == ["The server created the account acme"]
    assert visit("victor").get(reverse("activity:entry", args=["acme", done.pk])).status_code == 404
    assert visit("ada").get(reverse("activity:server_entry", args=[done.pk])).status_code == 200


def test_the_whole_server_is_for_admins(visit, account):
    accounts.add("other")
    activity.record(PeopleVerb.SIGN_IN_FAILED, Actor(ActorKind.USER, "", "192.0.2.1"))
    done = activity.record(PeopleVerb.USER_CHANGE, EVE, detail={"user": "eve", "added": "passkey"})
    assert plain_sentence(done) == "eve changed their sign-in settings"
    ada = visit("ada")
    assert said(ada.get(SERVER_PAGE))[1:] == [
        "Someone failed to sign in",
        "The server created the account other other",
        "The server created the account acme acme",
    ]
    assert said(ada.get(SERVER_PAGE, {"account": "OTHER"})) == ["The server created the account other other"]
    assert "acme" in exported(ada.get(SERVER_PAGE + "export/", {"format": "csv"}))
    alice = visit("alice")
    assert alice.get(SERVER_PAGE + "export/", {"format": "csv"}).status_code == 403
    assert b'href="/ui/activity/"' not in alice.get("/ui/").content
    assert b'href="/ui/activity/"' in ada.get("/ui/").content


# files


def exported(answer):
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    return b"".join(answer.streaming_content).decode()


def test_exports_csv(visit, account, table):
    apply(table, Insert(entity()), by=Actor(ActorKind.USER, "eve", "::1", '=HYPERLINK("x")'))
    text = exported(visit("victor").get(PAGE + "export/", {"format": "csv", "what": "entities"}))
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["verb"], row["actor"], row["entities"], row["table"]) == (
        "entity.insert",
        "eve",
        "1",
        "people",
    )
    assert row["agent"] == '\'=HYPERLINK("x")'


def test_exports_ndjson_with_entities(visit, account, table):
    apply(table, Insert(entity(Text="\ud800", Big=EdmValue(Edm.INT64, 5))))
    answer = visit("victor").get(PAGE + "export/", {"format": "ndjson"})
    rows = [json.loads(line) for line in exported(answer).splitlines()]
    assert [row["verb"] for row in rows] == ["entity.insert", "table.create", "account.create"]
    assert rows[0]["changes"] == [
        {
            "PartitionKey": "se",
            "RowKey": "ada",
            "before": None,
            "after": {"Text": "\ud800", "Big": "5", "Big@odata.type": "Edm.Int64"},
        }
    ]
