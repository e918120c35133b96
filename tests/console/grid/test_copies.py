"""Entities for the clipboard."""

import json

import pytest

from console.grid.tokens import encode_key
from console.grid.views import copies
from storage.domain.entities.entity import EntityKey
from storage.domain.values.edm import Edm, EdmValue

PEOPLE = "/ui/a/acme/t/people/copy/"


@pytest.fixture
def copied(visit, add_entity):
    add_entity("a", "1", Name="Ada", Note='x\t"y"\nz', Big=EdmValue(Edm.INT64, 2**63 - 1), Long="é" * 20_000)
    add_entity("a", "2", Name="Al|an <b>", Photo=b"\x00\xff")

    def copied(*keys, status=200, **fields):
        tokens = [encode_key(EntityKey("a", key)) for key in keys]
        answer = visit("victor").post(PEOPLE, {"key": tokens, "scope": "rows", **fields})
        assert answer.status_code == status
        return json.loads(answer.content)

    return copied


def test_one_value_is_itself(copied):
    assert copied("1", column="Note") == {"text": 'x\t"y"\nz', "count": 1}
    assert copied("1", column="Long")["text"] == "é" * 20_000
    assert copied("2", column="Photo")["text"] == "AP8="
    assert copied("2", column="Long")["text"] == ""


def test_rows_for_a_spreadsheet(copied):
    result = copied("1", "2", column=["RowKey", "Name", "Note"], head="1")
    assert result["text"] == 'RowKey\tName\tNote\r\n1\tAda\t"x\t""y""\nz"\r\n2\tAl|an <b>\t\r\n'
    assert "<td>Al|an &lt;b&gt;</td>" in result["html"]


def test_json(copied):
    result = json.loads(copied("1", **{"as": "json"})["text"])
    assert (result["Big"], result["Big@odata.type"]) == (str(2**63 - 1), "Edm.Int64")
    assert result["Long"] == "é" * 20_000
    assert [one["RowKey"] for one in json.loads(copied("1", "2", **{"as": "json"})["text"])] == ["1", "2"]
    assert len(copied("1", "2", **{"as": "ndjson"})["text"].splitlines()) == 2


def test_other_languages(copied):
    for language, part in [
        ("python", "create_entity("),
        ("javascript", "createEntity("),
        ("markdown", r"| Al\|an \<b\> |"),
        ("address", "http://testserver/ui/a/acme/t/people/entity/?pk=a&rk=2"),
    ]:
        text = copied("1", "2", column=["Note", "Name"], **{"as": language})["text"]
        assert part in text, (language, part)
        if language == "python":
            compile(text, "copied", "exec")


def test_all_that_a_query_finds(copied, monkeypatch):
    assert copied(scope="query", f="Name eq 'Ada'", column="Name")["text"] == "Ada"
    monkeypatch.setattr(copies, "LIMIT", 1)
    assert "file" in copied(scope="query", status=422)["error"]
    assert copied(scope="query", f="Name eq", status=422)["error"]
