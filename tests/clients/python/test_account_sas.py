"""Tokens for the account, and what only tokens over TLS can do."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data.tables import AccountSasPermissions, ResourceTypes, generate_account_sas, generate_table_sas

from .access import ADA, HOUR, now, outcome_of, person, refusal_of
from .conftest import OPTIONS, new_name


class TestAccount:
    EVERYTHING = "sco"
    # operation, required resource type, and permissions: all of them, or any
    NEEDS = {
        "get_service_properties": ("s", ["r"], lambda service, _: service.get_service_properties()),
        "set_service_properties": ("s", ["w"], lambda service, _: service.set_service_properties()),
        "list_tables": ("c", ["l"], lambda service, _: next(service.list_tables(results_per_page=1))),
        "create_table": ("c", ["c", "w"], lambda service, _: service.create_table(new_name())),
        "delete_table": ("c", ["d"], lambda service, _: service.delete_table(new_name())),
        "get_entity": ("o", ["r"], lambda service, name: of(service, name).get_entity("se", "ada")),
        "list_entities": ("o", ["r"], lambda service, name: list(of(service, name).list_entities())),
        "create_entity": (
            "o",
            ["a"],
            lambda service, name: of(service, name).create_entity(person(uuid4().hex)),
        ),
        "update_entity": ("o", ["u"], lambda service, name: of(service, name).update_entity(ADA)),
        "upsert_entity": ("o", ["au"], lambda service, name: of(service, name).upsert_entity(ADA)),
        "delete_entity": ("o", ["d"], lambda service, name: of(service, name).delete_entity("se", "nobody")),
        "transaction": (
            "o",
            ["u"],
            lambda service, name: of(service, name).submit_transaction([("update", ADA)]),
        ),
    }

    @pytest.fixture
    def open_service(self, library, server, credential):
        def open_by(types: str, letters: str, **options: Any) -> Any:
            token = generate_account_sas(
                credential,
                ResourceTypes.from_string(types),
                AccountSasPermissions.from_string(letters),
                **{"expiry": now() + HOUR, **options},
            )
            endpoint = options.pop("endpoint", server.endpoint)
            return library.open_service(None, endpoint, credential=AzureSasCredential(token), **OPTIONS)

        return open_by

    def test_allows_by_resource_types_and_permissions(self, stored, open_service):
        wrong = []
        chosen = [*((types, "rwdlacu") for types in "sco"), *(("sco", it) for it in ("r", "wl", "cd", "au"))]
        for types, letters in chosen:
            service = open_service(types, letters)
            for name, (type_, needs, operation) in self.NEEDS.items():
                outcome = outcome_of(operation, service, stored.table_name)
                expected = None
                if type_ not in types:
                    expected = (403, "AuthorizationResourceTypeMismatch")
                elif not any(set(needed) <= set(letters) for needed in needs):
                    expected = (403, "AuthorizationPermissionMismatch")
                wrong += [(types, letters, name, outcome)] if outcome != expected else []
        assert wrong == []

    def test_is_valid_within_its_limits(self, stored, open_service):
        for limits in (
            {"start": datetime(2020, 1, 1, tzinfo=UTC)},
            {"ip_address_or_range": "127.0.0.0-127.0.0.9"},
            {"protocol": "https,http"},
        ):
            table = of(open_service(self.EVERYTHING, "r", **limits), stored.table_name)
            assert table.get_entity("se", "ada") == ADA, limits


class TestOverTls:
    """Tokens for https only, and tokens for any protocol over TLS."""

    @pytest.fixture
    def secure_table(self, library, secure_server, certificate):
        """Return `secure_table(token)`, which opens a table by a token, the same table every time."""
        options = {**OPTIONS, "connection_verify": str(certificate)}
        key = AzureNamedKeyCredential(secure_server.account, secure_server.key)
        service = library.open_service(None, secure_server.endpoint, credential=key, **options)
        name = service.create_table(new_name()).table_name
        of(service, name).create_entity(ADA)

        def open_by(make: Any, *arguments: Any, **limits: Any) -> Any:
            named = (name,) if make is generate_table_sas else ()
            token = make(key, *named, *arguments, **{"expiry": now() + HOUR, **limits})
            return library.open_table(
                None, secure_server.endpoint, name, credential=AzureSasCredential(token), **options
            )

        return open_by

    def test_takes_a_token_of_the_account(self, secure_table):
        types, permission = ResourceTypes(object=True), AccountSasPermissions(read=True)
        for protocol in ("https", "https,http", None):
            table = secure_table(generate_account_sas, types, permission, protocol=protocol)
            assert table.get_entity("se", "ada") == ADA
            assert refusal_of(table.update_entity, ADA) == (403, "AuthorizationPermissionMismatch")


def of(service, name):
    return service.get_table_client(name)
