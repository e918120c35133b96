"""Tokens for a table: what they allow, what they refuse, from where and until when."""

from datetime import timedelta
from itertools import chain, combinations

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import TableSasPermissions, generate_table_sas

from .access import ADA, ALL, HOUR, now, outcome_of, person, refusal_of
from .conftest import OPTIONS, code_of, new_name

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


def subsets(letters):
    return ["".join(some) for some in chain.from_iterable(combinations(letters, n) for n in range(1, 5))]


class TestPermissions:
    @pytest.mark.parametrize("letters", subsets(ALL))
    def test_allow_what_their_letters_say(self, stored, opened, letters):
        table = opened(permission=letters)
        allowed = set()
        for name, (_, operation) in NEEDS.items():
            stored.upsert_entity(person("old"))
            stored.delete_entity("se", "new")
            outcome = outcome_of(operation, table)
            assert outcome in (None, (403, "AuthorizationPermissionMismatch"))
            if outcome is None:
                allowed.add(name)

        assert allowed == {name for name, (needed, _) in NEEDS.items() if set(needed) <= set(letters)}

    def test_can_be_built(self, opened):
        table = opened(permission=TableSasPermissions(read=True, add=True))

        table.create_entity(person("bob"))

        assert {entity["RowKey"] for entity in table.list_entities()} == {"ada", "bob"}

    def test_change_nothing_when_one_of_a_transaction_is_missing(self, stored, opened):
        operations = [("create", person("bob")), ("delete", ADA)]

        with pytest.raises(HttpResponseError) as refusal:
            opened(permission="a").submit_transaction(operations)

        assert refusal.value.status_code == 403
        assert refusal.value.index == 1
        assert list(stored.list_entities()) == [ADA]

    @pytest.mark.parametrize(
        "operation",
        [
            lambda table: table.create_table(),
            lambda table: table.delete_table(),
            lambda table: table.get_table_access_policy(),
            lambda table: table.set_table_access_policy({}),
        ],
        ids=["create_table", "delete_table", "get_table_access_policy", "set_table_access_policy"],
    )
    def test_never_concern_the_table_itself(self, stored, opened, operation):
        assert refusal_of(operation, opened(permission=ALL)) == (403, "AuthorizationFailure")
        assert list(stored.list_entities()) == [ADA]

    def test_never_concern_the_account(self, library, server, sas_of):
        credential = AzureSasCredential(sas_of(permission=ALL))
        service = library.open_service(None, server.endpoint, credential=credential, **OPTIONS)

        for operation in (
            lambda: service.create_table(new_name()),
            lambda: list(service.list_tables()),
            service.get_service_properties,
            service.set_service_properties,
        ):
            assert refusal_of(operation) == (403, "AuthorizationFailure")


class TestTokens:
    def test_come_in_the_url_of_an_account(self, library, server, stored, sas_of):
        table = library.open_table(
            None, f"{server.endpoint}?{sas_of(permission='r')}", stored.table_name, **OPTIONS
        )

        assert table.get_entity("se", "ada") == ADA
        assert list(table.list_entities()) == [ADA]

    def test_come_in_the_url_of_a_table(self, library, server, stored, sas_of):
        url = f"{server.endpoint}/{stored.table_name}?{sas_of(permission='r')}"

        assert library.open_table("from_table_url", url, **OPTIONS).get_entity("se", "ada") == ADA

    def test_come_in_a_connection_string(self, library, server, stored, sas_of):
        string = f"TableEndpoint={server.endpoint};SharedAccessSignature={sas_of(permission=ALL)}"

        table = library.open_table("from_connection_string", string, stored.table_name, **OPTIONS)

        assert table.get_entity("se", "ada") == ADA
        assert table.submit_transaction([("update", ADA)])

    def test_begin_with_a_question_mark_or_not(self, open_table, sas_of):
        assert open_table("?" + sas_of(permission="r")).get_entity("se", "ada") == ADA

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

    @pytest.mark.parametrize("spelling", [str.upper, str.lower])
    def test_name_the_table_in_any_case(self, library, server, stored, credential, spelling):
        token = generate_table_sas(
            credential, spelling(stored.table_name), permission="r", expiry=now() + HOUR
        )
        for name in (stored.table_name, stored.table_name.swapcase()):
            table = library.open_table(
                None, server.endpoint, name, credential=AzureSasCredential(token), **OPTIONS
            )
            assert table.get_entity("se", "ada") == ADA

    def test_read_from_the_secondary(self, library, server, stored, sas_of):
        table = library.open_table(
            None,
            server.endpoint,
            stored.table_name,
            credential=AzureSasCredential(sas_of(permission=ALL)),
            location_mode="secondary",
            secondary_hostname=f"127.0.0.1:{server.port}/{server.account}-secondary",
            **OPTIONS,
        )

        assert table.get_entity("se", "ada") == ADA
        assert refusal_of(table.upsert_entity, ADA) == (403, "InsufficientAccountPermissions")

    @pytest.mark.parametrize("version", ["2019-02-02", "2019-07-07", "2020-12-06"])
    def test_are_taken_at_any_version(self, library, server, stored, sas_of, version):
        table = library.open_table(
            None,
            server.endpoint,
            stored.table_name,
            credential=AzureSasCredential(sas_of(permission=ALL)),
            api_version=version,
            **OPTIONS,
        )

        assert table.get_entity("se", "ada") == ADA
        assert table.submit_transaction([("upsert", ADA)])

    def test_find_pages(self, stored, opened):
        rows = [f"{row:02}" for row in range(7)]
        stored.submit_transaction([("create", person(row)) for row in rows])
        table = opened(permission="r")

        begun = table.query_entities("RowKey lt 'a'", results_per_page=3).by_page()
        first = [entity["RowKey"] for entity in next(begun)]
        rest = table.query_entities("RowKey lt 'a'", results_per_page=3).by_page(begun.continuation_token)

        assert first == rows[:3]
        assert [[entity["RowKey"] for entity in page] for page in rest] == [rows[3:6], rows[6:]]

    def test_carry_keys_of_all_scripts(self, stored, opened):
        key = "p-ô &=+%27'€😀"
        stored.create_entity({"PartitionKey": key, "RowKey": key})
        table = opened(permission="r", start_pk=key, start_rk=key, end_pk=key, end_rk=key)

        assert table.get_entity(key, key)["RowKey"] == key
        assert len(list(table.list_entities())) == 1


class TestRefusals:
    def test_of_a_token_that_expired(self, opened):
        table = opened(permission="r", expiry=now() - timedelta(seconds=1))

        assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthenticationFailed")

    def test_of_a_token_that_is_not_yet_valid(self, opened):
        table = opened(permission="r", start=now() + timedelta(minutes=1))

        assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthenticationFailed")

    def test_not_of_a_token_between_its_times(self, opened):
        for times in (
            {"start": now() - HOUR, "expiry": now() + HOUR},
            {"start": f"{now() - HOUR:%Y-%m-%dT%H:%MZ}", "expiry": f"{now() + HOUR:%Y-%m-%dT%H:%M:%SZ}"},
            {"start": f"{now() - 48 * HOUR:%Y-%m-%d}", "expiry": f"{now() + 48 * HOUR:%Y-%m-%d}"},
        ):
            assert opened(permission="r", **times).get_entity("se", "ada") == ADA

    @pytest.mark.parametrize("missing", ["permission", "expiry"])
    def test_of_a_token_that_leaves_something_open(self, opened, missing):
        table = opened(**{"permission": "r", missing: None})

        assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthenticationFailed")

    @pytest.mark.parametrize("addresses", ["127.0.0.1", "127.0.0.0-127.0.0.255", "0.0.0.0-255.255.255.255"])
    def test_not_of_an_address_that_is_named(self, opened, addresses):
        assert opened(permission="r", ip_address_or_range=addresses).get_entity("se", "ada") == ADA

    @pytest.mark.parametrize("addresses", ["127.0.0.2", "168.1.5.60-168.1.5.70"])
    def test_of_another_address(self, opened, addresses):
        table = opened(permission="r", ip_address_or_range=addresses)

        assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthorizationSourceIPMismatch")

    @pytest.mark.parametrize("protocol", ["https,http", None])
    def test_not_of_http_when_it_is_named(self, opened, protocol):
        assert opened(permission="r", protocol=protocol).get_entity("se", "ada") == ADA

    def test_of_http_when_only_https_is(self, opened):
        table = opened(permission="r", protocol="https")

        assert refusal_of(table.get_entity, "se", "ada") == (403, "AuthorizationProtocolMismatch")

    def test_of_a_token_for_another_table(self, credential, people, new_table, open_table):
        token = generate_table_sas(credential, new_table().table_name, permission=ALL, expiry=now() + HOUR)

        # what is refused so depends on where the names are compared: before the signature, or by it
        for operation in (
            lambda table: table.get_entity("se", "ada"),
            lambda table: list(table.list_entities()),
            lambda table: table.upsert_entity(ADA),
            lambda table: table.submit_transaction([("upsert", ADA)]),
        ):
            assert refusal_of(operation, open_table(token))[0] == 403
        assert list(people.list_entities()) == [ADA]

    @pytest.mark.parametrize(
        ("account", "key"), [("stranger", None), (None, "d3Jvbmc="), ("stranger", "d3Jvbmc=")]
    )
    def test_of_a_token_by_a_stranger(self, server, stored, open_table, account, key):
        credential = AzureNamedKeyCredential(account or server.account, key or server.key)
        token = generate_table_sas(credential, stored.table_name, permission=ALL, expiry=now() + HOUR)

        with pytest.raises(ClientAuthenticationError) as refusal:
            open_table(token).get_entity("se", "ada")

        assert refusal.value.status_code == 403
        assert code_of(refusal) == "AuthenticationFailed"

    @pytest.mark.parametrize(
        "change", [("sp=r&", "sp=raud&"), ("sig=", "sig=A"), ("&sv=", "&sip=127.0.0.1&sv=")]
    )
    def test_of_a_token_that_was_changed(self, open_table, sas_of, change):
        token = sas_of(permission="r").replace(*change)

        assert refusal_of(open_table(token).get_entity, "se", "ada") == (403, "AuthenticationFailed")
