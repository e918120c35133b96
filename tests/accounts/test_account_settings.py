"""Making an account, setting it, deleting it."""

import re
from datetime import timedelta
from itertools import product

import pytest
from django.utils import timezone
from django.utils.html import escape

from console.accounts.forms.settings import COLOURS, name_rules
from console.grid import differences
from console.site.account_settings import SECTIONS
from storage.accounts import account_settings, accounts, sealed_keys
from storage.accounts.serializers import AccountChangeSerializer, AccountSerializer
from storage.accounts.subject import AccountVerb
from storage.core import account_settings as declared
from storage.domain.requests.strictness import RULES
from storage.domain.values.kinds import AccountKind
from storage.models import Account, Activity
from storage.tables import tables
from tests.console.markup import text
from tests.sql import citus

pytestmark = pytest.mark.django_db(transaction=True)
SETTINGS = "/ui/a/acme/settings/"
HTMX = {"HX-Request": "true"}


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_colours_are_seen_in_both_themes():
    surfaces = ["#ffffff", "#f6f7f9", "#141b22", "#0d1217"]
    for colour, surface in product([colour for colour, _ in COLOURS if colour], surfaces):
        dark, light = sorted((luminance(colour), luminance(surface)))
        assert (light + 0.05) / (dark + 0.05) >= 3, (colour, surface)


# making


def make(client, **fields):
    return client.post("/ui/a/new/", {"name": "shop", **fields})


def test_makes_an_account_and_shows_its_keys_once(visit):
    client = visit("ada")
    answer = make(client, label="Shop", colour="#0f8a82", description="of the shop")
    assert (answer.status_code, answer["Location"]) == (302, "/ui/a/shop/created/")
    made = Account.objects.get(name="shop")
    assert (made.label, made.colour, made.description) == ("Shop", "#0f8a82", "of the shop")
    shown = client.get(answer["Location"])
    first, second = (sealed_keys.encode_key(key) for key in sealed_keys.keys_of(made))
    page = shown.content.decode()
    assert first in page
    assert second in page
    assert f"AccountName=shop;AccountKey={first};TableEndpoint=http://testserver/shop" in page
    assert "no-store" in shown["Cache-Control"]
    assert client.get(answer["Location"])["Location"] == "/ui/a/shop/keys/"
    done = Activity.objects.latest("pk")
    assert (done.verb, done.actor, done.account_name) == (AccountVerb.CREATE, "ada", "shop")


def test_an_account_of_the_kind_cosmos_has_no_pages_of_what_it_lacks(visit):
    client = visit("ada")
    assert make(client, kind="cosmos")["Location"] == "/ui/a/shop/created/"
    account = Account.objects.get(name="shop")
    assert account.kind == "cosmos"
    tables.create(account, "new orders")
    page = client.get("/ui/a/shop/t/new%20orders/")
    assert page.status_code == 200
    assert "/ui/a/shop/t/new%20orders/schema/" in page.content.decode()
    assert "/acl/" not in page.content.decode()
    assert "/ui/a/shop/service/" not in page.content.decode()
    for path in ("/ui/a/shop/service/", "/ui/a/shop/t/new%20orders/acl/"):
        assert client.get(path).status_code == 404, path
    assert "Azure Cosmos DB for Table" in client.get("/ui/a/shop/settings/").content.decode()
    assert "/acl/" not in client.get("/ui/a/shop/").content.decode()
    for name, status in (
        ("Neue Aufträge", 302),
        ("new orders", 422),
        ("a/b", 422),
        ("tables", 422),
        ("$batch", 422),
    ):
        assert client.post("/ui/a/shop/tables/new/", {"name": name}).status_code == status, name
    client.post(
        "/ui/a/shop/t/new%20orders/settings/notes/", {"description": "", "tags": "", "throughput": "400"}
    )
    assert tables.get(account, "new orders").throughput == 400
    new = client.post("/ui/a/shop/t/new%20orders/entity/new/", {"pk": "", "rk": "r"})
    assert "In a Cosmos DB account no key may be empty." in new.content.decode()


def test_refuses_names_and_says_why(visit):
    broken = {"": 0, "ab": 1, "a" * 25: 1, "my-shop": 1, "şehir": 1, "A": 2, "acme": 1, "shop2": 0}
    assert {name: [rule.is_kept for rule in name_rules(name)].count(False) for name in broken} == broken
    client = visit("ada")
    for fields in ({"name": "A"}, {"name": "acme"}, {"name": ""}, {"colour": "red;}"}):
        assert make(client, **fields).status_code == 422, fields
    assert not Account.objects.exclude(name="acme").exists()
    part = client.get("/ui/a/new/", {"name": "A"}, headers=HTMX).content.decode()
    assert part.count("broken") == 2
    assert "<html" not in part


# setting


def test_a_setting_is_declared_once_and_every_door_has_it():
    """A new one needs a column and its declaration; only a lifetime has fields of its own."""
    columns = {column.name for column in Account._meta.get_fields()}
    in_forms = {name for section in SECTIONS.values() for name in section.settings}
    request, answer = AccountChangeSerializer().fields, AccountSerializer().fields
    assert columns >= declared.SETTINGS.keys() == in_forms | {"expires_at"}
    assert all(setting.label for setting in declared.SETTINGS.values())
    assert request.keys() - {"ttl"} == declared.SETTINGS.keys() - {"enabled"}  # frozen and thawed
    assert answer.keys() >= declared.SETTINGS.keys() - {"enabled"}
    assert all(request[name].help_text for name in request if name != "description")


def test_describes(visit, account):
    client = visit("alice")
    fields = {"form": "description", "label": "Test", "colour": "#d1383f", "description": "for tests"}
    answer = client.post(SETTINGS, fields)
    assert answer["Location"] == SETTINGS
    account.refresh_from_db()
    assert (account.label, account.colour, account.description) == ("Test", "#d1383f", "for tests")
    done = Activity.objects.latest("pk")
    assert (done.verb, done.before["label"], done.after["label"]) == (AccountVerb.CHANGE, "", "Test")
    page = client.get(SETTINGS).content.decode()
    assert f"/ui/undo/{done.pk}/" in page  # in the toast
    assert 'class="band"' in page
    assert client.post(SETTINGS, fields).status_code == 302
    assert Activity.objects.latest("pk") == done


def sent_by(page):
    """Return the hidden initial values of the settings page, and the names of its forms."""
    form = page.partition("novalidate data-guard>")[2].partition('class="save-bar"')[0]
    inputs = re.findall(r'<input[^>]* name="([^"]+)"[^>]*?(?: value="([^"]*)")?[^>]*>', form)
    return {name: value for name, value in inputs if name.startswith("initial-")}, re.findall(
        r'name="form" value="(\w+)"', form
    )


def test_one_button_saves_several_sections_as_one_change(visit, account):
    client = visit("alice")
    initial, sections = sent_by(client.get(SETTINGS).content.decode())
    assert sections == [
        "description",
        "lifetime",
        "history",
        "strictness",
        "indexes",
        "quotas",
        "guard",
        "access",
    ]
    sent = {name.removeprefix("initial-"): value for name, value in initial.items() if value != "False"}
    sent |= initial | {"form": sections, "label": "Shop", "history_days": "30"}
    assert client.post(SETTINGS, sent).status_code == 302
    account.refresh_from_db()
    assert (account.label, account.history_days, account.enabled) == ("Shop", 30, True)
    done = Activity.objects.latest("pk")
    assert done.after == {"label": "Shop", "history_days": 30}

    # a wrong value of one keeps the others from being saved, and is named
    wrong = client.post(SETTINGS, {**sent, "label": "Other", "networks": "nowhere"})
    assert wrong.status_code == 422 and b"Not an IP address or range" in wrong.content
    account.refresh_from_db()
    assert account.label == "Shop"


def test_a_section_that_was_not_touched_is_not_checked(visit, account):
    """An account that has expired would otherwise take no other setting."""
    account_settings.change(account, expires_at=timezone.now() + timedelta(days=1))
    client = visit("alice")
    initial, sections = sent_by(client.get(SETTINGS).content.decode())
    Account.objects.filter(pk=account.pk).update(expires_at=timezone.now() - timedelta(hours=1))
    sent = {name.removeprefix("initial-"): value for name, value in initial.items() if value != "False"}
    sent |= initial | {"form": sections, "label": "Shop"}
    assert client.post(SETTINGS, sent).status_code == 302
    account.refresh_from_db()
    assert account.label == "Shop" and account.expires_at < timezone.now()


def test_keeps_a_colour_of_its_own(visit, account):
    """The management API takes any; without a choice of its own the form would take it away."""
    account_settings.change(accounts.by_name("acme"), colour="#c2410c")
    client = visit("alice")
    page = client.get(SETTINGS).content.decode()
    assert "Custom" in page
    fields = {"form": "description", "label": "Test", "colour": "#c2410c", "initial-colour": "#c2410c"}
    assert client.post(SETTINGS, fields).status_code == 302
    account.refresh_from_db()
    assert (account.label, account.colour) == ("Test", "#c2410c")


def test_gives_access(visit, account):
    fields = {"form": "access", "shared_key_access": "on", "networks": "192.0.2.1\r\n\r\n 2001:db8::/32 "}
    alice = visit("alice")
    alice.post(SETTINGS, fields)
    account.refresh_from_db()
    assert (account.enabled, account.shared_key_access) == (False, True)
    assert account.networks == ["192.0.2.1", "2001:db8::/32"]
    assert "192.0.2.1\n2001:db8::/32" in alice.get(SETTINGS).content.decode()


def test_refuses_invalid_networks(visit, account):
    fields = {"form": "access", "enabled": "on", "networks": "192.0.2.1, 192.0.2.2"}
    answer = visit("alice").post(SETTINGS, fields)
    assert answer.status_code == 422
    assert b"Not an IP address or range" in answer.content
    account.refresh_from_db()
    assert account.networks == []


# deleting


def test_deletes_by_the_typed_name(proven, account):
    tables.create(account, "people")
    client = proven("alice")
    page = text(client.get("/ui/a/acme/delete/"))
    assert "1 table<" in page
    refused = client.post("/ui/a/acme/delete/", {"name": "ACME"})
    assert refused.status_code == 422
    assert Account.objects.filter(name="acme").exists()
    assert client.post("/ui/a/acme/delete/", {"name": "acme"})["Location"] == "/ui/"
    assert not Account.objects.filter(name="acme").exists()
    done = Activity.objects.latest("pk")
    assert (done.verb, done.actor, done.account_name) == (AccountVerb.DELETE, "alice", "acme")
    assert b"Deleted the account acme." in client.get("/ui/").content


def test_a_protected_account_stays(proven, account):
    account_settings.change(account, protected=True)
    client = proven("alice")
    page = client.get("/ui/a/acme/delete/").content.decode()
    assert "acme is protected" in page
    assert "<form" not in page.partition("<main")[2].partition("</main")[0]
    assert client.post("/ui/a/acme/delete/", {"name": "acme"}).status_code == 422
    assert Account.objects.filter(name="acme").exists()


def test_the_level_of_consistency_is_a_setting(visit, account):
    client = visit("alice")
    assert "Strong_promise" not in client.get(SETTINGS).text  # without replicas, a level changes nothing
    chosen = {"form": "consistency", "consistency": "BoundedStaleness", "max_staleness": "10"}
    assert client.post(SETTINGS, chosen).status_code == 302
    account.refresh_from_db()
    assert (account.consistency, account.max_staleness) == ("BoundedStaleness", 10)
    page = client.get(SETTINGS).text
    chosen_level = 'value="BoundedStaleness"[^>]* checked aria-describedby="BoundedStaleness_promise"'
    assert re.search(chosen_level, page)
    assert "This server has no replicas" in page
    assert f"/ui/undo/{Activity.objects.latest('pk').pk}/" in page
    assert "<b>Bounded staleness</b>" in visit("victor").get("/ui/a/acme/overview/").content.decode()

    for wrong in ({"consistency": "Weak"}, {"max_staleness": "0"}, {"max_staleness": "86401"}):
        assert client.post(SETTINGS, {**chosen, **wrong}).status_code == 422
    account.refresh_from_db()
    assert (account.consistency, account.max_staleness) == ("BoundedStaleness", 10)


def test_strictness_is_a_setting_of_storage_accounts(visit, account):
    client = visit("alice")
    page = client.get(SETTINGS).text
    assert re.search(r'value="friendly"[^>]* checked', page)
    assert all((escape(it.sentence) in page) != it.is_only_wording for it in RULES.values())
    assert 'href="https://github.com/Azure/azure-sdk-for-net/issues/35185"' in page
    assert client.post(SETTINGS, {"form": "strictness", "strictness": "azure"}).status_code == 302
    assert client.post(SETTINGS, {"form": "strictness", "strictness": "cosmos"}).status_code == 422
    account.refresh_from_db()
    assert account.strictness == "azure"

    Account.objects.update(kind=AccountKind.COSMOS)
    assert "Strictness" not in client.get(SETTINGS).text


def test_levels_are_offered_with_replicas(visit, account, settings):
    settings.READ_SOURCES = ["replica"]
    page = visit("alice").get(SETTINGS).text
    assert re.search(r'value="Strong"[^>]* checked aria-describedby="Strong_promise"', page)
    assert "This server has no replicas" not in page


def test_quotas_are_folded_until_one_matters(visit, account):
    client = visit("alice")
    folded = re.compile(r"<details><summary>\s*Lower the quotas")
    assert folded.search(client.get(SETTINGS).text)
    assert b"<details open><summary>" in client.post(SETTINGS, {"form": "quotas", "sas_limit": "-1"}).content
    assert client.post(SETTINGS, {"form": "quotas", "sas_limit": "5"}).status_code == 302
    assert not folded.search(client.get(SETTINGS).text)


def test_the_history_is_a_setting_in_megabytes(visit, account):
    chosen = {"form": "history", "history_days": "30", "history_bytes": "32"}
    alice = visit("alice")
    assert alice.post(SETTINGS, chosen).status_code == 302
    account.refresh_from_db()
    assert (account.history_days, account.history_bytes) == (30, 32 << 20)
    assert 'name="history_bytes" value="32"' in alice.get(SETTINGS).content.decode()
    result = differences.setting_differences(Activity.objects.latest("pk"))
    assert [(str(it.name), it.before and it.before.markup, it.after.markup) for it in result] == [
        ("Days to keep", "7", "30"),
        ("Limit in MB", None, "32"),
    ]
    for wrong in (
        {"history_days": "367"},
        {"history_days": ""},
        {"history_bytes": "15"},
        {"history_bytes": str(1 << 44)},
    ):
        assert alice.post(SETTINGS, {**chosen, **wrong}).status_code == 422
    assert alice.post(SETTINGS, {**chosen, "history_bytes": ""}).status_code == 302
    account.refresh_from_db()
    assert account.history_bytes is None


def test_new_tables_are_distributed_only_in_a_cluster(visit, account):
    client = visit("alice")
    chosen = {"form": "cluster", "distributes": "on"}
    assert "Distribute new tables" not in client.get(SETTINGS).content.decode()
    assert client.post(SETTINGS, chosen).status_code == 422
    with citus.installed():
        assert "Distribute new tables" in client.get(SETTINGS).content.decode()
        assert client.post(SETTINGS, chosen).status_code == 302
    account.refresh_from_db()
    assert account.distributes


def test_adaptive_indexes_are_a_setting(visit, account):
    for fields, is_on in (({"adaptive_indexes": "on"}, True), ({}, False)):
        assert visit("alice").post(SETTINGS, {"form": "indexes", **fields}).status_code == 302
        account.refresh_from_db()
        assert account.adaptive_indexes is is_on


def test_a_page_that_is_old_takes_nothing_back(visit, account):
    client = visit("alice")
    page = client.get(SETTINGS).content.decode()
    assert 'name="initial-read_only" value="False"' in page
    account_settings.change(account, read_only=True, label="Shop")
    seen = {"initial-protected": "False", "initial-read_only": "False"}
    client.post(SETTINGS, {"form": "guard", "protected": "on", **seen})
    seen = {"initial-label": "", "initial-description": "", "initial-colour": ""}
    client.post(SETTINGS, {"form": "description", "label": "", "description": "of it\r\nall", **seen})
    account.refresh_from_db()
    assert (account.protected, account.read_only) == (True, True)
    assert (account.label, account.description) == ("Shop", "of it\r\nall")


def test_a_setting_that_two_have_changed_is_replaced_once_that_was_said(visit, account):
    client = visit("alice")
    account_settings.change(account, label="", description="theirs\nall", history_days=3)
    seen = {"initial-label": "old", "initial-description": "", "initial-colour": ""}
    sent = {"form": "description", "label": "mine", "description": "mine", **seen}
    refused = client.post(SETTINGS, sent)
    assert refused.status_code == 422
    assert "Emptied in the meantime. Save again to replace that." in refused.content.decode()
    account.refresh_from_db()
    assert (account.label, account.description) == ("", "theirs\nall")
    again = sent | {"initial-label": "", "initial-description": "theirs\r\nall"}
    assert client.post(SETTINGS, again).status_code == 302
    account.refresh_from_db()
    assert (account.label, account.description) == ("mine", "mine")
    # both have chosen the same
    same = {"form": "description", "label": "mine", "description": "mine", **seen}
    assert client.post(SETTINGS, same).status_code == 302
