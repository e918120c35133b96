"""Azurite's file: unexpected content is refused and never causes an endless read."""

import io
import json

import pytest

from storage.remote import azurite
from storage.remote.azurite import AzuriteFile, NotAzurite, find_accounts

ODD = [5, -1.5, None, True, [], ["x"], {}, "\0", "\ud800", 10**400]
TABLES, SERVICES = "$TABLES_COLLECTION$", "$SERVICES_COLLECTION$"


def file_of(*collections, **more):
    listed = [{"name": name, "data": data, "idIndex": [1, 2, {"a": [3]}]} for name, data in collections]
    data = json.dumps({"filename": "x", "collections": listed, **more}).encode()
    return lambda: io.BytesIO(data)


def read(opening):
    file = AzuriteFile(opening, "x.json")
    for account in file.accounts():
        file.service_properties(account)
        for table in file.tables(account):
            file.policies(account, table)
            list(file.entities(account, table))
    return file


def test_a_file_as_azurite_writes_it():
    opening = file_of(
        (SERVICES, [{"accountName": "one", "cors": [{"allowedOrigins": "*", "maxAgeInSeconds": "5"}]}]),
        (TABLES, [{"account": "one", "table": "people", "tableAcl": [{"id": "\u015f"}]}]),
        ("one$people", [{"properties": {"PartitionKey": "p", "RowKey": "r"}}]),
    )
    file = read(opening)
    assert (file.accounts(), file.tables("one"), len(list(file.entities("one", "people")))) == (
        ["one"],
        ["people"],
        1,
    )
    assert find_accounts(opening, "x.json") == ["one"]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda odd: file_of((TABLES, [{"account": "one", "table": odd}])),
        lambda odd: file_of((TABLES, [{"account": odd, "table": "people"}])),
        lambda odd: file_of((odd, [])),
        lambda odd: file_of((TABLES, [{"account": "one", "table": "t", "tableAcl": [{"id": odd}]}])),
        lambda odd: file_of((TABLES, []), (SERVICES, [{"accountName": odd}])),
    ],
)
def test_a_value_of_another_type_is_a_refusal(make, odd):
    opening = make(odd)
    with pytest.raises(NotAzurite):
        read(opening)
    try:
        find_accounts(opening, "x.json")
    except NotAzurite:
        pass


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda odd: file_of((TABLES, [odd])),
        lambda odd: file_of((TABLES, odd)),
        lambda odd: file_of((TABLES, [{"account": "one", "table": "t", "tableAcl": odd}])),
        lambda odd: file_of((TABLES, [{"account": "one", "table": "t"}]), ("one$t", [odd])),
        lambda odd: file_of((TABLES, [{"account": "one", "table": "t"}]), ("one$t", [{"properties": odd}])),
        lambda odd: file_of(
            (TABLES, [{"account": "one", "table": "t"}]),
            (SERVICES, [{"accountName": "one", "cors": odd, "logging": odd, "hourMetrics": odd}]),
        ),
        lambda odd: file_of(
            (TABLES, [{"account": "one", "table": "t"}]),
            (
                SERVICES,
                [{"accountName": "one", "logging": {"retentionPolicy": {"enabled": True, "days": odd}}}],
            ),
        ),
        lambda odd: file_of(
            (TABLES, [{"account": "one", "table": "t"}]),
            ("one$t", [{"properties": {"A": odd, "A@odata.type": "Edm.Double", "B@odata.type": odd}}]),
        ),
    ],
)
def test_nothing_else_is_raised_anywhere(make, odd):
    try:
        read(make(odd))
    except NotAzurite:
        pass


@pytest.mark.parametrize(
    "data", [b'{"collections":' + b" " * (5 << 20), b'{"collections":[{"name":"' + b"x" * (9 << 20)]
)
def test_endless_files_are_refused_and_reading_can_be_cancelled(data, monkeypatch):
    for name in ("_PIECE", "_LONGEST", "_FIRST"):
        monkeypatch.setattr(azurite, name, getattr(azurite, name) // 8)
    assert find_accounts(lambda: io.BytesIO(data), "x.json") is None
    with pytest.raises(NotAzurite):
        AzuriteFile(lambda: io.BytesIO(data), "x.json")
    looks = iter(range(3))

    def look():
        if next(looks, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        AzuriteFile(lambda: io.BytesIO(data), "x.json", look)
