"""The History page of an entity: the changes of each version, and restoring an earlier one."""

import re
from html import unescape
from urllib.parse import urlencode

import pytest

from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.changes import Delete, Insert, Update
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.values.edm import Edm, EdmValue
from storage.domain.values.etag import ANY
from storage.entities import entities
from storage.history import versions
from storage.models import Account, RegisteredSas, Table
from storage.relations import history
from storage.sql import entities as sql
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables

KEY = EntityKey("store-1", "ord 8")
FINGERPRINT = "43ba39e2" * 8


@pytest.fixture
def orders(cast):
    return tables.create(Account.objects.get(), "orders")


@pytest.fixture
def write(orders):
    """Return `write(Total=5)`, which replaces the entity as a client does; `write()` deletes it."""

    def write(**properties):
        by = Actor(ActorKind.SAS, FINGERPRINT, "10.0.9.2", "curl", "7f3a19c0-0000-4000-8000-000000000001")
        entity = Entity(KEY, {name: as_edm(value) for name, value in properties.items()})
        exists = entities.get(orders, KEY) is not None
        change = (
            Delete(KEY, ANY) if not properties else Update(entity, ANY, False) if exists else Insert(entity)
        )
        run(sql.change(relation_name(orders.pk), change, history.recorder(orders.account, by)))
        return versions.page(orders, KEY, top=1).entries[0].sequence

    return write


@pytest.fixture
def label():
    """Register the SAS token of the client under a label."""
    RegisteredSas.objects.create(
        account=Account.objects.get(),
        fingerprint=FINGERPRINT,
        kind="table",
        parameters=[],
        label="nightly import",
        author="",
    )


def as_edm(value):
    return EdmValue(Edm.STRING if isinstance(value, str) else Edm.INT32, value)


def address(**more):
    query = urlencode({"pk": KEY.partition_key, "rk": KEY.row_key, **more})
    return f"/ui/a/acme/t/orders/entity/history/?{query}"


def text(response):
    """Return the words of a page."""
    page = re.sub(r"<(script|style|svg)\b.*?</\1>", "", response.content.decode(), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def properties():
    stored = entities.get(Table.objects.get(name="orders"), KEY)
    return stored and {name: it.value for name, it in read_stored(stored).properties.items()}


def test_a_sas_token_is_named_by_its_label_and_leads_to_it(visit, write, label):
    write(Total=5)
    page = visit("max").get(address()).content.decode()
    assert f'<a href="/ui/a/acme/sas/{FINGERPRINT}/"><bdi>nightly import</bdi></a>' in page
    assert FINGERPRINT not in text(visit("victor").get(address()))
    assert FINGERPRINT not in visit("victor").get(address()).content.decode()  # viewers may not see tokens

    RegisteredSas.objects.all().delete()
    unknown = visit("max").get(address())
    assert "43ba39e2 SAS token" in text(unknown) and FINGERPRINT not in text(unknown)


def test_the_history_in_a_drawer_is_a_part_of_it(visit, write, label):
    write(Total=5, Status="paid")
    answer = visit("eve").get(address(), headers={"HX-Request": "true", "HX-Request-Type": "partial"})
    part = answer.content.decode()
    assert answer.status_code == 200 and "HX-Redirect" not in answer
    assert "<html" not in part and "drawer-head" in part and "Inserted 2 properties" in text(answer)
    assert "drawer-head" not in visit("eve").get(address()).content.decode()


def test_versions_and_what_the_newest_changed(visit, write, label):
    write(Total=5, Status="paid", Note="a")
    broken = write(Total=0, Status="lost", Note="a")
    write(Total=0, Status="found", Note="a")

    newest = visit("victor").get(address())
    assert "Changed Status" in text(newest) and "Inserted 3 properties" in text(newest)
    assert "Changed Total, Status" in text(newest)
    assert "nightly import SAS token" in text(newest) and "10.0.9.2" in text(newest)
    assert "Show 2 unchanged properties" in text(newest)
    assert 'name="etag"' not in newest.content.decode()  # a viewer restores nothing
    older = text(visit("eve").get(address(v=broken)))
    assert "Total Int32 5 0 unchanged since" in older
    assert "Status String paid lost found changed again" in older
    assert "Not selected: changed again after this version" in older
    only = text(visit("victor").get(address(property="Total")))
    assert "Changed Status" not in only and "Changed Total, Status" in only
    assert visit("victor").get(address(v=10**15)).status_code == 404


def restore(visit, version, etag, *names):
    return visit("eve").post(address(), {"v": version, "etag": etag, "name": names}, follow=True)


def etag():
    stored = entities.get(Table.objects.get(name="orders"), KEY)
    return "" if stored is None else str(stored.timestamp)


def test_a_restore_is_conditional_and_can_be_undone(visit, write):
    write(Total=5, Status="paid", Extra="x")
    broken = write(Total=0, Status="lost", New="y")
    seen = etag()
    write(Total=0, Status="found", New="y")

    refused = restore(visit, broken, seen, "Total")
    assert "was changed since you opened the page" in text(refused)
    assert properties()["Total"] == 0
    assert "Select the properties to restore." in text(restore(visit, broken, etag()))

    done = restore(visit, broken, etag(), "Total", "Extra", "New")
    assert "Restored 3 properties" in text(done)
    assert properties() == {"Total": 5, "Status": "found", "Extra": "x"}
    newest = versions.page(Table.objects.get(name="orders"), KEY).entries[0]
    assert (newest.actor.kind, newest.actor.name) == (ActorKind.USER, "eve")
    [undo] = re.findall(r'action="(/ui/undo/\d+/)"', done.content.decode())
    visit("eve").post(undo)
    assert properties() == {"Total": 0, "Status": "found", "New": "y"}


def test_a_deleted_entity_is_restored(visit, write):
    write(Total=5)
    deleted = write()
    missing = visit("eve").get(address().replace("history/", ""))
    assert missing.status_code == 404 and "History of this key" in text(missing)
    page = visit("eve").get(address())
    assert "This entity was deleted" in text(page) and ">JSON<" not in page.content.decode()
    assert "Restored the entity" in text(restore(visit, deleted, ""))
    assert properties() == {"Total": 5}
    assert "was changed since" in text(restore(visit, deleted, ""))


def test_without_changes_or_history(visit, orders):
    run(sql.change(relation_name(orders.pk), Insert(Entity(KEY, {}))))
    assert "Not changed since history began" in text(visit("victor").get(address()))
    history.end(orders.account)
    assert "This account keeps no history" in text(visit("alice").get(address()))
