"""A server behind nginx and Caddy, with the configurations that the documents show."""

import json
import re
import shutil
import time

import pytest
import requests
from azure.data.tables import TableServiceClient
from requests.adapters import HTTPAdapter

from tests.certificates import make_certificate
from tests.live_server import start_server
from tests.seeds import seeded
from tests.service import proxies
from tests.waiting import wait_for

pytestmark = pytest.mark.long
USER = {"username": "ada@example.org", "password": "a password of many words"}
NEW = {**USER, "repeated": USER["password"], "language": "en"}
FORGED = "198.51.100.7"
HOSTILE = ("a b", "50%", "%2F", "äöü", "it's + 1", "a%20b", "..", ".", ";=&,@:", "🦊")


@pytest.fixture(scope="module")
def live(scratch):
    """Run a server that trusts the proxies of this machine's first address, with an admin."""
    options = ("--trusted-proxies", "127.0.0.1", "--log-level", "info")
    with start_server(seeded(scratch / "proxied"), *options) as live:
        page, token = re.search(r"(http\S+/ui/setup/)#token=(\S+)", "\n".join(live.output)).groups()
        with requests.Session() as browser:
            submit(browser, page, {"token": token})
            submit(browser, page, NEW)
        yield live


@pytest.fixture(scope="module")
def token(live):
    return live.add_token(USER["username"], "proxies")


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(request, require, scratch, live):
    """Run a proxy in front of the server; yield its address and the certificate that browsers must trust."""
    program = require(request.param, "its configuration")
    folder = scratch / request.param
    folder.mkdir()
    certificate = make_certificate(folder)
    with proxies.running(request.param, program, folder, live.port, certificate) as url:
        yield url, str(certificate[0])
    shutil.rmtree(folder)


def submit(browser, url, fields):
    """Send the form of a page as a browser does, with its hidden field."""
    page = browser.get(url, timeout=60)
    assert page.status_code == 200, page.text
    hidden = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[1]
    answer = browser.post(
        page.url, {"csrfmiddlewaretoken": hidden, **fields}, headers={"Referer": page.url}, timeout=60
    )
    assert answer.status_code == 200 and answer.history, answer.text
    return answer


def sdk(live, url, cert):
    connection = live.connection_string.replace("DefaultEndpointsProtocol=http;", "").replace(live.url, url)
    return TableServiceClient.from_connection_string(connection, connection_verify=cert)


def test_signed_requests_arrive_as_they_were_sent(live, proxy):
    """Their keys have characters that proxies may encode differently, and the change set is the largest."""
    with sdk(live, *proxy) as service:
        table = service.create_table(f"people{time.time_ns()}")
        for key in HOSTILE:
            table.create_entity({"PartitionKey": key, "RowKey": key, "name": key})
            assert table.get_entity(key, key)["name"] == key
        result = table.query_entities("name eq @name", parameters={"name": HOSTILE[3]})
        assert [entity["RowKey"] for entity in result] == [HOSTILE[3]]
        large = [{"PartitionKey": "large", "RowKey": f"{n:03}", "text": "x" * 32_000} for n in range(100)]
        for entity in large:
            entity["more"] = "y" * 8_500
        table.submit_transaction([("create", entity) for entity in large])
        assert len(list(table.query_entities("PartitionKey eq 'large'", select=["RowKey"]))) == 100
        service.delete_table(table.table_name)


class From(HTTPAdapter):
    """Requests from another address of this machine."""

    def __init__(self, address):
        self._address = address
        super().__init__()

    def init_poolmanager(self, *arguments, **options):
        super().init_poolmanager(*arguments, **options, source_address=(self._address, 0))


def seen_address(live, url, source, **options):
    """Return the address that the server sees of a client that claims another one."""
    with requests.Session() as client:
        client.trust_env = False
        client.mount("http://", From(source))
        client.mount("https://", From(source))
        headers = {"X-Forwarded-For": FORGED, "X-Forwarded-Proto": "https"}
        answer = client.get(f"{url}/{live.account}/Tables", headers=headers, timeout=60, **options)
    assert answer.status_code == 403
    number = answer.headers["x-ms-request-id"]
    line = wait_for(lambda: next((line for line in live.output if number in line), None))
    return re.search(r" to (\S+): request", line)[1]


def test_clients_are_known_by_what_the_proxy_sees(live, proxy):
    url, cert = proxy
    assert seen_address(live, url, "127.0.0.3", verify=cert) == "127.0.0.3"


def test_others_than_the_proxy_are_not_believed(live):
    assert seen_address(live, live.url, "127.0.0.2") == "127.0.0.2"


def test_people_sign_in_with_cookies_for_https(live, proxy):
    url, cert = proxy
    with requests.Session() as browser:
        browser.verify, browser.trust_env = cert, False
        submit(browser, f"{url}/ui/login/", {"login": USER["username"], "password": USER["password"]})
        assert browser.get(f"{url}/ui/me/", timeout=60, allow_redirects=False).status_code == 200
        secure = {cookie.name: cookie.secure for cookie in browser.cookies}
        assert secure["__Secure-tablero_session"] and all(secure.values())


def test_events_arrive_while_their_stream_is_open(live, proxy, token):
    url, cert = proxy
    with sdk(live, url, cert) as service, requests.Session() as client:
        table = service.create_table(f"events{time.time_ns()}")
        client.verify, client.trust_env = cert, False
        client.headers["Authorization"] = f"Bearer {token}"
        changes = f"{url}/ui/api/v1/accounts/{live.account}/changes"
        place = {"table": table.table_name}
        place["after"] = client.get(changes, params=place, timeout=60).json()["token"]
        with client.get(
            changes, params=place, headers={"Accept": "text/event-stream"}, stream=True, timeout=60
        ) as stream:
            assert stream.status_code == 200
            lines = (line.decode() for line in stream.iter_lines(chunk_size=1))
            for key in ("first", "second"):
                table.create_entity({"PartitionKey": "p", "RowKey": key})
                change = json.loads(next(line for line in lines if line.startswith("data:"))[5:])
                assert change["row_key"] == key
        service.delete_table(table.table_name)


def test_a_file_larger_than_a_form_is_imported(live, proxy, token):
    url, cert = proxy
    rows = [{"PartitionKey": "p", "RowKey": str(number), "text": "x" * 32_000} for number in range(330)]
    lines = [f"{json.dumps(row)}\n".encode() for row in rows]
    assert sum(map(len, lines)) > 10 << 20
    table = f"files{time.time_ns()}"
    with sdk(live, url, cert) as service:
        client = service.create_table(table)
        answer = requests.post(
            f"{url}/ui/api/v1/accounts/{live.account}/tables/{table}/import",
            data=iter(lines),
            headers={"Authorization": f"Bearer {token}"},
            verify=cert,
            timeout=600,
        )
        assert answer.status_code == 200, answer.text
        assert len(list(client.list_entities(select=["RowKey"]))) == len(rows)
        service.delete_table(table)
