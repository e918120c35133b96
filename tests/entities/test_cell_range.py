"""Several cells change together, each with its own type, or none does; one Undo takes it back."""

import json

import pytest

from console.grid.tokens import encode_key
from storage.accounts import account_settings
from storage.domain.entities.entity import EntityKey, read_stored
from storage.domain.values.edm import FIRST_COSMOS_TICK, Edm, EdmValue
from storage.domain.values.etag import write_etag
from storage.domain.values.kinds import AccountKind
from storage.entities import entities
from storage.models import Activity
from storage.tables import tables

CELLS = "/ui/a/acme/t/people/cells/"
HTMX = {"HX-Request": "true"}
KEYS = [EntityKey("se", name) for name in ("ada", "alan", "grace")]


@pytest.fixture
def three(add_entity):
    add_entity(*KEYS[0], Name="Ada", Age=36, Big=EdmValue(Edm.INT64, 1), Photo=b"\x00\xff")
    add_entity(*KEYS[1], Name="Alan")
    add_entity(*KEYS[2], Age="unknown")


@pytest.fixture
def change(visit, three, account):
    """Return `change("paste", ["Name"], text="x")`, which changes all rows, or those from ``start`` on, and returns
    the answer.
    """
    client = visit("eve")

    def change(action, names, *, start=0, status=200, types=None, **more):
        rows = [[encode_key(key), etag(account, key)] for key in KEYS[start:]]
        columns = [[name, (types or {}).get(name, "")] for name in names]
        sent = {"cells": json.dumps({"rows": rows, "columns": columns}), "action": action, **more}
        answer = client.post(CELLS, sent, headers=HTMX)
        assert answer.status_code == status
        return answer.content.decode()

    return change


def stored(account, key):
    return entities.get(tables.get(account, "people"), key)


def etag(account, key):
    return write_etag(stored(account, key).timestamp)


def values(account, name):
    results = [read_stored(stored(account, key)).properties.get(name) for key in KEYS]
    return [None if value is None else value.value for value in results]


def test_says_who_deleted_an_entity(change, visit, account):
    keys = [[encode_key(key), etag(account, key)] for key in KEYS]
    visit("alice").post("/ui/a/acme/t/people/delete/", {"key": encode_key(KEYS[1]), "scope": "rows"})
    cells = json.dumps({"rows": keys, "columns": [["Name", ""]]})
    answer = visit("eve").post(CELLS, {"cells": cells, "action": "paste", "text": "x"}, headers=HTMX)
    assert answer.status_code == 412 and b"alice deleted this entity at" in answer.content


def test_pastes_a_rectangle_and_undoes_it_at_once(change, visit, account):
    types = {"Age": "Edm.Int32"}
    text = 'Eva\t1\n"two\nlines"\t2\n\t3\n'
    assert "Changed 5 cells" in change("paste", ["Name", "Age", "Big"], types=types, text=text)
    assert values(account, "Name") == ["Eva", "two\nlines", None]
    # each keeps its type, and one that was not set gets that of the column
    assert values(account, "Age") == [1, 2, "3"]
    assert values(account, "Big") == [1, None, None]
    visit("eve").post(f"/ui/undo/{Activity.objects.latest('pk').pk}/", {"next": "/ui/"})
    assert values(account, "Name") == ["Ada", "Alan", None]
    assert values(account, "Age") == [36, None, "unknown"]


def test_fills_down_with_types_and_clears(change, account):
    assert "Changed 6 cells" in change("fill", ["Age", "Big", "Photo"])
    assert values(account, "Age") == [36] * 3 and values(account, "Photo") == [b"\x00\xff"] * 3
    change("clear", ["Age", "Big"], start=1)
    assert values(account, "Age") == [36, None, None]
    change("paste", ["Name"], text="same")
    assert values(account, "Name") == ["same"] * 3


def test_pastes_a_time_that_only_a_cosmos_account_has(change, account):
    account.kind = AccountKind.COSMOS
    account.save()
    change("paste", ["Since"], types={"Since": "Edm.DateTime"}, text="0001-01-01T00:00:00Z")
    assert values(account, "Since") == [FIRST_COSMOS_TICK] * 3


def test_refuses_all_of_it(change, account):
    for names, text, why in (
        (["Age"], "1\nx", "Age (se, alan)"),
        (["Age"], "1\t2", "1 × 2"),
        (["Age"], "1\n2\n3\n4", "4 × 1"),
    ):
        said = change("paste", names, types={"Age": "Edm.Int32"}, text=text, status=422)
        assert why in said and "Nothing was changed" in said
        assert values(account, "Age") == [36, None, "unknown"]


def test_concurrent_changes_are_not_overwritten(visit, three, account):
    client = visit("eve")
    before = [[encode_key(key), etag(account, key)] for key in KEYS]
    sent = {"cells": json.dumps({"rows": before, "columns": [["Name", ""]]}), "action": "paste", "text": "x"}
    assert client.post(CELLS, sent, headers=HTMX).status_code == 200
    answer = client.post(CELLS, {**sent, "text": "y"}, headers=HTMX)
    assert answer.status_code == 412 and "Someone else changed" in answer.content.decode()
    assert values(account, "Name") == ["x"] * 3


def test_stages_instead(change, account):
    text = change("paste", ["Name"], start=1, text="a\nb", stage="1")
    assert text.count("data-change") == 2 and 'data-text="b"' in text
    assert values(account, "Name") == ["Ada", "Alan", None]


def test_forged_requests_are_refused(visit, three):
    for cells in ("", "[]", '{"rows": [], "columns": []}', '{"rows": [["x", ""]], "columns": 1}'):
        assert visit("eve").post(CELLS, {"cells": cells, "action": "clear"}).status_code == 400


def test_keys_stay(visit, three, account):
    cells = {"rows": [[encode_key(KEYS[0]), etag(account, KEYS[0])]], "columns": [["RowKey", ""]]}
    sent = {"cells": json.dumps(cells), "action": "clear"}
    assert visit("eve").post(CELLS, sent).status_code == 400
    assert visit("victor").post(CELLS, sent).status_code == 403


def test_a_read_only_account_stays_as_it_is(change, account):
    account_settings.change(account, read_only=True)
    assert "not allowed" in change("clear", ["Name"], status=422)
    assert values(account, "Name") == ["Ada", "Alan", None]
