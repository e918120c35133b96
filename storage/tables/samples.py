"""Sample table ``people``, with all types and the difficulties of real data."""

import random
import uuid
from collections.abc import Iterator
from itertools import count, groupby
from typing import Final

from storage.domain.access.actor import SERVER, Actor
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.errors import TableAlreadyExists
from storage.domain.values.edm import Edm, EdmValue, read_datetime
from storage.metrics import table_use
from storage.models import Account, Table
from storage.relations import history
from storage.sql import batch
from storage.sql.django import run
from storage.sql.relations import relation_of
from storage.tables import tables

ROWS: Final = 300

_NAMES: Final = {
    "cn": ("王小明", "李娜", "张伟", "刘洋"),
    "de": ("Jürgen Groß", "Käthe Weiß", "Ute Müller", "Max Bauer"),
    "eg": ("مريم حسن", "عمر خالد", "ليلى سعيد"),
    "gb": ("Ada Lovelace", "Alan Turing", "Mary O'Brien", 'Grace "G" Hill'),
    "se": ("Åsa Öberg", "Björn Ek", "Linnéa Å", "Nils Lund"),
    "tr": ("İpek Işık", "Çağrı Şahin", "Gül Öztürk", "Ilgaz Yıldız"),
}
_NOTES: Final = (
    None,
    "",
    " ",
    "likes 🦊 and 100 % wool",
    '{"theme": "dark", "tags": ["a", "b"]}',
    "first line\nsecond line",
    "<b>not bold</b>",
)


def create(account: Account, *, by: Actor = SERVER) -> Table:
    """Create ``people``, or the first free name of people2, people3, ...; always with the same rows."""
    table = _create_table(account, by)
    relation, recorder = relation_of(table), history.recorder(account, by)
    for _, entities in groupby(_entities(), lambda entity: entity.key.partition_key):
        run(batch.apply(relation, [Insert(entity) for entity in entities], recorder))
    table_use.record_write(table)
    return table


def _create_table(account: Account, by: Actor) -> Table:
    for number in count(1):
        try:
            return tables.create(account, "people" if number == 1 else f"people{number}", by=by)
        except TableAlreadyExists:
            continue
    raise AssertionError


def _entities() -> Iterator[Entity]:
    chance = random.Random(1)  # noqa: S311  always the same data, and no secret
    for number in range(ROWS):
        country = sorted(_NAMES)[number * len(_NAMES) // ROWS]
        yield Entity(EntityKey(country, f"{number:04}"), _properties(country, number, chance))


def _properties(country: str, number: int, chance: random.Random) -> dict[str, EdmValue]:
    name = chance.choice(_NAMES[country])
    properties = {
        "Name": EdmValue(Edm.STRING, name),
        "Age": EdmValue(Edm.INT32, chance.randrange(18, 90)),
        "Active": EdmValue(Edm.BOOLEAN, chance.random() < 0.8),
        "Balance": EdmValue(Edm.DOUBLE, round(chance.uniform(-500, 9000), 2)),
        "Visits": EdmValue(Edm.INT64, 2**53 + chance.randrange(2**40)),  # beyond what JavaScript counts to
        "Since": EdmValue(Edm.DATETIME, read_datetime("2019-01-01") + chance.randrange(2 * 10**15)),
        "Id": EdmValue(Edm.GUID, str(uuid.UUID(int=chance.getrandbits(128), version=4))),
        "Avatar": EdmValue(Edm.BINARY, chance.randbytes(chance.choice((0, 12, 400)))),
        # sometimes a number, sometimes a string, as in many schemaless tables
        "Score": EdmValue(Edm.INT32, number) if number % 3 else EdmValue(Edm.STRING, "high"),
        "Note": EdmValue(Edm.STRING, note) if (note := chance.choice(_NOTES)) is not None else None,
    }
    return {key: value for key, value in properties.items() if value is not None}
