"""Writers of many entities: refusals, numbers of statements, and splitting of writes that take too long."""

import pytest

from storage.accounts import accounts
from storage.copies.sides import AccountSide, Item
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.entities.entity import Entity, EntityKey, read_stored
from storage.domain.entities.restoring import Skip, Skipped
from storage.domain.errors import OperationTimedOut
from storage.domain.filters.query import EntityQuery
from storage.domain.values.edm import Edm, EdmValue
from storage.entities import entities, writing
from storage.entities.writing import WriteMode, write_images, write_many
from storage.sql.failures import Canceled
from storage.sql.relations import relation_of
from storage.sql.restoring import Image
from storage.tables import tables

pytestmark = pytest.mark.django_db

ADA = Actor(ActorKind.USER, "ada")


@pytest.fixture
def table():
    return tables.create(accounts.add("acme"), "people")


def entity(row_key, number=0):
    return Entity(EntityKey("p", row_key), {"N": EdmValue(Edm.INT64, number)})


def content(table):
    result = map(read_stored, entities.page(table, EntityQuery()).entities)
    return {it.key.row_key: it.properties["N"].value for it in result}


@pytest.mark.parametrize(("mode", "skipped"), [(WriteMode.INSERT, 0), (WriteMode.SKIP, 3)])
def test_entities_that_all_exist_take_one_statement(table, monkeypatch, mode, skipped):
    several = [entity(str(number)) for number in range(3)]
    write_many(table, several, WriteMode.INSERT, by=ADA)

    def change(*arguments):
        raise AssertionError("a statement of one entity")

    monkeypatch.setattr(writing.statements, "change", change)
    result = write_many(table, several, mode, by=ADA)
    assert (result.inserted, result.skipped, len(result.refused)) == (0, skipped, 3 - skipped)


@pytest.mark.parametrize("mode", list(WriteMode))
def test_one_statement_each_does_the_same(table, monkeypatch, mode):
    """Distributed tables have no statement for several partitions."""
    write_many(table, [entity("2", 1)], WriteMode.INSERT, by=ADA)
    monkeypatch.setattr(writing.statements, "change_all", lambda *arguments: None)
    result = write_many(table, [entity("1", 2), entity("2", 2)], mode, by=ADA)
    expected = {WriteMode.INSERT: (1, 0, 0, 1), WriteMode.SKIP: (1, 0, 1, 0)}.get(mode, (1, 1, 0, 0))
    assert (result.inserted, result.changed, result.skipped, len(result.refused)) == expected
    assert content(table) == {"1": 2, "2": 1 if mode.is_insertion else 2}


def slow(monkeypatch, most):
    """Let a statement of more than so many images take too long; returns how many each one has."""
    apply, sizes = writing.restoring.apply, []

    def apply_some(relation, images, recorder, *, has_long):
        sizes.append(len(images))
        if len(images) > most:
            raise Canceled
        return apply(relation, images, recorder, has_long=has_long)

    monkeypatch.setattr(writing.restoring, "apply", apply_some)
    return sizes


def test_slow_images_are_written_in_halves(table, monkeypatch):
    write_many(table, [entity("3", 7)], WriteMode.INSERT, by=ADA)
    [stored] = entities.page(table, EntityQuery()).entities
    images = [Image("p", str(number), None, stored.content.decode()) for number in range(5)]
    sizes, noted = slow(monkeypatch, 2), []

    chunk = write_images(
        relation_of(table),
        images,
        None,
        has_long=False,
        note=lambda done, part: noted.append((done, len(part))),
    )
    assert sizes == [5, 2, 3, 1, 2]
    assert (chunk.inserted, chunk.skipped) == (4, 1)
    assert chunk.examples == [Skipped(EntityKey("p", "3"), Skip.EXISTS)]
    assert [(done.inserted, number) for done, number in noted] == [(2, 2), (1, 1), (1, 2)]
    assert content(table) == dict.fromkeys(map(str, range(5)), 7)


def test_one_image_that_takes_too_long(table, monkeypatch):
    slow(monkeypatch, 0)
    with pytest.raises(OperationTimedOut):
        write_images(relation_of(table), [Image("p", "1", None, "")], None, has_long=False)


def test_a_copy_replaces_concurrent_inserts(table):
    write_many(table, [entity("2", 1)], WriteMode.INSERT, by=ADA)
    items = [Item(it.key, it.fragments.content.encode(), it) for it in (entity("1", 5), entity("2", 5))]
    written = AccountSide(table.account, ADA).write("people", items, existing=())
    assert (written.inserted, written.changed, written.failures) == (1, 1, [])
    assert content(table) == {"1": 5, "2": 5}
