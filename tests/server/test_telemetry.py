"""Traces and metrics of a server for a collector of OpenTelemetry."""

import math
import subprocess
import sys
from types import SimpleNamespace

import pytest
import requests
from azure.core.exceptions import ResourceNotFoundError
from azure.core.settings import settings as sdk_settings
from azure.data.tables import TableServiceClient
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from storage.domain.requests import spans
from storage.tracing import exporting, variables
from storage.tracing.exporting import Telemetry
from storage.tracing.variables import Signals
from tests.collector import collecting, plain
from tests.live_server import ROOT, clean_environment, start_server
from tests.seeds import seeded
from tests.waiting import wait_for

FAST = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "200"}
PATIENT = {"OTEL_EXPORTER_OTLP_TIMEOUT": "60", "OTEL_METRIC_EXPORT_TIMEOUT": "60000"}
SECRET = "Ada-secret"


@pytest.fixture(scope="module")
def traced_client():
    """Let the SDK send a traceparent, as an application with tracing does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", TracerProvider())
        sdk_settings.tracing_enabled = True
        yield trace.get_tracer("client")
        sdk_settings.tracing_enabled.unset_value()


@pytest.fixture(scope="module")
def told(scratch, traced_client):
    """Return the telemetry of requests, a page, the API and a job of a server, by name, as a collector received it."""
    with collecting() as collector:
        variables = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=tests",
            **FAST,
            **PATIENT,
        }
        with start_server(seeded(scratch / "traced"), "--workers", "2", env=variables) as live:
            with TableServiceClient.from_connection_string(live.connection_string) as sdk:
                people = sdk.create_table("people")
                people.create_entity({"PartitionKey": SECRET, "RowKey": "r", "Name": SECRET})
                with traced_client.start_as_current_span("work") as work:
                    people.get_entity(SECRET, "r", headers={"x-ms-client-request-id": "mine"})
                    with pytest.raises(ResourceNotFoundError) as refused:
                        people.get_entity(SECRET, "other")
                list(people.query_entities(f"Name eq '{SECRET}'"))
            page = requests.get(f"{live.url}/ui/login/", timeout=60)
            live.manage("user", "add", "robot", "--admin")
            token = live.add_token("robot", "traces")
            headers = {"Authorization": f"Bearer {token}"}
            address = f"{live.url}/ui/api/v1/accounts/{live.account}"
            assert requests.get(f"{address}/tables/nothing", headers=headers, timeout=60).status_code == 404
            later = {**headers, "Prefer": "respond-async"}
            copy = requests.post(f"{address}/copy", json={"name": "copied"}, headers=later, timeout=60)
            assert copy.status_code == 202, copy.text
            spans = {
                "get": collector.wait_for_span(name="QueryEntity", az__client_request_id="mine"),
                "refused": collector.wait_for_span(name="QueryEntity", error__type="ResourceNotFound"),
                "query": collector.wait_for_span(name="QueryEntities"),
                "page": collector.wait_for_span(tablero__request_id=page.headers["X-Request-Id"]),
                "api": collector.wait_for_span(error__type="not-found"),
                "job": collector.wait_for_span(tablero__job__kind="account.copy"),
            }
            # may be in a later batch
            wait_for(lambda: all(collector.children(spans[name]) for name in ("get", "api")))
            wait_for(lambda: (steps := steps_of(collector, spans["job"])) and collector.children(steps[0]))
            wait_for(lambda: counted(collector) >= 4)
    return SimpleNamespace(
        collector=collector,
        live=live,
        trace_id=work.get_span_context().trace_id,
        refused_id=refused.value.response.headers["x-ms-request-id"],
        secrets=(SECRET, live.key, token),
        **spans,
    )


@pytest.mark.long
def test_requests_belong_to_the_trace_of_their_client(told):
    assert int.from_bytes(told.get.trace_id) == int.from_bytes(told.refused.trace_id) == told.trace_id
    assert told.get.parent_span_id and told.get.kind == told.get.SPAN_KIND_SERVER


@pytest.mark.long
def test_a_request_says_what_it_did(told):
    attributes = plain(told.get.attributes)
    assert attributes.pop("client.address") == "127.0.0.1"
    assert attributes.pop("user_agent.original").startswith("azsdk-python-data-tables/")
    assert len(attributes.pop("az.service_request_id")) == 36
    assert attributes.pop("http.response.body.size") > 0
    assert attributes == {
        "http.request.method": "GET",
        "http.response.status_code": 200,
        "http.request.body.size": 0,
        "tablero.account": told.live.account,
        "tablero.table": "people",
        "tablero.operation": "QueryEntity",
        "tablero.access_path": "point",
        "tablero.authentication": "authenticated",
        "az.client_request_id": "mine",
    }
    assert plain(told.query.attributes)["tablero.access_path"] == "table-scan"


@pytest.mark.long
def test_the_round_trip_to_the_database_is_a_span_within_that_of_the_request(told):
    get, (round_trip,) = told.get, told.collector.children(told.get)
    assert plain(round_trip.attributes) == {"db.system.name": "postgresql"}
    assert get.start_time_unix_nano <= round_trip.start_time_unix_nano
    assert round_trip.start_time_unix_nano < round_trip.end_time_unix_nano <= get.end_time_unix_nano


@pytest.mark.long
def test_a_client_error_is_not_a_server_error(told):
    assert plain(told.refused.attributes)["az.service_request_id"] == told.refused_id
    assert not told.refused.status.code


@pytest.mark.long
def test_pages_the_api_and_the_steps_of_jobs_have_spans(told):
    assert (told.page.name, plain(told.page.attributes)["http.response.status_code"]) == (
        "GET /ui/login/",
        200,
    )
    assert told.api.name == "GET /ui/api/v1/accounts/<str:account>/tables/<str:table>"
    assert plain(told.api.attributes)["tablero.account"] == told.live.account
    assert {plain(it.attributes)["db.operation.name"] for it in told.collector.children(told.api)} >= {
        "SELECT"
    }
    assert told.collector.children(steps_of(told.collector, told.job)[0])


@pytest.mark.long
def test_secrets_and_values_are_nowhere(told):
    everything = str(told.collector.traces) + str(told.collector.metrics)
    assert not [secret for secret in told.secrets if secret in everything]
    assert "opentelemetry" not in "\n".join(told.live.output)


@pytest.mark.long
def test_each_process_tells_itself_apart(told):
    resources = [resource for _, resource in told.collector.spans()]
    assert {it["service.name"] for it in resources} == {"tablero"}
    assert {it["deployment.environment"] for it in resources} == {"tests"}
    assert len({it["service.instance.id"] for it in resources}) <= 2
    (latency,) = {tuple(it.explicit_bounds) for it in told.collector.points("tablero.request")}
    assert latency[0] < 0.01 and len(latency) > 5


def steps_of(collector, job):
    return [it for it in collector.children(job) if it.name == "step"]


def counted(collector):
    """Return the number of operations on entities that the processes have counted."""
    points = collector.points("tablero.requests")
    return sum(it.as_double for it in points if "Entit" in plain(it.attributes)["operation"])


def test_without_variables_nothing_is_imported_or_wrapped():
    code = (
        "import sys; from console import asgi; from storage.protocol.table_service import TableService;"
        "assert type(asgi.service) is TableService and asgi.service._service.__class__.__name__ == 'Service';"
        "assert asgi.tracer is None and asgi.serve == asgi.service.serve;"
        "assert 'resolve_request' not in vars(asgi.django) and asgi.pages.func is asgi._console;"
        "print([it for it in sys.modules if it.startswith(('opentelemetry', 'google.protobuf'))])"
    )
    line = [sys.executable, "-c", code]
    done = subprocess.run(
        line, capture_output=True, text=True, cwd=ROOT, env=clean_environment(), timeout=180
    )
    assert done.stdout.strip() == "[]", done.stderr


ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("environ", "traces", "metrics", "logged"),
    [
        ({}, False, False, ""),
        ({"OTEL_SERVICE_NAME": "mine"}, False, False, ""),
        ({ENDPOINT: "http://c:4318"}, True, True, ""),
        ({ENDPOINT: " "}, False, False, ""),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/v1/traces"}, True, False, ""),
        ({"OTEL_METRICS_EXPORTER": "otlp"}, False, True, ""),
        ({ENDPOINT: "http://c:4318", "OTEL_METRICS_EXPORTER": "none"}, True, False, ""),
        ({ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, False, False, ""),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False, False, "only otlp and none"),
        (
            {ENDPOINT: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            False,
            False,
            "only http/protobuf",
        ),
        (
            {ENDPOINT: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
            | {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"},
            True,
            False,
            "only http/protobuf",
        ),
    ],
)
def test_only_the_standard_variables_turn_it_on(environ, traces, metrics, logged, caplog):
    assert variables.read(environ) == Signals(traces=traces, metrics=metrics)
    assert logged in caplog.text and bool(logged) == bool(caplog.text)


def test_says_so_when_the_extra_is_missing(monkeypatch, caplog):
    monkeypatch.setattr(variables.importlib.util, "find_spec", lambda name: None)

    assert variables.start({ENDPOINT: "http://c:4318"}) is None

    assert "install tablero-server[otel]" in caplog.text


def test_a_collector_that_is_down_is_logged_once_and_costs_no_traces(monkeypatch, caplog):
    with collecting() as collector:
        collector.status = 403  # the exporter does not repeat it by itself
        monkeypatch.setenv(ENDPOINT, collector.endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")
        monkeypatch.setattr(exporting, "_PROBE_INTERVAL", 60.0)
        telemetry = Telemetry(Signals(traces=True, metrics=False))
        telemetry.open()
        telemetry.begin("GET", {}).finish()
        wait_for(lambda: telemetry._collector.is_down)

        begun = [telemetry.begin("GET", {}) for _ in range(100)]

        assert [it is not None for it in begun].count(True) <= 1  # in an interval
        telemetry._probed_at = -math.inf
        telemetry.begin("GET", {}).finish()
        wait_for(lambda: len(collector.requests) >= 2)
        collector.status = 200
        telemetry._probed_at = -math.inf
        probe = telemetry.begin("GET", {})
        probe.finish()
        wait_for(lambda: not telemetry._collector.is_down)
        assert telemetry.begin("GET", {}) is not None
        telemetry.close()
    down, up = (it.message for it in caplog.records)
    name = f"The collector of OpenTelemetry at {collector.endpoint.removeprefix('http://')}"
    assert down.startswith(f"{name} does not take traces and metrics, which are dropped: Failed")
    assert up == f"{name} answers again."


def test_takes_the_trace_of_the_client_and_its_decision(monkeypatch):
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.1")
    telemetry = Telemetry(Signals(traces=True, metrics=False))
    assert telemetry.begin("GET", {}) is None  # not open
    telemetry._processor = Taken()
    trace_id = "0af7651916cd43dd8448eb211c80319c"

    def begin(header, **more):
        return telemetry.begin("GET", {b"traceparent": header.encode(), **more})

    sampled = begin(f"00-{trace_id}-b7ad6b7169203331-01", tracestate=b"x=1")
    assert begin(f"00-{trace_id}-b7ad6b7169203331-00") is None
    malformed = [begin(it) for it in ("", "00-x-y-01", "é") for _ in range(200)]
    assert 0 < sum(it is not None for it in malformed) < 200  # those are traces of their own

    with sampled:
        with spans.span("step") as step:
            step["tablero.job.done"] = 1
        for _ in range(600):
            with spans.span("more"):
                pass

    root, *others = telemetry._processor.ended
    assert f"{root.context.trace_id:032x}" == trace_id and root.parent.span_id == 0xB7AD6B7169203331
    assert root.attributes["tablero.missed_spans"] == 101 and len(others) == 500
    assert {it.parent.span_id for it in others} == {root.context.span_id}
    assert spans.current.get() is None


class Taken:
    def __init__(self):
        self.ended = []

    def on_end(self, span):
        self.ended.append(span)
