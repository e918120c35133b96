"""From the message of an SDK's exception to the cause: in at most three clicks, of which pasting the message is one."""

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from time import monotonic

import psycopg
import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    TableAccessPolicy,
    TableClient,
    TableSasPermissions,
    generate_table_sas,
)
from playwright.sync_api import expect

from storage.server.data_folder import DataFolder
from tests.browser.page import check, check_reflow
from tests.clients.conftest import sdk_folder

__all__ = ["sdk_folder"]

TABLE = "whyorders"
LOG = "/ui/a/devstoreaccount1/requests/"
MOST_CLICKS = 3
PERMISSIONS = ["clipboard-read", "clipboard-write"]
ADA = {"PartitionKey": "p", "RowKey": "ada"}
JAVASCRIPT = """
const {{ TableClient }} = require("@azure/data-tables");
const client = TableClient.fromConnectionString({connection!r}, {table!r}, {{ allowInsecureConnection: true }});
client.getEntity("p", "nobody").catch((error) => console.log(String(error) + JSON.stringify(error)));
"""
# gives back the locks of a transaction when somebody has waited for one for longer than a request may take that is not
# slow; at the database, so that the wait is not as long as one that is given up
UNLOCK = """
DO $$ BEGIN
    WHILE NOT EXISTS (
        SELECT FROM pg_locks AS waiting JOIN pg_locks AS held USING (locktype, database, relation)
        WHERE NOT waiting.granted AND held.pid = pg_backend_pid() AND held.granted
            AND clock_timestamp() - waiting.waitstart > interval '0.6 s'
    ) LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
END $$;
ROLLBACK
"""


class Journey:
    """Counts the clicks of a developer, and times them."""

    def __init__(self, page, name):
        self.page, self.name = page, name
        self.clicks, self._began = 0, monotonic()

    def paste(self, text):
        """Paste what the program printed, with the focus nowhere, as on any page of the console."""
        self.page.evaluate("text => navigator.clipboard.writeText(text)", str(text))
        self._began = monotonic()
        self.page.keyboard.press("Control+V")
        self.clicks += 1
        expect(self.page.locator("#palette [role=option]").first).to_contain_text(re.compile(r"^\s*\d{3}"))

    def open_found(self):
        self.page.locator("#palette [role=option]").first.click()
        self.clicks += 1
        expect(self.page.locator("#request")).to_be_visible()

    def click(self, target):
        target.click()
        self.clicks += 1

    def reach(self, *reasons):
        for reason in reasons:
            expect(self.page.locator("#main")).to_contain_text(reason)
        print(f"{self.name}: {self.clicks} clicks, {monotonic() - self._began:.1f} s")
        assert self.clicks <= MOST_CLICKS


@pytest.fixture(scope="module")
def key(console):
    return AzureNamedKeyCredential(console.account, console.key)


@pytest.fixture(scope="module")
def orders(console, service, key):
    table = service.create_table(TABLE)
    with table:
        for name in ("ada", "bob", "eve"):
            table.create_entity({"PartitionKey": "p", "RowKey": name, "Age": 36})
        month = datetime.now(UTC) + timedelta(days=30)
        table.set_table_access_policy({"reader": TableAccessPolicy(expiry=month, permission="r")})
        yield table


def refused(act, *arguments, **options):
    with pytest.raises(HttpResponseError) as caught:
        act(*arguments, **options)
    return str(caught.value)


def by_token(console, token):
    return TableClient(console.endpoint, TABLE, credential=AzureSasCredential(token))


@pytest.fixture(scope="module")
def exceptions(console, orders, key):
    """What a program printed, by what it did."""
    past = {"start": datetime.now(UTC) - timedelta(days=1), "expiry": datetime.now(UTC) - timedelta(hours=3)}
    expired = generate_table_sas(key, TABLE, permission=TableSasPermissions(read=True), **past)
    by_policy = generate_table_sas(key, TABLE, policy_id="reader")
    seen = orders.get_entity("p", "ada")
    for age in (37, 38):
        orders.update_entity({**ADA, "Age": age})
    orders.delete_entity("p", "bob")
    stale = {"etag": seen.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
    with by_token(console, expired) as late, by_token(console, by_policy) as reader:
        return {
            "expired": refused(lambda: list(late.list_entities())),
            "policy": refused(reader.delete_entity, "p", "ada"),
            "filter": refused(lambda: list(orders.query_entities("Name eq 'Ada' AND Age gt 3"))),
            "property": refused(orders.create_entity, {**ADA, "RowKey": "x", "Bio": "x" * 40_000}),
            "conflict": refused(orders.update_entity, {**ADA, "Age": 40}, **stale),
            "deleted": refused(orders.get_entity, "p", "bob"),
            "slow": _query_slowly(console, orders),
            "burst": [refused(late.get_entity, "p", str(number)) for number in range(30)][-1],
        }


def _query_slowly(console, orders):
    """Query while the table is locked, and return what the SDK's log says of the request."""
    asked = []
    folder = DataFolder(console.data).socket_folder
    with psycopg.connect(f"host={folder} user=tablero dbname=tablero") as connection:
        [(number,)] = connection.execute("SELECT id FROM storage_table WHERE name = %s", [TABLE])
        connection.execute(f"LOCK TABLE entity_{number} IN ACCESS EXCLUSIVE MODE")
        with ThreadPoolExecutor(1) as others:
            unlocking = others.submit(connection.execute, UNLOCK)
            list(
                orders.query_entities(
                    "Age gt 30", raw_request_hook=lambda sent: asked.append(sent.http_request)
                )
            )
            unlocking.result()
    return f"Request headers:\n    'x-ms-client-request-id': '{asked[0].headers['x-ms-client-request-id']}'"


@pytest.fixture
def journey(open_page, admin, exceptions):
    def start(name, path="/ui/"):
        page = open_page(path, state=admin, permissions=PERMISSIONS)
        while True:  # requests are in the log within about two seconds
            if "data-request" in page.request.get(LOG, params={"q": exceptions["burst"]}).text():
                return Journey(page, name)

    return start


@pytest.mark.parametrize(
    ("name", "reasons", "remedy"),
    [
        ("expired", ["expired 3 hours before this request"], "Renew the token"),
        ("policy", ["The policy reader has no d, which DeleteEntity needs"], "Edit the policy"),
        (
            "filter",
            ["The query option $filter is at fault", "This filter is valid: Name eq … and Age gt …"],
            None,
        ),
        ("property", ["The property Bio is at fault", "maximum allowed size (64KB)"], None),
        (
            "conflict",
            ["Changed with key1", "the last of 2 changes that the client had not seen"],
            "Open the version",
        ),
        ("deleted", ["deleted this entity at"], "Restore"),
    ],
)
def test_from_an_exception_to_the_cause(journey, exceptions, name, reasons, remedy):
    going = journey(name)
    going.paste(exceptions[name])
    going.open_found()
    going.reach(*reasons)
    if remedy is not None:
        expect(
            going.page.locator("#request")
            .get_by_role("link", name=remedy)
            .or_(going.page.locator("#request").get_by_role("button", name=remedy))
        ).to_be_visible()
    if name == "expired":  # the page with the most on it
        check(going.page, within="#request")


def test_a_conflict_leads_to_the_version_and_a_deletion_to_the_entity(journey, exceptions, orders):
    going = journey("conflict, to the version")
    going.paste(exceptions["conflict"])
    going.open_found()
    going.click(going.page.get_by_role("link", name="Open the version"))
    going.page.wait_for_url("**/entity/history/**")
    going.reach("38")

    going = journey("deleted, restored")
    going.paste(exceptions["deleted"])
    going.open_found()
    going.click(going.page.get_by_role("button", name="Restore"))
    going.page.wait_for_url("**/entity/**")
    going.reach("bob")
    assert orders.get_entity("p", "bob")["Age"] == 36


def test_from_a_slow_query_to_its_index(journey, exceptions):
    going = journey("slow query")
    going.paste(exceptions["slow"])
    going.open_found()
    going.reach("Table scan", "An index on Age would spare it")
    going.click(going.page.get_by_role("button", name="Index Age"))
    expect(going.page.locator("#toasts")).to_contain_text("Indexing Age")
    expect(going.page.get_by_role("button", name="Index Age")).to_have_count(0)
    assert going.clicks == MOST_CLICKS


def test_from_a_burst_of_errors_to_who_made_them(journey, exceptions):
    going = journey("burst of errors")
    going.paste(exceptions["burst"])
    going.open_found()
    going.click(going.page.get_by_role("link", name="Requests like this one"))
    going.page.wait_for_url("**/requests/?**")
    going.reach("AuthenticationFailed")
    callers = going.page.get_by_role("region", name="Refused and failed requests by credential")
    expect(callers.locator("tbody tr").first).to_contain_text("31")


def test_from_an_exception_of_the_javascript_sdk(require, journey, console, sdk_folder, orders):
    script = JAVASCRIPT.format(connection=console.connection_string, table=TABLE)
    command = [require("node", "the JavaScript SDK"), "-e", script]
    done = subprocess.run(command, cwd=sdk_folder, check=True, stdout=subprocess.PIPE, text=True, timeout=180)
    going = journey("JavaScript, no such entity")
    while "data-request" not in going.page.request.get(LOG, params={"q": done.stdout}).text():
        pass
    going.paste(done.stdout)
    going.open_found()
    going.reach("The specified resource does not exist")


def test_the_list_opens_requests_beside_it(exceptions, journey):
    page = journey("list", f"{LOG}?span=hour&table={TABLE}&kind=refused").page
    rows = page.locator("tr[data-request]")
    while rows.count() < 3:  # the log is written after the answers
        page.reload()
    rows.nth(1).locator("td").first.click()
    drawer = page.locator("#request-drawer")
    expect(drawer).to_be_visible()
    second = rows.nth(1).get_attribute("data-request")
    assert page.url.endswith(f"open={second}")
    page.keyboard.press("Alt+ArrowDown")
    expect(drawer.locator(f"[data-request='{rows.nth(2).get_attribute('data-request')}']")).to_be_visible()
    page.keyboard.press("k")
    expect(drawer.locator(f"[data-request='{second}']")).to_be_visible()
    check(page, within="#request-drawer")
    # by name too, in the help sheet and the palette
    page.keyboard.press("?")
    expect(page.locator('#shortcuts [data-command="request.next"]')).to_have_text("J Alt ↓")
    page.keyboard.press("Escape")
    expect(page.locator("#shortcuts")).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.type("previous request")
    expect(page.get_by_role("option", name="Previous request")).to_be_visible()
    page.keyboard.press("Enter")
    first = rows.nth(0).get_attribute("data-request")
    expect(drawer.locator(f"[data-request='{first}']")).to_be_visible()
    page.keyboard.press("j")
    expect(drawer.locator(f"[data-request='{second}']")).to_be_visible()
    page.reload()
    expect(drawer.locator(f"[data-request='{second}']")).to_be_visible()
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(page.locator(f"tr[data-request='{second}']").get_by_role("link").first).to_be_focused()
    expect(page).not_to_have_url(re.compile("open="))

    bar = page.locator("[data-histogram] g:has(.refused)").last.bounding_box()
    page.mouse.move(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url(re.compile(r"since=.+&until=.+"))
    expect(rows).not_to_have_count(0)
    expect(page.get_by_role("link", name="Show all times")).to_be_visible()
    check(page, within="main")


def test_the_log_on_a_phone(open_page, admin, exceptions):
    page = open_page(f"{LOG}?span=hour&kind=refused", state=admin, width=320)
    rows = page.locator("tr[data-request]")
    while not rows.count():  # the log is written after the answers
        page.reload()
    check_reflow(page)
    rows.first.click()
    expect(page.locator("#request-drawer")).to_be_visible()
    check_reflow(page)
