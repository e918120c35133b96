"""SAS tokens in the console: made once and shown once, listed, noted, blocked."""

import csv
import json
import re
from dataclasses import replace
from datetime import datetime, timedelta
from io import StringIO
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone

from console.access.sas.forms import SasForm
from console.access.sas.key_range import Fit, KeyRange, cover_filter, cover_rows
from console.grid.tokens import encode_key
from storage.access import policies
from storage.access import sas as sas_operations
from storage.access.subject import AccessVerb
from storage.accounts import account_settings, accounts, sealed_keys
from storage.domain import sas
from storage.domain.access.policies import AccessPolicy, SignedIdentifier
from storage.domain.entities.entity import EntityKey
from storage.domain.filters.parser import parse
from storage.domain.requests.metrics import CredentialClient as User
from storage.domain.requests.metrics import UseCount
from storage.domain.requests.observed import Authentication
from storage.domain.sas import TableSas
from storage.domain.sas.explain import KeyLimits
from storage.metrics.last_day import hour_of
from storage.metrics.usage import Uses
from storage.models import Activity, RegisteredSas
from storage.tables import tables
from tests.console.markup import text

SAS = "/ui/a/acme/sas/"
NEW = SAS + "new/"
HTMX = {"HX-Request": "true"}
LATER = "2099-01-01T00:00:00.0000000Z"


@pytest.fixture
def orders(account):
    """Make a table with one policy that sets permissions and expiry, and one that sets neither."""
    table = tables.create(account, "Orders")
    stored = [
        SignedIdentifier("partner", AccessPolicy(None, LATER, "r")),
        SignedIdentifier("open", AccessPolicy()),
    ]
    policies.replace_by_name(account, "orders", stored)
    return table


def sent(**fields):
    """Return the fields that a browser sends with the form."""
    plain = {
        "is_form": "1",
        "kind": "table",
        "table": "Orders",
        "permissions": ["r"],
        "expiry": "1d",
        "signer": "1",
    }
    return {**plain, "label": "partner demo", **fields}


def secrets_of(answer):
    return {id_: text for id_, _label, text in answer.context["secrets"]}


def use(account, token, count=1, *, key=0):
    """Record uses of a token that another client signed with a key of the account."""
    signed = sas.sign(token, account.name, sealed_keys.keys_of(account)[key])
    uses, now = Uses("one"), timezone.now()
    client = User(account.pk, Authentication.SAS, sas.fingerprint(signed), "192.0.2.1", "azsdk-python")
    parameters = sas.to_parameters(signed)
    uses.add(hour_of(now), client, UseCount(count, now), parameters)
    uses.write()
    return client.credential


SEEN = TableSas(version="2019-02-02", table="Orders", permissions="ra", expiry="2099-01-01T00:00:00Z")


# making one


@pytest.mark.django_db(transaction=True)
def test_a_token_is_shown_once(proven, account, orders, caplog):
    client = proven("max")
    answer = client.post(NEW, sent(spk="A", epk="F", protocol="https"))
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    result = secrets_of(answer)
    token = sas.read(dict(parse_qsl(result["token"])))
    assert (token.table, token.permissions, token.protocol) == ("Orders", "r", "https")
    assert (token.start_partition, token.end_partition) == ("A", "F")
    assert sas.find_signing_key(token, "acme", sealed_keys.keys_of(account)) == 0
    assert result["url"] == f"http://testserver/acme/Orders?{result['token']}"
    assert (
        result["connection"]
        == f"TableEndpoint=http://testserver/acme;SharedAccessSignature={result['token']}"
    )
    for secret in result.values():
        assert secret.replace("&", "&amp;") in answer.content.decode()

    signature = token.signature
    print_ = sas.fingerprint(token)
    pages = (SAS, f"{SAS}{print_}/", NEW, "/ui/", "/ui/a/acme/activity/", SAS + "export/?format=ndjson")
    for page in pages:
        seen = client.get(page)
        content = b"".join(seen.streaming_content) if seen.streaming else seen.content
        assert signature.encode() not in content
        assert signature.replace("+", "%2B").encode() not in content
    assert signature not in caplog.text
    record = RegisteredSas.objects.get()
    assert record.fingerprint == print_
    assert signature not in str(record.__dict__)
    done = Activity.objects.get(verb=AccessVerb.SAS_ISSUE)
    assert signature not in str(done.__dict__)
    assert client.get(f"{SAS}{print_}/").status_code == 200


def test_the_form_begins_with_the_label_and_offers_the_tables(visit, orders):
    client = visit("max")
    form = client.get("/ui/a/acme/sas/new/").text
    assert re.search(r'name="label"[^>]* autofocus', form)
    assert form.index('name="label"') < form.index('name="kind"')
    assert re.search(r'<select name="table"[^>]*>\s*<option value="">[^<]*</option>\s*<option>Orders<', form)
    assert "<option selected>Orders<" in client.get("/ui/a/acme/sas/new/?table=orders").text
    part = client.post("/ui/a/acme/sas/new/preview/?part=form", {"table": "orders"}).text
    assert "<option selected>Orders<" in part and "autofocus" not in part  # the focus stays where it is


def test_making_one_wants_a_proof_and_loses_nothing(visit, orders):
    client = visit("max")
    answer = client.post(NEW, sent(spk="A", permissions=["r", "d"], label="x & y"))
    assert answer.status_code == 302
    asked = urlsplit(answer["Location"])
    assert asked.path == "/ui/me/again/"
    back = parse_qs(asked.query)["next"][0]
    assert RegisteredSas.objects.count() == 0
    form = client.get(back).context["form"]
    assert (form["label"].value(), form["spk"].value(), form.chosen_permissions) == ("x & y", "A", ["r", "d"])


def test_a_signature_of_the_account(proven, account, orders):
    answer = proven("alice").post(
        NEW,
        sent(
            kind="account", permissions=["l", "c", "r"], levels=["o", "c"], address="10.0.0.0/8", signer="2"
        ),
    )
    token = sas.read(dict(parse_qsl(secrets_of(answer)["token"])))
    assert (token.services, token.resource_types, token.permissions) == ("t", "co", "rlc")
    assert token.address == "10.0.0.0-10.255.255.255"
    assert sas.find_signing_key(token, "acme", sealed_keys.keys_of(account)) == 1
    assert secrets_of(answer)["url"].startswith("http://testserver/acme/?sv=")
    assert answer.context["test"].startswith("/acme/Tables?$top=1&sv=")


def test_refuses_a_value_at_its_field(proven, orders):
    client = proven("max")
    for fields, field in [
        ({"label": "x" * 65}, "label"),
        ({"label": "a\0b"}, "label"),
        ({"table": "nothing"}, "table"),
        ({"policy": "none"}, "policy"),
        ({"permissions": []}, "permissions"),
        ({"permissions": ["l"]}, "permissions"),
        ({"kind": "account", "levels": []}, "levels"),
        ({"address": "10.0.0.9-2001:db8::1"}, "address"),
        ({"expiry": "at"}, "expiry_at"),
        ({"expiry": "at", "expiry_at": "2020-01-01T00:00"}, "expiry_at"),
        ({"expiry": "at", "expiry_at": "9999-12-31T23:59"}, "expiry_at"),
        ({"start": "at", "start_at": "0001-01-01T00:00"}, "start_at"),
        ({"start": "at", "start_at": "2099-01-01T00:00"}, "expiry_at"),
        ({"srk": "1"}, "srk"),
        ({"epk": "a", "spk": "b"}, "epk"),
        ({"spk": "a", "srk": "2", "epk": "a", "erk": "1"}, "epk"),
        ({"epk": "a", "erk": "\x01"}, "erk"),
    ]:
        answer = client.post(NEW, sent(**fields))
        assert answer.status_code == 422, (fields, field)
        assert field in answer.context["form"].errors, (fields, field)
        assert b"data-error-summary" in answer.content, (fields, field)
        assert RegisteredSas.objects.count() == 0, (fields, field)


def test_refuses_one_more_than_the_quota(proven, orders, account):
    account_settings.change(account, sas_limit=0)
    answer = proven("max").post(NEW, sent())
    assert answer.status_code == 422
    assert "can have at most 0 SAS tokens that have not expired." in answer.content.decode()


# the policy locks


def test_fields_set_by_the_policy_are_locked_and_left_out(proven, orders):
    client = proven("max")
    page = client.get(NEW, {"table": "orders", "policy": "partner"}).content.decode()
    assert 'id="permissions-locked"' in page
    assert 'id="expiry-locked"' in page
    assert 'id="start-locked"' not in page
    assert page.count("so the token cannot set it too") == 2
    # a request that sends these fields anyway gets a token without them
    answer = client.post(NEW, sent(policy="partner", permissions=["d"], expiry="30d", start="now"))
    token = sas.read(dict(parse_qsl(secrets_of(answer)["token"])))
    assert (token.permissions, token.expiry, token.identifier) == ("", "", "partner")
    assert token.start


def test_a_policy_that_says_nothing_locks_nothing(proven, orders):
    client = proven("max")
    page = client.get(NEW, {"table": "Orders", "policy": "open"}).content.decode()
    assert "-locked" not in page
    answer = client.post(NEW, sent(policy="open"))
    token = sas.read(dict(parse_qsl(secrets_of(answer)["token"])))
    assert (token.permissions, token.identifier, bool(token.expiry)) == ("r", "open", True)
    # fields that a policy locks keep their values for the time when it is deselected
    locked = client.post(NEW + "preview/?part=form", sent(policy="partner", permissions=["a"], expiry="7d"))
    assert '<input type="hidden" name="permissions" value="a">' in text(locked)
    assert '<input type="hidden" name="expiry" value="7d">' in text(locked)


# the preview


def test_previews_in_words(visit, orders):
    answer = visit("max").post(
        NEW + "preview/",
        sent(spk="A", epk="F", protocol="https", address="10.0.0.0/8", label=""),
        headers=HTMX,
    )
    page = answer.content.decode()
    assert "<html" not in page
    assert "only over HTTPS" in page
    assert "only from 10.0.0.0 to 10.255.255.255" in page
    assert "with PartitionKey from" in page
    assert answer.context["missing"] == []
    assert answer.context["lines"][0] == "r"
    assert "spk=A" in answer["HX-Replace-Url"]
    assert "csrf" not in answer["HX-Replace-Url"]


def test_preview_says_which_keys(visit, orders):
    client = visit("max")
    for keys, told in [
        ({}, "entities in"),
        ({"spk": "A", "epk": "A", "srk": "1", "erk": "1"}, 'and RowKey <bdi class="mono">1</bdi>'),
        ({"spk": "A", "epk": "A", "srk": "1"}, "and RowKey from"),
        ({"spk": "A", "epk": "A", "erk": "1"}, "and RowKey up to"),
        ({"epk": "A"}, "up to PartitionKey"),
        ({"spk": "A", "srk": "1", "epk": "B", "erk": "2"}, ", RowKey"),
        ({"spk": "<b>"}, "&lt;b&gt;"),
    ]:
        answer = client.post(NEW + "preview/", sent(**keys))
        assert told in str(answer.context["sentence"]), (keys, told)


def test_warns_of_a_long_life_without_a_policy(visit, orders):
    client = visit("max")
    for fields, is_warned in [
        ({"expiry": "30d"}, False),
        ({"expiry": "at"}, True),
        ({"expiry": "at", "policy": "open"}, False),
        ({"expiry": "at", "kind": "account", "levels": "c"}, True),
    ]:
        page = client.post(NEW, sent(**fields, expiry_at="2099-01-01T00:00", do="preview", label=""))
        assert page.status_code == 200, (fields, is_warned)
        assert (b"This token is valid for more than 30 days" in page.content) is is_warned, (
            fields,
            is_warned,
        )
        assert b"error-summary" not in page.content, (
            fields,
            is_warned,
        )  # a field that is not filled in yet is not an error
        assert RegisteredSas.objects.count() == 0, (fields, is_warned)


def test_presets_of_time(account, orders):
    now = timezone.now().replace(microsecond=0)

    def token(**fields):
        form = SasForm(
            QueryDict(urlencode(sent(**fields), doseq=True)), account=account, now=now, is_secure=False
        )
        assert form.is_valid(), form.errors
        return form.token()

    def after(text):
        return datetime.fromisoformat(text) - now

    assert token().start == ""
    assert after(token(start="now").start) == timedelta(0)
    assert after(token(start="ago").start) == timedelta(minutes=-5)
    for name, life in (("1h", 1), ("1d", 24), ("7d", 168), ("30d", 720)):
        assert after(token(expiry=name).expiry) == timedelta(hours=life)
    ends = datetime.fromisoformat(token(expiry="quarter").expiry) + timedelta(seconds=1)
    assert (ends.month % 3, ends.day, ends.hour) == (1, 1, 0)
    assert timedelta(0) < ends - now < timedelta(days=93)


# the range


@pytest.mark.parametrize(
    ("text", "keys", "fit"),
    [
        ("PartitionKey eq 'A' and RowKey eq '1'", ("A", "1", "A", "1"), Fit.EXACT),
        ("PartitionKey eq 'A' and RowKey ge '1' and RowKey le '9'", ("A", "1", "A", "9"), Fit.EXACT),
        ("PartitionKey ge 'A' and PartitionKey lt 'F'", ("A", "", "F", ""), Fit.WIDER),
        ("PartitionKey gt 'A'", ("A", "", "", ""), Fit.WIDER),
        ("PartitionKey eq 'A' and Age gt 3", ("A", "", "A", ""), Fit.WIDER),
        ("PartitionKey eq ''", ("", "", "", ""), Fit.WIDER),
        ("PartitionKey eq 'A' or PartitionKey eq 'B'", ("", "", "", ""), Fit.ALL),
    ],
)
def test_a_filter_as_a_range(text, keys, fit):
    reach = cover_filter(parse(text))
    assert (reach.keys, reach.fit) == (KeyLimits(*keys), fit)


def test_rows_as_a_range():
    one, other = EntityKey("B", "2"), EntityKey("A", "9")
    assert cover_rows([one]) == KeyRange(KeyLimits("B", "2", "B", "2"), Fit.EXACT)
    assert cover_rows([one, other]) == KeyRange(KeyLimits("A", "9", "B", "2"), Fit.WIDER)
    assert cover_rows([EntityKey("", "1"), one]).keys == KeyLimits("", "", "B", "2")
    assert cover_rows([]).fit is Fit.ALL


def test_the_grid_leads_to_the_form(visit, orders):
    client = visit("max")
    ticked = {"scope": "rows", "key": [encode_key(EntityKey("A", "1")), encode_key(EntityKey("C", "3"))]}
    answer = client.post("/ui/a/acme/t/orders/sas/", ticked)
    query = parse_qs(urlsplit(answer["Location"]).query)
    assert query == {
        "table": ["Orders"], "spk": ["A"], "srk": ["1"], "epk": ["C"], "erk": ["3"], "of": ["rows-wider"],
    }  # fmt: skip
    page = client.get(answer["Location"]).content.decode()
    assert "includes every row in between" in page
    answer = client.post("/ui/a/acme/t/orders/sas/", {"scope": "query", "f": "PartitionKey eq 'A'"})
    assert parse_qs(urlsplit(answer["Location"]).query)["of"] == ["query-exact"]
    answer = client.post("/ui/a/acme/t/orders/sas/", {"scope": "query", "f": "PartitionKey eq"})
    assert answer["Location"] == "/ui/a/acme/t/Orders/"
    answer = client.post("/ui/a/acme/t/orders/sas/", {"scope": "query", "f": ""})
    assert answer["Location"] == f"{NEW}?table=Orders"
    linked = client.get(NEW, {"table": "Orders", "f": "PartitionKey eq 'A'"}, follow=True)
    assert linked.context["form"]["spk"].value() == "A"


# the registry


def test_lists_what_was_made_and_what_was_seen(proven, account, orders):
    client = proven("max")
    client.post(NEW, sent(owner="eve"))
    seen = use(account, SEEN, 3)
    made, other = client.get(SAS).context["rows"]
    assert (made.known.label, made.known.author, made.state) == ("partner demo", "max", "active")
    assert (other.known.fingerprint, other.known.uses, other.state) == (seen, 3, "active")
    page = client.get(SAS).content.decode()
    assert "seen, created elsewhere" in page
    assert "partner demo" in page
    assert 'href="/ui/a/acme/t/Orders/acl/"' in page


def test_the_list_is_filtered(proven, account, orders):
    client = proven("max")
    client.post(NEW, sent())
    use(account, SEEN)
    for asked, number in [
        ({"q": "PARTNER"}, 1),
        ({"q": "orders"}, 2),
        ({"q": "azsdk"}, 1),
        ({"q": "zzz"}, 0),
        ({"state": "active"}, 2),
        ({"state": "expires-soon"}, 0),
        ({"state": "blocked"}, 0),
        ({"state": "x"}, 2),
    ]:
        part = client.get(SAS, asked, headers=HTMX)
        assert len(part.context["rows"]) == number, (asked, number)
        assert b"<html" not in part.content, (asked, number)


def test_a_token_of_an_old_key_ends_with_it(proven, account, orders):
    client = proven("max")
    client.post(NEW, sent(expiry="7d"))
    accounts.rotate("acme", 1, grace=timedelta(days=3))
    [row] = client.get(SAS).context["rows"]
    assert (row.ends, row.ends_with_key) == (row.known.key_ends, True)
    page = client.get(SAS).content.decode()
    assert "with its old key" in page
    assert "in 2\xa0days, 23\xa0hours" in page


def test_exports_without_secrets(proven, account, orders):
    client = proven("max")
    token = secrets_of(client.post(NEW, sent(label="=cmd()")))["token"]
    use(account, SEEN, 3)
    text = b"".join(client.get(SAS + "export/?format=csv").streaming_content).decode()
    rows = list(csv.DictReader(StringIO(text)))
    assert [row["label"] for row in rows] == ["'=cmd()", ""]
    assert [row["state"] for row in rows] == ["active", "active"]
    lines = (
        b"".join(client.get(SAS + "export/?format=ndjson&q=azsdk").streaming_content).decode().splitlines()
    )
    assert json.loads(lines[-1])["parameters"]["sp"] == "ra"
    signature = dict(parse_qsl(token))["sig"]
    assert signature not in text
    assert signature not in "".join(lines)


def test_home_says_which_end_soon_to_those_who_manage_them(visit, proven, account, orders):
    client = proven("max")
    client.post(NEW, sent())  # expires in a day, and most of it is left
    assert "Tokens expiring" not in client.get("/ui/").content.decode()
    RegisteredSas.objects.update(created_at=timezone.now() - timedelta(days=30))
    home = client.get("/ui/").content.decode()
    assert "Tokens expiring soon" in home
    assert "partner demo" in home
    victor = visit("victor")
    assert "Tokens expiring" not in victor.get("/ui/").content.decode()
    assert SAS not in victor.get("/ui/a/acme/").content.decode()


# one of them


def test_a_token_has_a_page(visit, account, orders):
    print_ = use(account, SEEN, 3)
    answer = visit("max").get(f"{SAS}{print_}/")
    page = answer.content.decode()
    assert "azsdk-python" in page
    assert "not on Azure" in page
    assert [client.uses for client in answer.context["clients"]] == [3]
    assert "no-store" in answer["Cache-Control"]


def test_counts_what_else_would_end(visit, account, orders):
    named = TableSas(version="2019-02-02", table="orders", identifier="partner")
    first = use(account, named, 3)
    use(account, TableSas(version="2019-02-02", table="Orders", identifier="partner"), 4, key=1)
    use(account, SEEN, 5)
    context = visit("max").get(f"{SAS}{first}/").context
    assert (context["policy_impact"].tokens, context["policy_impact"].uses) == (2, 7)
    assert (context["key_impact"].tokens, context["key_impact"].uses, context["key_impact"].clients) == (
        2,
        8,
        0,
    )


@pytest.mark.django_db(transaction=True)
def test_blocks_and_undoes(visit, account, orders):
    print_ = use(account, SEEN)
    client = visit("max")
    answer = client.post(f"{SAS}{print_}/block/", {"blocked": "1"}, follow=True)
    page = answer.content.decode()
    assert "Blocked the token. Its requests are refused from now on." in page
    assert "data-undo" in page
    assert answer.context["row"].state == "blocked"
    done = Activity.objects.get(verb=AccessVerb.SAS_BLOCK)
    record = client.get("/ui/a/acme/activity/").content.decode()
    assert f'blocked the SAS token <strong class="mono" title="{print_}">' in record
    assert client.get(f"/ui/a/acme/activity/{done.pk}/").status_code == 200
    client.post(reverse("activity:undo", args=[done.pk]), {"next": SAS})
    assert client.get(f"{SAS}{print_}/").context["row"].state == "active"


def test_adopts_a_seen_one(visit, account, orders):
    print_ = use(account, SEEN)
    client = visit("max")
    assert client.post(f"{SAS}{print_}/notes/", {"label": ""}).status_code == 422
    client.post(f"{SAS}{print_}/notes/", {"label": "cron", "owner": "eve"})
    assert sas_operations.find(account, print_, timezone.now()).label == "cron"
    assert "created elsewhere" not in client.get(f"{SAS}{print_}/").content.decode()
    done = Activity.objects.get(verb=AccessVerb.SAS_CHANGE, actor="max")
    page = client.get(f"/ui/a/acme/activity/{done.pk}/").content.decode()
    assert "cron" in page
    client.post(reverse("activity:undo", args=[done.pk]), {"next": SAS})
    assert sas_operations.find(account, print_, timezone.now()).label == ""


def test_ends_of_time_are_shown_in_any_zone(visit, cast, account, orders):
    client = visit("max")
    tokens = {
        moment: use(account, replace(SEEN, start="0001-01-01", expiry=moment))
        for moment in ("9999-12-31T23:59:59Z", "0001-01-01")
    }
    for zone in ("Pacific/Kiritimati", "America/St_Johns"):
        cast["max"].time_zone = zone
        cast["max"].save()
        for moment, fingerprint in tokens.items():
            assert moment in client.get(f"{SAS}{fingerprint}/").content.decode(), zone
        for page in (SAS, "/ui/"):
            assert client.get(page).status_code == 200, zone


def test_blocks_nothing_that_is_not_known(visit, account):
    for none in ("x", "%00", "F" * 64):
        assert visit("max").post(f"{SAS}{none}/block/", {"blocked": "1"}).status_code == 404
