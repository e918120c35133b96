"""Properties of the service: logs, metrics and CORS rules of an account, and its statistics."""

import socket
from datetime import timedelta

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableAnalyticsLogging, TableCorsRule, TableMetrics, TableRetentionPolicy

from tests.clients.conftest import HOST_SUFFIX

from .access import now
from .conftest import OPTIONS

WEEK = TableRetentionPolicy(enabled=True, days=7)
PARTS = ("analytics_logging", "hour_metrics", "minute_metrics", "cors")


@pytest.fixture(autouse=True)
def as_found(service):
    """Restore the account's properties after each test."""
    found = service.get_service_properties()
    yield
    service.set_service_properties(**found)


def as_text(properties):
    """Return the properties by their members, because the SDK's classes do not compare."""
    return {part: repr_of(properties[part]) for part in PARTS}


def repr_of(value):
    if isinstance(value, list):
        return [repr_of(item) for item in value]
    return {
        name: repr_of(member) if hasattr(member, "__dict__") else member
        for name, member in vars(value).items()
    }


class TestProperties:
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
        properties = {
            "analytics_logging": TableAnalyticsLogging(
                read=True, write=True, delete=True, retention_policy=WEEK
            ),
            "hour_metrics": TableMetrics(enabled=True, include_apis=False, retention_policy=WEEK),
            "minute_metrics": TableMetrics(enabled=True, include_apis=True),
            "cors": rules,
        }

        assert service.set_service_properties(**properties) is None

        assert as_text(service.get_service_properties()) == as_text(properties)

    def test_are_set_individually(self, service):
        for part, value in (
            ("analytics_logging", TableAnalyticsLogging(read=True, write=True, retention_policy=WEEK)),
            ("hour_metrics", TableMetrics()),
            ("hour_metrics", TableMetrics(enabled=True, include_apis=True)),
            ("minute_metrics", TableMetrics(enabled=True, include_apis=False, retention_policy=WEEK)),
            ("cors", [TableCorsRule(["https://app.example"], ["GET"])]),
            ("cors", []),
        ):
            before = as_text(service.get_service_properties())
            service.set_service_properties(**{part: value})
            assert as_text(service.get_service_properties()) == {**before, part: repr_of(value)}


class TestStatistics:
    @pytest.fixture
    def named(self, library, secure_server, certificate, monkeypatch):
        """Open a client of the account by the name of a host, which only tests can resolve here."""
        real = socket.getaddrinfo

        def look_up(host, *arguments, **options):
            return real("127.0.0.1" if HOST_SUFFIX in str(host) else host, *arguments, **options)

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        host = f"{HOST_SUFFIX}:{secure_server.port}"
        return library.open_service(
            None,
            f"https://{secure_server.account}.{host}",
            credential=AzureNamedKeyCredential(secure_server.account, secure_server.key),
            connection_verify=str(certificate),
            secondary_hostname=f"{secure_server.account}-secondary.{host}",
            **OPTIONS,
        )

    def test_are_those_of_the_secondary(self, service, named):
        for client in (service, named):
            replication = client.get_service_stats()["geo_replication"]
            assert replication["status"] == "live"
            assert timedelta(0) <= now() - replication["last_sync_time"] < timedelta(hours=1)
