"""Property indexes by scripts; what they do is tested with the operation."""

from storage.tables import indexes
from storage.tables.index_rules import IndexOrigin, IndexReason

INDEXES = "accounts/acme/tables/people/indexes"


def test_it_works(call, table):
    ask = call("max")
    made = ask("POST", INDEXES, {"property": "Score"})
    assert made.status_code == 201, made.content
    result = made.json()
    assert (result["property"], result["state"], result["origin"], result["error"]) == (
        "Score",
        "building",
        "hand",
        "",
    )
    assert ask("POST", INDEXES, {"property": "Score"}).status_code == 200
    assert ask("GET", f"{INDEXES}/Score").json() == result
    assert ask("GET", INDEXES).json() == {"items": [result], "next": None}
    assert ask("DELETE", f"{INDEXES}/Score").status_code == 204
    for method in ("GET", "DELETE"):
        assert ask(method, f"{INDEXES}/Missing").status_code == 404
    assert ask("DELETE", f"{INDEXES}/Score").status_code == 404


def test_one_that_the_server_has_added_says_why_and_is_kept(call, table):
    reason = IndexReason("Score ge …", 2, 0.5)
    indexes.add(table, "Score", origin=IndexOrigin.ADAPTIVE, reason=reason)
    ask = call("max")
    assert ask("GET", f"{INDEXES}/Score").json()["reason"] == reason._asdict()
    kept = ask("POST", INDEXES, {"property": "Score"})
    assert (kept.status_code, kept.json()["origin"]) == (200, "hand")


def test_refuses_keys_and_too_many(call, table):
    ask = call("max")
    refused = ask("POST", INDEXES, {"property": "RowKey"})
    assert (refused.status_code, refused.json()["code"]) == (400, "PropertyNameInvalid")
    for number in range(20):
        indexes.add(table, f"Property{number}")
    assert ask("POST", INDEXES, {"property": "Score"}).status_code == 409
