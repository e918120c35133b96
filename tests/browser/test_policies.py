"""The policies of a table: the lines P1 to P6 of the console's acceptance list that need a server or a browser."""

import http.client
import json
import re
import time
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableAccessPolicy, TableServiceClient, generate_table_sas
from playwright.sync_api import expect

from tests.browser.page import check, check_axe, check_reflow
from tests.console.forms import lists_of

NOW = datetime.now(UTC)
PAST, LATER = NOW - timedelta(days=1), NOW + timedelta(days=40)
SEEN_WITHIN = 60  # seconds: the server notes what was used every few
# by a letter, a request that needs it and nothing else
REQUESTS = {
    "r": ("GET", "()?", None),
    "a": ("POST", "?", {"PartitionKey": "se", "RowKey": "new"}),
    "u": ("MERGE", "(PartitionKey='se',RowKey='kept')?", {"Age": 1}),
    "d": ("DELETE", "(PartitionKey='se',RowKey='doomed')?", None),
}


@pytest.fixture
def service(console):
    with TableServiceClient.from_connection_string(console.connection_string) as service:
        yield service


@pytest.fixture
def make_table(service):
    """`make_table("name", {"a": policy})`: a table with these policies, gone in the end."""
    made = []

    def make(name, policies):
        made.append(name)
        table = service.create_table(name)
        table.set_table_access_policy(policies)
        return table

    yield make
    for name in made:
        service.delete_table(name)


@pytest.fixture
def ask(chromium, console, admin):
    """`ask(path)`, `ask(path, form)`: an answer of the console to the admin, without a browser's page."""
    context = chromium.new_context(base_url=console.url, storage_state=admin)

    def ask(path, form=None, **headers):
        if form is None:
            return Answer(context.request.get(path, headers=headers))
        pairs = [(name, value) for name, values in form.items() for value in values]
        body = "&".join(f"{quoted(name)}={quoted(value)}" for name, value in pairs)
        headers |= {"Content-Type": "application/x-www-form-urlencoded", "Referer": console.url}
        return Answer(context.request.post(path, data=body, headers=headers))

    yield ask
    context.close()


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.content = response.body()

    @property
    def text(self):
        return self.content.decode()


def quoted(text):
    return "".join(f"%{byte:02X}" for byte in text.encode())


def policy(permission=None, expiry=None, start=None):
    return TableAccessPolicy(permission=permission, expiry=expiry, start=start)


def allowed(console, table, token):
    """The letters whose requests are done for a token; what they change is there again before each."""
    found = set()
    for letter, (method, target, entity) in REQUESTS.items():
        table.upsert_entity({"PartitionKey": "se", "RowKey": "kept"})
        table.upsert_entity({"PartitionKey": "se", "RowKey": "doomed"})
        table.delete_entity("se", "new")
        headers = {"Accept": "application/json;odata=nometadata", "x-ms-version": "2019-02-02"}
        headers |= {"If-Match": "*"} if letter in "ud" else {}
        headers |= {"Content-Type": "application/json"} if entity else {}
        connection = http.client.HTTPConnection(urlsplit(console.url).netloc, timeout=30)
        path = f"/{console.account}/{table.table_name}{target}{token}"
        connection.request(method, path, body=json.dumps(entity) if entity else None, headers=headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        assert response.status in {200, 201, 204, 403, 404}
        if response.status < 300:
            found.add(letter)
    return found


def shown(page, tokens):
    """What a preview says of each token: its kind, the letters it gains, those it loses."""
    names = {sha256(parse_qs(token)["sig"][0].encode()).hexdigest(): name for name, token in tokens.items()}
    found = {}
    for kind, fingerprint, line in re.findall(
        r'<li class="effect (\w+)">.*?/sas/(\w+)/".*?<span>(.*?)</span>', page, re.DOTALL
    ):
        line = re.sub("<.*?>", "", line)
        gained, lost = (re.search(rf"{verb} ([^·]*)", line) for verb in ("gains", "loses"))
        letters = [{part[0] for part in it[1].split(", ")} if it else set() for it in (gained, lost)]
        found[names[fingerprint]] = (kind, *letters)
    return found


def test_p3_preview_is_what_requests_are_told_and_p4_undo_revives(ask, make_table, console):
    table = make_table(
        "policies3",
        {
            "gains": policy("r", LATER),
            "renamed": policy("raud", LATER),
            "loses": policy("ra"),
            "conflicts": policy(None, LATER),
            "expired": policy("rd", PAST),
        },
    )
    credential = AzureNamedKeyCredential(console.account, console.key)

    def sign(identifier, **own):
        return generate_table_sas(credential, "policies3", policy_id=identifier, **own)

    tokens = {
        "gains": sign("gains"),
        "later": sign("gains", start=NOW + timedelta(days=2)),
        "renamed": sign("renamed"),
        "loses": sign("loses", expiry=LATER),
        "dead": sign("loses", expiry=PAST),
        "conflicts": sign("conflicts", permission="ru"),
        "expired": sign("expired"),
    }
    before = {name: allowed(console, table, token) for name, token in tokens.items()}
    assert before["renamed"] == set("raud")
    usable = {"gains", "renamed", "loses", "conflicts"}
    assert {name for name, letters in before.items() if letters} == usable

    page = "/ui/a/devstoreaccount1/t/policies3/acl/"
    deadline = time.monotonic() + SEEN_WITHIN
    # one that was never good is none that was seen
    while len(shown(ask(page).text, tokens)) < len(usable):
        assert time.monotonic() < deadline
        time.sleep(0.3)
    form = lists_of(ask(page), "policies-form") | {
        "policies-0-permissions": ["r", "d"],
        "policies-1-identifier": ["renamed-2"],
        "policies-2-permissions": ["r"],
        "policies-3-permissions": ["u"],
        "policies-4-expiry": [LATER.strftime("%Y-%m-%d")],
    }
    preview = shown(ask(page + "save/", form | {"do": ["preview"]}, **{"HX-Request": "true"}).text, tokens)
    assert {name: allowed(console, table, tokens[name]) for name in tokens} == before, "nothing is saved yet"

    saved = ask(page + "save/", form | {"do": ["save"]})
    assert saved.status == 200
    after = {name: allowed(console, table, token) for name, token in tokens.items()}

    assert preview.keys() == usable
    for name, (kind, gained, lost) in preview.items():
        if kind == "revoked":
            assert before[name]
            assert not after[name]
        else:
            assert (gained, lost) == (after[name] - before[name], before[name] - after[name]), name
    assert {name: kind for name, (kind, *_) in preview.items()} == {
        "gains": "widened",
        "renamed": "revoked",
        "loses": "narrowed",
        "conflicts": "revoked",
    }

    assert "2 known tokens were revoked. Undo to restore them." in saved.text
    undo = re.search(r'action="(/ui/undo/[0-9]+/)"', saved.text)[1]
    csrf = lists_of(ask(page), "policies-form")["csrfmiddlewaretoken"]
    ask(undo, {"csrfmiddlewaretoken": csrf})
    assert {name: allowed(console, table, token) for name, token in tokens.items()} == before


def test_policies_are_edited(open_page, admin, make_table):
    table = make_table("policies4", {"partner-read": policy("r", LATER), "ci-writer": policy("raud", LATER)})
    make_table("policies5", {"copied": policy("dr")})
    page = open_page("/ui/a/devstoreaccount1/t/policies4/acl/", state=admin)
    check(page)

    # the preview follows, and leaves the focus where it is
    letter = page.get_by_role("checkbox", name="d Delete").nth(1)
    letter.focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("d Delete removed")).to_be_visible()
    expect(letter).to_be_focused()
    identifier = page.get_by_label("Id", exact=True).first
    identifier.fill("partner")
    expect(page.get_by_text("Renaming creates a new policy")).to_be_visible()
    expect(identifier).to_be_focused()

    # presets by keys
    page.get_by_role("button", name="Expiry for policy 2: common times").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="End of the quarter").focus()
    page.keyboard.press("Enter")
    expiry = page.get_by_label("Expiry", exact=True).nth(1)
    expect(expiry).to_have_value(re.compile(r"^\d{4}-\d\d-3[01] 23:59:59$"))
    expect(expiry).to_be_focused()
    expect(identifier).to_have_value("partner")

    # what is wrong is at its field, and five are the most
    for number in (3, 4, 5):
        page.get_by_role("button", name="Add policy").click()
        expect(page.get_by_label("Id", exact=True)).to_have_count(number)
        expect(page.get_by_label("Id", exact=True).last).to_be_focused()
    expect(page.get_by_role("button", name="Add policy")).to_have_attribute("aria-disabled", "true")
    page.get_by_label("Id", exact=True).nth(2).fill("partner")
    page.get_by_role("button", name="Save policies").last.click()
    expect(page.get_by_role("alert")).to_contain_text("There are 3 problems")
    expect(page.get_by_role("alert")).to_be_focused()
    page.get_by_role("link", name="Policy 3").click()
    expect(page.get_by_label("Id", exact=True).nth(2)).to_be_focused()
    check_axe(page)
    for number in (5, 4, 3):
        page.get_by_role("button", name=f"Remove policy {number}").click()
        expect(page.get_by_label("Id", exact=True)).to_have_count(number - 1)

    # the same as XML, and back
    page.get_by_role("button", name="XML", exact=True).click()
    document = page.get_by_role("textbox", name="SignedIdentifiers")
    expect(document).to_have_value(re.compile("<Id>partner</Id>"))
    document.fill(document.input_value().replace("<Id>partner</Id>", "<Id>partner"))
    expect(page.get_by_text("Fix the XML to see the impact.")).to_be_visible()
    document.fill(document.input_value().replace("<Id>partner", "<Id>partner</Id>"))
    page.get_by_role("button", name="Form", exact=True).click()
    expect(page.get_by_label("Id", exact=True).first).to_have_value("partner")

    # somebody else is quicker
    table.set_table_access_policy({"quicker": policy("r")})
    page.get_by_role("button", name="Save policies").last.click()
    expect(page.get_by_text("These policies were changed after you opened them")).to_be_visible()
    expect(page.get_by_role("region", name="Current version")).to_contain_text("quicker")
    check_axe(page)
    page.get_by_role("button", name="Save my version").click()
    expect(page.get_by_text("Saved the policies of policies4.")).to_be_visible()
    assert {name: it.permission for name, it in table.get_table_access_policy().items()} == {
        "partner": "r",
        "ci-writer": "rau",
    }

    # from another table, at the width of a phone
    page.set_viewport_size({"width": 320, "height": 800})
    page.get_by_role("button", name="Copy from another table").click()
    page.get_by_role("combobox", name="Table").select_option("policies5")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_text("Copied the policies of policies5.")).to_be_visible()
    expect(page.get_by_label("Id", exact=True)).to_have_value("copied")
    expect(page.get_by_label("Id", exact=True)).to_be_focused()
    check_reflow(page)
    page.get_by_role("button", name="Save policies").last.click()
    expect(page.get_by_text("Not saved yet.", exact=True)).to_have_count(0)
    expect(page.locator("#save-policies")).to_be_focused()
    assert list(table.get_table_access_policy()) == ["copied"]
