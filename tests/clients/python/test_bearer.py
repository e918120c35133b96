"""Access tokens: the SDK's own policy for them over TLS, against an issuer on loopback."""

import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from enum import Enum
from pathlib import Path
from typing import Any

import jwt
import pytest
import requests
from azure.core.credentials import AccessToken, AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableServiceClient,
    generate_account_sas,
)

from tests import issuer as issuing
from tests.clients.python.conftest import BOTH, OPTIONS, new_name
from tests.clients.python.libraries import Asynchronous
from tests.issuer import CONFIGURATION, CONTRIBUTOR, OTHER_KEY, READER, Issuer
from tests.live_server import ROOT, LiveServer, start_server
from tests.seeds import seeded

ADA = {"PartitionKey": "se", "RowKey": "ada", "Born": 1815}
OWNER = "Storage Account Contributor"
TENANT = "8f2a3c1d-0000-4000-8000-000000001815"
SCOPE = "https://storage.azure.com/.default"


@dataclass
class Credential:
    """A credential without a sign-in: each call takes one of the tokens, and the last one is repeated."""

    tokens: list[str]
    asked: list[tuple[Any, Any]] = field(default_factory=list)

    def get_token(self, *scopes: str, tenant_id: str | None = None, **options: Any) -> AccessToken:
        self.asked.append((scopes, tenant_id))
        token = self.tokens[min(len(self.asked), len(self.tokens)) - 1]
        return AccessToken(token, int(time.time()) + 600)


class AsynchronousCredential(Credential):
    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:  # type: ignore[override]
        return super().get_token(*scopes, **options)

    async def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with issuing.serving() as served:
        # as Entra names them, so that the SDK finds the tenant
        name = f"{served.url}/{TENANT}/v2.0"
        served.has(f"/{TENANT}/v2.0{CONFIGURATION}", {"issuer": name, "jwks_uri": f"{served.url}/keys"})
        yield served


@pytest.fixture(scope="module")
def token(issuer: Issuer) -> Callable[..., str]:
    """Return `token("role", …)`, which makes a token that the server trusts, unless a claim prevents it."""

    def make(*roles: str, **claims: Any) -> str:
        return issuing.token(**{"iss": f"{issuer.url}/{TENANT}/v2.0", "roles": [*roles], **claims})

    return make


@pytest.fixture(scope="module")
def server(scratch: Path, certificate: Path, issuer: Issuer) -> Iterator[LiveServer]:
    env = {"TABLERO_OIDC_ISSUER": f"{issuer.url}/{TENANT}/v2.0", "TABLERO_OIDC_AUDIENCE": issuing.AUDIENCE}
    with start_server(seeded(scratch / new_name()), *tls(certificate), env=env) as live:
        yield live
        # every token begins with these letters, which no other output contains
        assert not any("eyJ" in line for line in live.output)


@pytest.fixture(scope="module")
def manage(server: LiveServer, certificate: Path) -> Iterator[Callable[..., Any]]:
    """Return `manage("PATCH", "/ada", label="A")`, which changes accounts by the management API, faster than a
    command.
    """
    server.manage("user", "add", "admin", "--admin")
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {server.add_token('admin', 'ci')}"

        def ask(method: str, path: str = "", **body: Any) -> Any:
            address = f"{server.url}/ui/api/v1/accounts{path}"
            answer = session.request(method, address, json=body, timeout=180, verify=str(certificate))
            answer.raise_for_status()
            return answer.json() if answer.content else None

        yield ask


@pytest.fixture(scope="module")
def basic(scratch: Path, certificate: Path) -> Iterator[LiveServer]:
    """Start a server that trusts every issuer."""
    with start_server(seeded(scratch / new_name()), *tls(certificate), "--oauth", "basic") as live:
        yield live


@pytest.fixture(scope="module")
def plain(scratch: Path) -> Iterator[LiveServer]:
    """Start a server that trusts every issuer, without TLS, which is left to a proxy."""
    with start_server(
        seeded(scratch / new_name()), "--oauth", "basic", "--trusted-proxies", "127.0.0.0/8"
    ) as live:
        yield live


def tls(certificate: Path) -> tuple[str, ...]:
    return "--tls-cert", str(certificate), "--tls-key", str(certificate.with_suffix(".key"))


@pytest.fixture
def opened(library: Any, server: LiveServer, certificate: Path) -> Callable[..., Any]:
    """Return `opened("token", …)`, which opens the service by those tokens, one after the other."""

    def open_by(*tokens: str, credential: Any = None, live: LiveServer = server, account: str = "") -> Any:
        kind = AsynchronousCredential if isinstance(library, Asynchronous) else Credential
        return library.open_service(
            None,
            f"{live.url}/{account or live.account}",
            credential=credential or kind([*tokens]),
            connection_verify=str(certificate),
            **OPTIONS,
        )

    return open_by


@pytest.fixture
def credential(library: Any) -> Callable[..., Any]:
    kind = AsynchronousCredential if isinstance(library, Asynchronous) else Credential
    return lambda *tokens: kind([*tokens])


@pytest.fixture
def people(server: LiveServer, certificate: Path) -> Iterator[str]:
    """Make a table that holds one entity with the account key, and yield its name."""
    with by_key(server, certificate) as service:
        name = new_name()
        service.create_table(name).create_entity(ADA)
        yield name
        service.delete_table(name)


def by_key(live: LiveServer, certificate: Path, account: str = "", key: str = "") -> TableServiceClient:
    credential = AzureNamedKeyCredential(account or live.account, key or live.key)
    return TableServiceClient(
        f"{live.url}/{account or live.account}",
        credential=credential,
        connection_verify=str(certificate),
        **OPTIONS,
    )


@dataclass
class Reply:
    status: int
    headers: Message
    body: bytes

    @property
    def error(self) -> tuple[int, str | None]:
        return self.status, self.headers["x-ms-error-code"]


def ask(url: str, certificate: Path, **headers: str) -> Reply:
    """Send one GET with these headers and no others."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, headers=names)
    context = ssl.create_default_context(cafile=certificate)
    try:
        with urllib.request.urlopen(request, timeout=180, context=context) as response:
            return Reply(response.status, response.headers, response.read())
    except urllib.error.HTTPError as error:
        with error:
            return Reply(error.code, error.headers, error.read())


def refused(operation: Callable[[], Any]) -> Any:
    with pytest.raises(HttpResponseError) as refusal:
        operation()
    error: Any = refusal.value
    # the SDK reads the code from the body, but not in every operation; parts of a batch have it there only
    code = getattr(error, "error_code", None) or error.response.headers["x-ms-error-code"]
    return error.status_code, str(code.value if isinstance(code, Enum) else code)


class TestRoles:
    def test_a_contributor_works_with_tables_and_entities(self, opened, token):
        service = opened(token(CONTRIBUTOR))
        name = new_name()
        table = service.create_table(name)
        table.upsert_entity(ADA)
        table.submit_transaction([("create", {**ADA, "RowKey": "bob"}), ("delete", ADA)])
        assert [entity["RowKey"] for entity in table.query_entities("Born eq 1815")] == ["bob"]
        assert name in [table.name for table in service.list_tables()]
        table.set_table_access_policy({"p": TableAccessPolicy(permission="r")})
        assert list(table.get_table_access_policy()) == ["p"]
        service.delete_table(name)

    def test_a_contributor_leaves_the_service_alone(self, opened, token):
        service = opened(token(CONTRIBUTOR))
        for operation in (service.set_service_properties, service.get_service_properties):
            assert refused(operation) == (403, "AuthorizationPermissionMismatch")

    def test_a_reader_reads_and_changes_nothing(self, opened, token, people):
        service = opened(token(READER))
        table = service.get_table_client(people)
        assert table.get_entity("se", "ada")["Born"] == 1815
        assert len(list(table.list_entities())) == 1
        assert people in [table.name for table in service.list_tables()]
        for operation in (
            lambda: service.create_table(new_name()),
            lambda: service.delete_table(people),
            lambda: table.create_entity({**ADA, "RowKey": "bob"}),
            lambda: table.upsert_entity(ADA),
            lambda: table.update_entity(ADA),
            lambda: table.delete_entity(ADA),
            lambda: table.submit_transaction([("upsert", ADA)]),
        ):
            assert refused(operation) == (403, "AuthorizationPermissionMismatch")
        assert refused(table.get_table_access_policy)[0] == 403

    def test_an_owner_sets_properties(self, opened, token):
        service = opened(token(OWNER))
        service.set_service_properties(cors=[])
        assert service.get_service_properties()["cors"] == []

    def test_without_a_role_nothing_is_permitted(self, opened, token, people):
        for service in (opened(token()), opened(token("Owner")), opened(token(roles="nothing"))):
            operation = service.get_table_client(people).get_entity
            assert refused(lambda: operation("se", "ada")) == (403, "AuthorizationPermissionMismatch")  # noqa: B023

    def test_a_role_for_another_account_counts_for_nothing(self, opened, token, people):
        assert opened(token(f"{READER}@devstoreaccount1")).get_table_client(people).get_entity("se", "ada")
        other = opened(token(f"{READER}@other"))
        assert refused(lambda: list(other.list_tables())) == (403, "AuthorizationPermissionMismatch")


class TestTokens:
    @BOTH
    def test_asks_for_the_storage_scope_once(self, opened, token, credential, people):
        result = credential(token(READER))
        service = opened(credential=result)
        for _ in range(3):
            service.get_table_client(people).get_entity("se", "ada")
        assert result.asked == [((SCOPE,), None)]

    @BOTH
    def test_the_challenge_names_tenant_and_resource(self, opened, token, credential, people):
        result = credential("malformed", token(READER))
        assert opened(credential=result).get_table_client(people).get_entity("se", "ada")
        assert result.asked == [((SCOPE,), None), ((SCOPE,), TENANT)]

    @BOTH
    def test_a_second_malformed_token_is_given_up(self, opened):
        assert refused(lambda: list(opened("malformed").list_tables())) == (401, "InvalidAuthenticationInfo")

    def test_refuses_untrusted_tokens(self, opened, token):
        for claims in ({"iss": "https://elsewhere.example"}, {"exp": 1}, {"key": OTHER_KEY}):
            service = opened(token(CONTRIBUTOR, **claims))
            assert refused(lambda: list(service.list_tables())) == (403, "AuthenticationFailed")  # noqa: B023

    def test_refuses_sign_in_to_a_missing_account(self, opened, token):
        service = opened(token(CONTRIBUTOR), account="nobody")
        assert refused(lambda: list(service.list_tables())) == (403, "AuthenticationFailed")


class TestChallenge:
    def test_a_request_without_authorization_is_told_where_to_get_a_token(self, server, certificate, issuer):
        for headers in ({}, {"x_ms_version": "2020-12-06"}, {"x_ms_version": "2019-02-02"}):
            reply = ask(f"{server.endpoint}/Tables", certificate, **headers)
            assert reply.error == (401, "InvalidAuthenticationInfo")
            assert reply.headers["WWW-Authenticate"] == (
                f"Bearer authorization_uri={issuer.url}/{TENANT}/oauth2/authorize"
                " resource_id=https://storage.azure.com"
            )
            assert b"Please refer to the information in the www-authenticate header." in reply.body
            assert b"WWW-Authenticate" not in reply.body

    def test_a_signature_is_not_challenged(self, server, certificate):
        url = f"{server.endpoint}/Tables"
        wrong = ask(url, certificate, Authorization=f"SharedKey {server.account}:AAAA")
        assert wrong.error == (403, "AuthenticationFailed")
        malformed = ask(url, certificate, Authorization="SharedKey x")
        assert malformed.error == (400, "InvalidAuthenticationInfo")
        sas = ask(f"{url}?sv=2019-02-02&ss=t&srt=sco&sp=r&se=2090-01-01&sig=AAAA", certificate)
        assert sas.error == (403, "AuthenticationFailed")
        for reply in (wrong, malformed, sas):
            assert reply.headers["WWW-Authenticate"] is None

    def test_a_token_and_a_signature_do_not_mix(self, server, certificate, token):
        url = f"{server.endpoint}/Tables?sv=2019-02-02&ss=t&srt=sco&sp=r&se=2090-01-01&sig=AAAA"
        reply = ask(url, certificate, Authorization=f"Bearer {token(READER)}")
        assert reply.error == (403, "AuthenticationFailed")

    def test_any_version_will_do_with_a_token(self, server, certificate, token):
        for version in ("2020-12-06", "2019-02-02", "2026-06-06"):
            headers = {"Authorization": f"Bearer {token(READER)}", "Accept": "application/json"}
            reply = ask(f"{server.endpoint}/Tables", certificate, x_ms_version=version, **headers)
            assert reply.status == 200
            assert "value" in json.loads(reply.body)


class TestAccounts:
    def test_keys_can_be_switched_off_and_the_account_too(self, server, certificate, opened, token, manage):
        made = manage("POST", name="ada")
        parts = dict(part.split("=", 1) for part in made["connection_string"].split(";") if part)
        service = opened(token(CONTRIBUTOR), account="ada")
        with by_key(server, certificate, "ada", parts["AccountKey"]) as keyed:
            assert list(keyed.list_tables()) == list(service.list_tables()) == []

            manage("PATCH", "/ada", shared_key_access=False)
            code = "KeyBasedAuthenticationNotPermitted"
            assert refused(lambda: list(keyed.list_tables())) == (403, code)
            assert list(service.list_tables()) == []

            manage("POST", "/ada/freeze")
            for client in (keyed, service):
                assert refused(lambda: list(client.list_tables())) == (403, "AccountIsDisabled")  # noqa: B023

            manage("POST", "/ada/thaw")
            manage("PATCH", "/ada", shared_key_access=True)
            assert list(keyed.list_tables()) == list(service.list_tables()) == []
        manage("DELETE", "/ada")


class TestBasic:
    def test_accepts_any_unexpired_token(self, basic, opened):
        service = opened(anybody(), live=basic)
        name = new_name()
        service.create_table(name).create_entity(ADA)
        service.delete_table(name)
        service.set_service_properties(cors=[])

    def test_refuses_an_expired_one(self, basic, opened):
        service = opened(anybody(exp=int(time.time()) - 301), live=basic)
        assert refused(lambda: list(service.list_tables())) == (403, "AuthenticationFailed")

    def test_challenges(self, basic, opened):
        service = opened("malformed", live=basic)
        assert refused(lambda: list(service.list_tables())) == (401, "InvalidAuthenticationInfo")


class TestProxy:
    """The requests of a proxy that ends TLS: the server itself speaks plain HTTP."""

    def test_https_at_the_proxy_is_https(self, plain, certificate):
        authorization = f"Bearer {anybody()}"
        url = f"{plain.endpoint}/Tables"
        reply = ask(url, certificate, Authorization=authorization, X_Forwarded_Proto="https")
        assert reply.status != 403

    @pytest.mark.parametrize(
        "headers", [{}, {"X_Forwarded_Proto": "http"}, {"X_Forwarded_Proto": "nonsense"}]
    )
    def test_plain_http_is_refused(self, plain, certificate, headers):
        authorization = f"Bearer {anybody()}"
        reply = ask(f"{plain.endpoint}/Tables", certificate, Authorization=authorization, **headers)
        assert reply.error == (403, "AuthenticationFailed")
        detail = b"Authentication scheme Bearer is not allowed with HTTP."
        assert detail in reply.body

    @pytest.mark.parametrize(
        ("headers", "expected"),
        [
            ({"X_Forwarded_Proto": "https", "X_Forwarded_For": "203.0.113.7"}, None),
            ({"X_Forwarded_Proto": "https", "X_Forwarded_For": "10.0.0.1, 203.0.113.7, 127.0.0.2"}, None),
            (
                {"X_Forwarded_Proto": "https", "X_Forwarded_For": "203.0.113.7, 203.0.113.8"},
                "AuthorizationSourceIPMismatch",
            ),
            ({"X_Forwarded_Proto": "https", "X_Forwarded_For": "unknown"}, "AuthorizationSourceIPMismatch"),
            ({"X_Forwarded_Proto": "https"}, "AuthorizationSourceIPMismatch"),
            ({"X_Forwarded_For": "203.0.113.7"}, "AuthorizationProtocolMismatch"),
        ],
    )
    def test_a_signature_is_held_to_the_client_behind_the_proxy(self, plain, certificate, headers, expected):
        token = generate_account_sas(
            AzureNamedKeyCredential(plain.account, plain.key),
            ResourceTypes(container=True),
            AccountSasPermissions(list=True),
            datetime.now(UTC) + timedelta(hours=1),
            ip_address_or_range="203.0.113.7",
            protocol="https",
        )
        url = f"{plain.endpoint}/Tables?{token}"
        reply = ask(url, certificate, Accept="application/json", **headers)
        assert reply.error == (403 if expected else 200, expected)


class TestJavaScript:
    def test_the_sdk_signs_in(
        self,
        server: LiveServer,
        certificate: Path,
        token: Callable[..., str],
        sdk_folder: Path,
        require: Callable[[str, str], str],
    ) -> None:
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "NODE_EXTRA_CA_CERTS": str(certificate),
            "SDK_FOLDER": str(sdk_folder),
            "TABLE_ENDPOINT": server.endpoint,
            "CONTRIBUTOR": token(CONTRIBUTOR),
            "READER": token(READER),
        }
        script = ROOT / "tests" / "clients" / "javascript" / "bearer.mjs"
        finished = subprocess.run(
            [require("node", "the JavaScript SDK"), str(script)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert finished.returncode == 0, finished.stderr
        assert json.loads(finished.stdout) == {
            "contributor": ["ada"],
            "reader": "AuthorizationPermissionMismatch",
            "asked": [[[SCOPE], None], [[SCOPE], TENANT]],
            "given up": 401,
        }


def anybody(**claims: Any) -> str:
    """Return a token that no server has reason to trust."""
    now = int(time.time())
    return jwt.encode({"exp": now + 600, "sub": "eve", **claims}, "s" * 32, algorithm="HS256")
