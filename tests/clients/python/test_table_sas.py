"""Tokens for a table: what they allow, what they refuse, from where and until when."""

from azure.core.credentials import AzureSasCredential
from azure.data.tables import TableSasPermissions

from .access import ADA, ALL, HOUR, now, outcome_of, person, refusal_of
from .conftest import BOTH, OPTIONS

# the entity "old" is there, the entity "new" is not
NEEDS = {
    "get_entity": ("r", lambda table: table.get_entity("se", "old")),
    "list_entities": ("r", lambda table: list(table.list_entities())),
    "query_entities": ("r", lambda table: list(table.query_entities("RowKey eq 'old'"))),
    "create_entity": ("a", lambda table: table.create_entity(person("new"))),
    "update_entity": ("u", lambda table: table.update_entity(person("old"))),
    "replace_entity": ("u", lambda table: table.update_entity(person("old"), mode="replace")),
    "upsert_entity": ("au", lambda table: table.upsert_entity(person("old"))),
    "insert_or_replace": ("au", lambda table: table.upsert_entity(person("new"), mode="replace")),
    "delete_entity": ("d", lambda table: table.delete_entity("se", "old")),
    "transaction of a create": ("a", lambda table: table.submit_transaction([("create", person("new"))])),
    "transaction of an update": ("u", lambda table: table.submit_transaction([("update", person("old"))])),
    "transaction of an upsert": ("au", lambda table: table.submit_transaction([("upsert", person("new"))])),
    "transaction of a delete": ("d", lambda table: table.submit_transaction([("delete", person("old"))])),
    "transaction of two": (
        "ad",
        lambda table: table.submit_transaction([("create", person("new")), ("delete", person("old"))]),
    ),
}


def test_permission_letters_allow_their_operations(stored, opened):
    for letters in ("r", "ad", "u", TableSasPermissions(read=True, add=True), ALL):
        table = opened(permission=letters)
        allowed = set()
        for name, (_, operation) in NEEDS.items():
            stored.upsert_entity(person("old"))
            stored.delete_entity("se", "new")
            outcome = outcome_of(operation, table)
            assert outcome in (None, (403, "AuthorizationPermissionMismatch"))
            if outcome is None:
                allowed.add(name)
        chosen = set(str(letters))
        assert allowed == {name for name, (needed, _) in NEEDS.items() if set(needed) <= chosen}, letters


class TestTokens:
    def test_come_in_urls_and_connection_strings(self, library, server, stored, sas_of):
        token, name = sas_of(permission=ALL), stored.table_name
        string = f"TableEndpoint={server.endpoint};SharedAccessSignature={token}"
        for table in (
            library.open_table(None, f"{server.endpoint}?{token}", name, **OPTIONS),
            library.open_table("from_table_url", f"{server.endpoint}/{name}?{token}", **OPTIONS),
            library.open_table("from_connection_string", string, name, **OPTIONS),
        ):
            assert table.get_entity("se", "ada") == ADA
            assert list(table.list_entities()) == [ADA]
        assert table.submit_transaction([("update", ADA)])  # as a URL of an account, the SDK would drop it

    @BOTH
    def test_are_exchanged_in_a_client(self, library, server, stored, sas_of):
        credential = AzureSasCredential(sas_of(permission="a"))
        table = library.open_table(None, server.endpoint, stored.table_name, credential=credential, **OPTIONS)
        assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthorizationPermissionMismatch")

        credential.update(sas_of(permission="r"))

        assert table.get_entity("se", "ada") == ADA

    def test_give_way_to_a_key_in_the_same_client(self, library, server, stored, sas_of, credential):
        url = f"{server.endpoint}?{sas_of(permission='a')}"

        table = library.open_table(None, url, stored.table_name, credential=credential, **OPTIONS)

        assert table.get_entity("se", "ada") == ADA

    def test_find_pages(self, stored, opened):
        rows = [f"{row:02}" for row in range(7)]
        stored.submit_transaction([("create", person(row)) for row in rows])
        table = opened(permission="r")

        begun = table.query_entities("RowKey lt 'a'", results_per_page=3).by_page()
        first = [entity["RowKey"] for entity in next(begun)]
        rest = table.query_entities("RowKey lt 'a'", results_per_page=3).by_page(begun.continuation_token)

        assert first == rows[:3]
        assert [[entity["RowKey"] for entity in page] for page in rest] == [rows[3:6], rows[6:]]

    @BOTH
    def test_carry_keys_of_all_scripts(self, stored, opened):
        key = "p-ô &=+%27'€😀"
        stored.create_entity({"PartitionKey": key, "RowKey": key})
        table = opened(permission="r", start_pk=key, start_rk=key, end_pk=key, end_rk=key)

        assert table.get_entity(key, key)["RowKey"] == key
        assert len(list(table.list_entities())) == 1


def test_a_token_is_good_between_its_times_however_these_are_written(opened):
    for times in (
        {"start": now() - HOUR, "expiry": now() + HOUR},
        {"start": f"{now() - HOUR:%Y-%m-%dT%H:%MZ}", "expiry": f"{now() + HOUR:%Y-%m-%dT%H:%M:%SZ}"},
        {"start": f"{now() - 48 * HOUR:%Y-%m-%d}", "expiry": f"{now() + 48 * HOUR:%Y-%m-%d}"},
    ):
        assert opened(permission="r", **times).get_entity("se", "ada") == ADA
