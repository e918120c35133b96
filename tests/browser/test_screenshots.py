"""The pictures of the documents: TEST_SCREENSHOTS=tests/browser/screenshots updates them."""

import base64
import os
import re
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    EdmType,
    EntityProperty,
    TableAccessPolicy,
    TableServiceClient,
    UpdateMode,
    generate_table_sas,
)
from playwright.sync_api import expect

from tests.browser.page import patient
from tests.live_server import ROOT, start_server

pytestmark = pytest.mark.long
COMMITTED = Path(__file__).parent / "screenshots"
SIZE = (1440, 900)
KEY = base64.b64encode(bytes(64)).decode()
NAMES = ["grid", "query", "conflict", "activity", "keys", "policies"]
PEOPLE = [
    ("ada-lovelace", "Ada Lovelace", 36, 1200.5, "2024-11-02T09:14:07", "analysis"),
    ("alan-turing", "Alan Turing", 41, -0.0, "2025-03-19T21:01:55.1234567", "engines"),
    ("grace-hopper", "Grace Hopper", 37, 88.0, "2025-07-01T00:00:00", "engines"),
    ("katherine-j", "Katherine Johnson", 52, 10400.25, "2023-05-30T17:45:12", ""),
    ("margaret-h", "Margaret Hamilton", 33, 3141.59, "2025-09-14T11:20:41", "flight"),
    ("radia-p", "Radia Perlman", 44, 512.0, "2024-02-29T23:59:59", "networks"),
    ("shafi-g", "Shafi Goldwasser", 47, 2048.0, "2021-08-08T08:08:08", ""),
    ("tim-bl", "Tim Berners-Lee", 34, float("nan"), "2025-10-01T12:00:00", "networks"),
]
TABLES = {"audittrail": 40, "carts": 12, "devices": 31, "sessions": 7, "telemetry": 90}
SAVE_CHANGES = re.compile(r"^Save \d+ changes?$")  # the button counts them


def entities():
    for number, (row, name, age, balance, since, team) in enumerate(PEOPLE):
        yield {
            "PartitionKey": "se",
            "RowKey": row,
            "Name": name,
            "Age": age,
            "Balance": balance,
            "Since": EntityProperty(f"{since}Z", EdmType.DATETIME),
            "Active": number % 3 != 2,
            "Team": team,
            "Score": EntityProperty(9007199254740993, EdmType.INT64) if number % 2 else "high",
            **({"Badge": UUID(int=number + 1)} if number % 5 == 0 else {}),
            **({"Profile": '{"lang":"sv","roles":["lead"],"zone":"Europe/Stockholm"}'} if number < 3 else {}),
        }


@pytest.fixture(scope="module")
def screenshots(scratch):
    """Return the folder for the pictures; TEST_SCREENSHOTS names one to keep."""
    folder = Path(os.environ.get("TEST_SCREENSHOTS") or scratch / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def studio(scratch, chromium):
    """Start a server as a team has it: an account with a colour, tables, a few days' work."""
    with start_server(scratch / "studio", env={"TABLERO_ACCOUNTS": f"acme:{KEY}"}) as live:
        address = next(word for line in live.output for word in line.split() if "/ui/setup/#token=" in word)
        fill(live)
        share(live)
        with patient(chromium.new_context(locale="en-US", base_url=live.url)) as context:
            page = context.new_page()
            page.goto(address)
            page.get_by_label("User name").fill("ada@acme.org")
            page.get_by_label("Password", exact=True).fill("a password of many words")
            page.get_by_label("Confirm password").fill("a password of many words")
            page.get_by_role("button", name="Create admin and sign in").click()
            page.wait_for_url("**/ui/")
            settle(page)
            live.state = context.storage_state()
        yield live


def client_of(live):
    text = f"DefaultEndpointsProtocol=http;AccountName=acme;AccountKey={KEY};TableEndpoint={live.url}/acme;"
    return TableServiceClient.from_connection_string(
        text, user_agent="checkout/2.4.1", user_agent_overwrite=True
    )


def fill(live):
    with client_of(live) as service:
        people = service.create_table("people")
        people.submit_transaction([("create", entity) for entity in entities()])
        for name, count in TABLES.items():
            events = [{"PartitionKey": "p", "RowKey": f"{number:03}"} for number in range(count)]
            service.create_table(name).submit_transaction([("upsert", event) for event in events])


def share(live):
    """Make three policies, each with a token in use."""
    now = datetime.now(UTC).replace(microsecond=0)
    shared = {
        "reader": ("reports/3.1", TableAccessPolicy(permission="r", expiry=now + timedelta(days=30)), {}),
        "ci-full": ("pytest/8.4", TableAccessPolicy(permission="raud", expiry=now + timedelta(days=2)), {}),
        "partner": ("billing/1.4", TableAccessPolicy(permission="r"), {"expiry": now + timedelta(hours=20)}),
    }
    with client_of(live) as service:
        policies = {name: policy for name, (_, policy, _) in shared.items()}
        service.get_table_client("people").set_table_access_policy(policies)
    for name, (agent, _, own) in shared.items():
        token = generate_table_sas(AzureNamedKeyCredential("acme", KEY), "people", policy_id=name, **own)
        headers = {"User-Agent": agent, "Accept": "application/json"}
        requests.get(
            f"{live.url}/acme/people()?$top=1&{token}", headers=headers, timeout=60
        ).raise_for_status()


def settle(page):
    """Choose a colour, which also adds an entry to the activity log."""
    page.goto("/ui/a/acme/settings/")
    page.get_by_role("textbox", name="Label (optional)").fill("Production copy")
    page.get_by_role("radio", name="Orange").check(force=True)
    page.get_by_role("button", name="Save").first.click()
    page.get_by_text("Saved the settings").wait_for()  # so that no picture has it


# every run sees that they can be made; both themes are needed only to keep them
@pytest.fixture(scope="module", params=["light", "dark"] if os.environ.get("TEST_SCREENSHOTS") else ["light"])
def context(request, studio, chromium):
    made = chromium.new_context(
        base_url=studio.url, locale="en-US", color_scheme=request.param, storage_state=studio.state,
        viewport={"width": SIZE[0], "height": SIZE[1]}, reduced_motion="reduce",
    )  # fmt: skip
    with patient(made) as context:
        context.theme = request.param
        yield context


@pytest.fixture
def show(context, screenshots):
    """Open a page; `show.take("grid")` takes its picture."""
    page = context.new_page()

    def take(name):
        page.evaluate("document.fonts.ready")
        path = screenshots / f"{name}-{context.theme}.png"
        page.screenshot(path=path)
        assert size_of(path) == SIZE

    page.take = take
    yield page
    page.close()


def size_of(path):
    return struct.unpack(">II", path.read_bytes()[16:24])


def test_grid(show):
    show.goto("/ui/a/acme/t/people/?f=PartitionKey+eq+'se'+and+Age+ge+30")
    show.locator("tr[data-key]").nth(1).locator("a[data-drawer]").first.click()
    expect(show.locator("#drawer")).to_be_visible()
    show.locator("tr[data-key]").nth(2).get_by_role("checkbox").check()
    show.take("grid")


def test_query(show):
    show.goto(
        "/ui/a/acme/t/people/?by=rows&facets=1&f=PartitionKey+eq+'se'+and+(Age+ge+40+or+Since+ge+datetime'2025-01-01T00:00:00Z')"
    )
    expect(show.locator(".facet").first).to_be_visible()
    show.take("query")


def test_policies(show, studio):
    """One token gains a permission, one ends because its policy goes, one stays."""
    show.goto("/ui/a/acme/t/people/acl/")
    used = show.get_by_text("1 token", exact=True)
    while used.count() < 3:  # uses are counted after the answers
        show.reload()
    reader, _, partner = show.locator("fieldset.policy").all()
    reader.get_by_label("Update").check(force=True)
    partner.get_by_role("button", name=re.compile("Remove")).click()
    expect(show.get_by_text("gains")).to_be_visible()
    show.take("policies")


def test_conflict(show, studio):
    show.goto("/ui/a/acme/t/people/entity/?pk=se&rk=grace-hopper")
    with client_of(studio) as service:
        people = service.get_table_client("people")
        grace = people.get_entity("se", "grace-hopper")
        change = {"Balance": grace["Balance"] + 11.5, "Team": f"{grace.get('Team', '')}, compilers"}
        people.update_entity(
            {"PartitionKey": "se", "RowKey": "grace-hopper", **change}, mode=UpdateMode.MERGE
        )
    show.get_by_role("textbox", name="Age").fill("38")
    show.get_by_role("textbox", name="Balance").fill("120.0")
    show.get_by_role("button", name=SAVE_CHANGES).click()
    show.get_by_role("button", name="Save merged").wait_for()
    show.take("conflict")


def test_activity(show):
    show.goto("/ui/a/acme/t/people/entity/?pk=se&rk=tim-bl")
    age = show.get_by_role("textbox", name="Age")
    age.fill(str(int(age.input_value()) + 1))
    show.get_by_role("button", name=SAVE_CHANGES).click()
    show.get_by_text(re.compile("Saved")).first.wait_for()
    show.goto("/ui/a/acme/activity/")
    show.locator("details:not(.more)").first.locator("summary").click()
    show.locator("details:not(.more)").first.get_by_text("Age", exact=True).wait_for()
    show.take("activity")


def test_keys(show):
    show.goto("/ui/a/acme/keys/")
    show.take("keys")


def test_the_documents_show_them():
    pages = (ROOT / "README.md").read_text() + (ROOT / "docs" / "console.md").read_text()
    for path in (COMMITTED / f"{name}-{theme}.png" for name in NAMES for theme in ("light", "dark")):
        assert path.relative_to(ROOT).as_posix() in pages
        assert size_of(path) == SIZE
