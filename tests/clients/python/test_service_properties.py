"""Properties of the service: logs, metrics and CORS rules of an account, what they change, and its statistics."""

import socket
from datetime import UTC, datetime, timedelta

import pytest
import requests
from azure.core.credentials import AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAnalyticsLogging,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    generate_account_sas,
)

from tests.clients.conftest import HOST_SUFFIX

from .access import HOUR, now, outcome_of, refusal_of
from .conftest import OPTIONS, new_name

WEEK = TableRetentionPolicy(enabled=True, days=7)
PARTS = ("analytics_logging", "hour_metrics", "minute_metrics", "cors")


@pytest.fixture(autouse=True)
def as_found(service):
    """The properties are the account's: each test leaves them as it found them."""
    found = service.get_service_properties()
    yield
    service.set_service_properties(**found)


def as_text(properties):
    """By their members, because the SDK's classes do not compare."""
    return {part: repr_of(properties[part]) for part in PARTS}


def repr_of(value):
    if isinstance(value, list):
        return [repr_of(item) for item in value]
    return {
        name: repr_of(member) if hasattr(member, "__dict__") else member
        for name, member in vars(value).items()
    }


class TestProperties:
    def test_measure_the_hours_of_a_new_account(self, library, server, service):
        properties = service.get_service_properties()

        assert set(PARTS) <= properties.keys()
        assert properties["hour_metrics"].enabled
        assert properties["hour_metrics"].include_apis
        assert properties["hour_metrics"].retention_policy.days == 7
        assert not properties["minute_metrics"].enabled
        assert not properties["analytics_logging"].write
        assert properties["cors"] == []

    def test_come_back(self, service):
        rules = [
            TableCorsRule(
                ["http://www.abc.com", "http://www.ab.com"],
                ["GET", "PUT"],
                max_age_in_seconds=500,
                exposed_headers=["x-ms-meta-data*", "x-ms-meta-source*", "x-ms-meta-abc"],
                allowed_headers=["x-ms-meta-data*", "x-ms-meta-target*", "x-ms-meta-xyz"],
            ),
            TableCorsRule(["*"], ["GET", "PATCH", "MERGE"]),
        ]
        wanted = {
            "analytics_logging": TableAnalyticsLogging(
                read=True, write=True, delete=True, retention_policy=WEEK
            ),
            "hour_metrics": TableMetrics(enabled=True, include_apis=False, retention_policy=WEEK),
            "minute_metrics": TableMetrics(enabled=True, include_apis=True),
            "cors": rules,
        }

        assert service.set_service_properties(**wanted) is None

        assert as_text(service.get_service_properties()) == as_text(wanted)

    @pytest.mark.parametrize(
        ("part", "value"),
        [
            ("analytics_logging", TableAnalyticsLogging(read=True, write=True, retention_policy=WEEK)),
            ("hour_metrics", TableMetrics()),
            ("hour_metrics", TableMetrics(enabled=True, include_apis=True)),
            ("minute_metrics", TableMetrics(enabled=True, include_apis=False, retention_policy=WEEK)),
            ("cors", [TableCorsRule(["https://app.example"], ["GET"])]),
            ("cors", []),
        ],
        ids=str,
    )
    def test_are_set_one_by_one(self, service, part, value):
        before = as_text(service.get_service_properties())

        service.set_service_properties(**{part: value})

        assert as_text(service.get_service_properties()) == {**before, part: repr_of(value)}

    def test_stay_when_nothing_is_set(self, service):
        before = as_text(service.get_service_properties())

        service.set_service_properties()

        assert as_text(service.get_service_properties()) == before

    def test_are_read_from_the_secondary(self, library, server, credential):
        secondary = library.open_service(
            None, server.endpoint, credential=credential, location_mode="secondary", **OPTIONS
        )

        assert secondary.get_service_properties()["hour_metrics"]
        assert refusal_of(secondary.set_service_properties) == (403, "InsufficientAccountPermissions")

    @pytest.mark.parametrize("days", [1, 365])
    def test_keep_for_1_to_365_days(self, service, days):
        metrics = TableMetrics(
            enabled=True, include_apis=True, retention_policy=TableRetentionPolicy(enabled=True, days=days)
        )

        service.set_service_properties(hour_metrics=metrics)

        assert service.get_service_properties()["hour_metrics"].retention_policy.days == days

    @pytest.mark.parametrize(
        "wrong",
        [
            {
                "hour_metrics": TableMetrics(
                    enabled=True,
                    include_apis=True,
                    retention_policy=TableRetentionPolicy(enabled=True, days=366),
                )
            },
            {
                "minute_metrics": TableMetrics(
                    enabled=True,
                    include_apis=True,
                    retention_policy=TableRetentionPolicy(enabled=True, days=0),
                )
            },
            {"hour_metrics": TableMetrics(enabled=True)},
            {"cors": [TableCorsRule(["*"], ["GET"])] * 6},
            {"cors": [TableCorsRule(["*"], ["CONNECT"])]},
            {"cors": [TableCorsRule(["*"], ["GET"], max_age_in_seconds=-1)]},
            {"cors": [TableCorsRule(["*"], ["GET"], exposed_headers=["x-ms-meta-" + "a" * 300])]},
            {"cors": [TableCorsRule([f"https://{number}.example" for number in range(65)], ["GET"])]},
        ],
        ids=["366 days", "0 days", "no include_apis", "six rules", "method", "age", "header", "65 origins"],
    )
    def test_are_checked(self, service, wrong):
        before = as_text(service.get_service_properties())

        assert refusal_of(lambda: service.set_service_properties(**wrong))[0] == 400

        assert as_text(service.get_service_properties()) == before

    def test_of_a_table_are_none(self, library, server, service, people):
        """A common mistake of users: the SDK adds a hint when the code is the service's."""
        mistaken = library.open_service(
            None, f"{server.endpoint}/{people.table_name}", credential=service.credential, **OPTIONS
        )

        for operation in (mistaken.get_service_properties, mistaken.set_service_properties):
            with pytest.raises(HttpResponseError, match="Please check your account URL") as refusal:
                operation()
            assert refusal.value.status_code == 400
            assert refusal.value.error_code == "InvalidQueryParameterValue"


class TestStatistics:
    @pytest.fixture
    def named(self, library, secure_server, certificate, credential, monkeypatch):
        """A client of the account by the name of a host, which only tests can look up here."""
        real = socket.getaddrinfo

        def look_up(host, *arguments, **options):
            return real("127.0.0.1" if HOST_SUFFIX in str(host) else host, *arguments, **options)

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        host = f"{HOST_SUFFIX}:{secure_server.port}"
        return library.open_service(
            None,
            f"https://{secure_server.account}.{host}",
            credential=credential,
            connection_verify=str(certificate),
            secondary_hostname=f"{secure_server.account}-secondary.{host}",
            **OPTIONS,
        )

    @pytest.mark.parametrize("address", ["service", "named"])
    def test_are_those_of_the_secondary(self, request, address):
        replication = request.getfixturevalue(address).get_service_stats()["geo_replication"]

        assert replication["status"] == "live"
        assert timedelta(0) <= now() - replication["last_sync_time"] < timedelta(hours=1)

    @pytest.mark.parametrize(
        ("types", "letters", "code"),
        [
            ("s", "r", None),
            ("s", "wl", "AuthorizationPermissionMismatch"),
            ("co", "r", "AuthorizationResourceTypeMismatch"),
        ],
    )
    def test_are_read_by_a_token(self, library, server, credential, types, letters, code):
        token = generate_account_sas(
            credential,
            ResourceTypes.from_string(types),
            AccountSasPermissions.from_string(letters),
            now() + HOUR,
        )
        service = library.open_service(None, server.endpoint, credential=AzureSasCredential(token), **OPTIONS)

        assert outcome_of(service.get_service_stats) == (code and (403, code))


class TestCors:
    ORIGIN = "https://app.example"

    @pytest.fixture
    def rules(self, service):
        """`rules(rule, ...)`: the account's rules."""
        return lambda *rules: service.set_service_properties(cors=rules)

    @pytest.fixture
    def preflight(self, server):
        def ask(method="GET", path="/people", origin=self.ORIGIN, **headers):
            asked = {"Origin": origin, "Access-Control-Request-Method": method, **headers}
            return requests.options(server.endpoint + path, headers=asked, timeout=10)

        return ask

    def test_is_off_at_first(self, preflight):
        answer = preflight()

        assert answer.status_code == 403
        assert answer.headers["x-ms-error-code"] == "CorsPreflightFailure"
        assert "Access-Control-Allow-Origin" not in answer.headers

    def test_allows_what_a_rule_allows(self, rules, preflight):
        rules(
            TableCorsRule(
                [self.ORIGIN], ["GET", "PUT"], allowed_headers=["x-ms-*", "accept"], max_age_in_seconds=60
            )
        )

        answer = preflight("PUT", **{"Access-Control-Request-Headers": "x-ms-date,Accept"})

        assert answer.status_code == 200
        assert answer.headers["Access-Control-Allow-Origin"] == self.ORIGIN
        assert answer.headers["Access-Control-Allow-Methods"] == "PUT"
        assert answer.headers["Access-Control-Allow-Headers"] == "x-ms-date,Accept"
        assert answer.headers["Access-Control-Max-Age"] == "60"
        assert answer.headers["Access-Control-Allow-Credentials"] == "true"
        assert answer.content == b""

    @pytest.mark.parametrize(
        "other",
        [
            {"method": "DELETE"},
            {"origin": "https://APP.example"},
            {"origin": "http://app.example"},
            {"Access-Control-Request-Headers": "x-ms-date,if-match"},
        ],
        ids=str,
    )
    def test_refuses_what_no_rule_allows(self, rules, preflight, other):
        rules(TableCorsRule([self.ORIGIN], ["GET", "PUT"], allowed_headers=["x-ms-*"]))

        assert preflight().status_code == 200
        assert preflight(**other).headers["x-ms-error-code"] == "CorsPreflightFailure"

    def test_is_asked_with_a_token_in_the_url(self, rules, preflight, sas_of):
        rules(TableCorsRule(["*"], ["GET"]))

        answer = preflight(path=f"/people?{sas_of(permission='r', expiry=datetime(2020, 1, 1, tzinfo=UTC))}")

        assert answer.status_code == 200
        assert answer.headers["Access-Control-Allow-Origin"] == "*"

    def test_reads_by_a_token(self, rules, server, stored, sas_of):
        rules(TableCorsRule([self.ORIGIN], ["GET"], exposed_headers=["x-ms-request-id"]))
        url = f"{server.endpoint}/{stored.table_name}?{sas_of(permission='r')}"
        headers = {"Origin": self.ORIGIN, "Accept": "application/json"}

        answer = requests.get(url, headers=headers, timeout=10)

        assert answer.json()["value"][0]["RowKey"] == "ada"
        assert answer.headers["Access-Control-Allow-Origin"] == self.ORIGIN
        assert answer.headers["Access-Control-Expose-Headers"] == "x-ms-request-id"
        assert answer.headers["Vary"] == "Origin"

    def test_serves_the_sdk_as_before(self, rules, stored):
        rules(TableCorsRule([self.ORIGIN], ["GET"]))

        assert stored.get_entity("se", "ada")["RowKey"] == "ada"
        with pytest.raises(ResourceNotFoundError):
            stored.get_entity("se", new_name())
