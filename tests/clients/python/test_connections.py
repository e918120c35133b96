"""Ways to reach the server: URLs, connection strings, keys, versions, the secondary, headers of every answer."""

from itertools import islice
from typing import Any
from urllib.parse import quote, unquote

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

from tests.live_server import ACCOUNT, KEY

from .access import ADA
from .conftest import BOTH, OPTIONS, code_of

WRONG_KEY = "d3Jvbmc="


def answer_to(operation, *args, **options):
    """Return the raw response of an operation of a client."""
    responses: list[Any] = []
    operation(*args, raw_response_hook=responses.append, **options)
    return responses[-1].http_response


class TestAddresses:
    FORMS = (
        "{string}",
        "AccountName={account};AccountKey={key};TableEndpoint={endpoint}",
        "AccountName={account};AccountKey={key};TableEndpoint={endpoint}/",
        "TableEndpoint={endpoint};AccountKey={key};AccountName={account};DefaultEndpointsProtocol=http;",
        "AccountName={account};AccountKey={key};TableEndpoint={endpoint};BlobEndpoint=http://127.0.0.1:10000/a",
    )

    def test_in_an_url_or_a_connection_string(self, library, server, stored, credential):
        name = stored.table_name
        for form in ("{}/{}", "{}/{}/", "{}/Tables('{}')"):
            url = form.format(server.endpoint, name)
            table = library.open_table("from_table_url", url, credential=credential, **OPTIONS)
            assert (table.table_name, table.get_entity("se", "ada")) == (name, ADA), url
        for form in self.FORMS:
            string = form.format(
                string=server.connection_string,
                account=server.account,
                key=server.key,
                endpoint=server.endpoint,
            )
            table = library.open_table("from_connection_string", string, name, **OPTIONS)
            assert table.get_entity("se", "ada") == ADA, form
            assert table.submit_transaction([("upsert", ADA)])

    def test_in_the_connection_string_of_development_storage(self, library):
        service = library.open_service("from_connection_string", "UseDevelopmentStorage=true", **OPTIONS)

        assert service.account_name == ACCOUNT
        assert service.credential.named_key.key == KEY
        assert service.url == "http://127.0.0.1:10002/devstoreaccount1"

    @BOTH
    def test_with_default_policies(self, library, server, stored):
        table = library.open_table("from_connection_string", server.connection_string, stored.table_name)

        assert table.get_entity("se", "ada") == ADA
        assert table.delete_entity("se", "nobody") is None

    @BOTH
    def test_of_a_host_the_sdk_takes_for_another_service(self, library, server, stored, credential):
        """At `localhost` the SDK speaks its other dialect: POST with X-HTTP-Method instead of PATCH."""
        endpoint = server.endpoint.replace("127.0.0.1", "localhost")
        table = library.open_table(None, endpoint, stored.table_name, credential=credential, **OPTIONS)

        table.update_entity({**ADA, "Age": 37}, mode="merge")
        table.upsert_entity({**ADA, "City": "London"}, mode="merge")
        table.submit_transaction([("update", {**ADA, "Title": "Countess"}, {"mode": "merge"})])

        assert stored.get_entity("se", "ada") == {**ADA, "City": "London", "Title": "Countess"}


def test_versions_are_echoed(library, server, stored):
    for version in ("2019-02-02", "2019-07-07", "2020-12-06"):
        table = library.open_table(
            "from_connection_string",
            server.connection_string,
            stored.table_name,
            api_version=version,
            **OPTIONS,
        )
        assert table.upsert_entity(ADA)["version"] == version
        assert table.get_entity("se", "ada") == ADA
        assert list(table.query_entities("RowKey eq 'ada'")) == [ADA]
        assert table.submit_transaction([("update", ADA)])


OPERATIONS = {
    "create_table": lambda table: table.create_table(),
    "delete_table": lambda table: table.delete_table(),
    "update_entity": lambda table: table.update_entity(ADA),
    "upsert_entity": lambda table: table.upsert_entity(ADA),
    "delete_entity": lambda table: table.delete_entity("se", "ada"),
    "get_entity": lambda table: table.get_entity("se", "ada"),
    "list_entities": lambda table: list(table.list_entities()),
    "submit_transaction": lambda table: table.submit_transaction([("create", ADA)]),
}


def test_strangers_are_refused(library, server, stored):
    for account in (server.account, "stranger"):
        credential = AzureNamedKeyCredential(account, WRONG_KEY)
        table = library.open_table(None, server.endpoint, stored.table_name, credential=credential, **OPTIONS)
        for operation in OPERATIONS.values():
            with pytest.raises(ClientAuthenticationError) as refusal:
                operation(table)
            assert (refusal.value.status_code, code_of(refusal)) == (403, "AuthenticationFailed")
            assert "Server failed to authenticate the request." in refusal.value.message
    assert list(stored.list_entities()) == [ADA]


class TestSecondary:
    @pytest.fixture
    def secondary(self, library, server, stored, credential):
        return library.open_table(
            None,
            server.endpoint,
            stored.table_name,
            credential=credential,
            location_mode="secondary",
            **OPTIONS,
        )

    def test_serves_reads(self, secondary):
        assert secondary.url.endswith("-secondary")
        assert secondary.get_entity("se", "ada") == ADA
        assert list(secondary.list_entities()) == [ADA]
        assert list(secondary.query_entities("Age eq 36", select="Age")) == [{"Age": 36}]

    @BOTH
    def test_helps_out_when_the_primary_fails(self, library, server, stored, credential):
        """The SDK puts the secondary before the whole path, with the signature made for the primary."""
        table = library.open_table(
            None,
            server.endpoint,
            stored.table_name,
            credential=credential,
            retry_to_secondary=True,
            retry_total=1,
            retry_backoff_factor=0,
        )
        places: list[str] = []

        def fail_once(response: Any) -> None:
            places.append(response.http_request.url)
            if len(places) == 1:
                response.http_response.status_code = 500

        assert table.get_entity("se", "ada", raw_response_hook=fail_once) == ADA
        assert [f"{server.account}-secondary" in place for place in places] == [False, True]

    def test_refuses_writes(self, secondary, stored):
        for operation in islice(OPERATIONS.values(), 5):
            with pytest.raises(HttpResponseError, match=r"Write operations are not allowed\.") as refusal:
                operation(secondary)
            assert (refusal.value.status_code, code_of(refusal)) == (403, "InsufficientAccountPermissions")
        assert list(stored.list_entities()) == [ADA]


class TestHeaders:
    """Headers that clients of other languages also read: some fail when a header is missing."""

    def test_of_an_insert(self, people, server):
        keys = {"PartitionKey": "p-ô- '-\"-%20-%27-pk", "RowKey": "a b"}

        answer = answer_to(people.create_entity, keys)

        place = f"{server.endpoint}/{people.table_name}(PartitionKey='{quoted(keys['PartitionKey'])}',RowKey='a%20b')"
        assert answer.status_code == 201
        assert answer.headers["Location"] == place
        assert unquote(answer.headers["ETag"]).startswith("W/\"datetime'20")
        assert (
            answer.headers["Content-Type"]
            == "application/json;odata=minimalmetadata;streaming=true;charset=utf-8"
        )

    def test_of_an_error_name_its_code(self, stored):
        answers: list[Any] = []

        with pytest.raises(HttpResponseError) as refusal:
            stored.get_entity("se", "nobody", raw_response_hook=answers.append)

        assert answers[-1].http_response.headers["x-ms-error-code"] == "ResourceNotFound"
        assert refusal.value.reason == "Not Found"


def quoted(key):
    """Return a key as in a Location: quotes doubled and left as they are, the rest encoded."""
    return "''".join(quote(part, safe="") for part in key.split("'"))
