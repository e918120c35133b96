"""The policies of a table in the console: untouched they stay, faults are told, and what a save does is shown."""

import re
from datetime import datetime
from itertools import combinations
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.access.policies import notes, presets
from console.access.policies.drafts import draft_set, show_time
from console.access.policies.forms import PolicyFormSet, write_data
from console.access.policies.presets import TEMPLATES
from console.access.policies.xml_text import write_xml
from storage.access import policies, sas
from storage.accounts import account_settings, accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.grants import Grant, GrantKind, Operation, Resource
from storage.domain.access.policies import PERMISSIONS, AccessPolicy, SignedIdentifier, read_instant
from storage.domain.access.policies_xml import read_identifiers, write_identifiers
from storage.domain.sas.terms import _permissions
from storage.domain.sas.tokens import TableSas
from storage.models import Account, Activity
from storage.tables import tables
from tests.console.forms import lists_of
from tests.examples import of_usual

PAGE = "/ui/a/acme/t/people/acl/"
SAVE = PAGE + "save/"
HTMX = {"HX-Request": "true"}
LATER, SOONER = "2031-01-01T00:00:00.0000000Z", "2030-01-01T00:00:00.0000000Z"
ODD = [
    SignedIdentifier("absent"),
    SignedIdentifier("letters", AccessPolicy(None, None, "r")),
    SignedIdentifier("no terms", AccessPolicy()),
    SignedIdentifier(" \t<b>é😀 ", AccessPolicy(None, "2030-06-01T10:20:30.1234567Z", "dua")),
    SignedIdentifier("line\r\nbreak", AccessPolicy("0001-01-01T00:00:00.0000000Z", None, None)),
]
PLAIN = [
    SignedIdentifier("partner", AccessPolicy(None, LATER, "r")),
    SignedIdentifier("ci", AccessPolicy(None, LATER, "raud")),
]


def text(answer):
    return " ".join(answer.content.decode().split())


def stored():
    return policies.stored_by_name(Account.objects.get(name="acme"), "people")


def said(client):
    return " ".join(str(message) for message in client.get(PAGE).context["messages"])


def form_of(answer, **changes):
    """``p0_start`` is the field policies-0-start."""
    changed = {re.sub(r"^p([0-9])_", r"policies-\1-", name): value for name, value in changes.items()}
    return lists_of(answer, "policies-form", **changed)


@pytest.fixture
def keep(account, add_entity):
    def keep(*identifiers, table="people"):
        if table != "people":
            tables.create(account, table)
        policies.replace_by_name(account, table, identifiers)

    return keep


@pytest.fixture
def issue(account):
    """Return `issue("partner")`, which registers a token by a policy; its label is the policy's Id."""

    def issue(identifier, label="", **said):
        token = TableSas("2019-02-02", "people", identifier=identifier, **said)
        description = sas.SasDescription(label or identifier)
        return sas.issue(account, token, 1, description, by=Actor(ActorKind.USER, "max"))

    return issue


# untouched policies


def test_saving_unchanged_policies_changes_nothing_in_any_zone_and_view(visit, cast, keep):
    keep(*ODD)
    before, records = write_identifiers(stored()), Activity.objects.count()
    client = visit("max")
    for zone, view in (("UTC", ""), ("Europe/Istanbul", "?view=xml"), ("America/St_Johns", "")):
        cast["max"].time_zone = zone
        cast["max"].save()
        assert client.post(SAVE, form_of(client.get(PAGE + view)))["Location"] == PAGE + view
        assert (stored(), write_identifiers(stored())) == (ODD, before), (zone, view)
        assert Activity.objects.count() == records, (zone, view)
        assert "Nothing was changed." in said(client), (zone, view)


def test_blank_stays_blank_beside_an_edit(visit, keep):
    keep(*ODD)
    client = visit("max")
    edited = {"p0_expiry": "2031-01-01", "p1_permissions": ["d", "u", "r"], "p3_identifier": "new"}
    client.post(SAVE, form_of(client.get(PAGE), **edited))
    assert stored() == [
        SignedIdentifier("absent", AccessPolicy(None, LATER, None)),
        SignedIdentifier("letters", AccessPolicy(None, None, "rud")),  # in the order of the service
        ODD[2],
        SignedIdentifier("new", ODD[3].policy),  # in the order of the user who did not touch it
        ODD[4],
    ]


INSTANTS = st.datetimes().map(
    lambda moment: read_instant(f"{moment.isoformat()[:19]}.{moment.microsecond:06}3Z")
)
TIMES = st.none() | INSTANTS
LETTERS = st.none() | st.permutations(PERMISSIONS).flatmap(
    lambda letters: st.integers(0, 4).map(lambda number: "".join(letters[:number]))
)
POLICIES = st.none() | st.builds(AccessPolicy, TIMES, TIMES, LETTERS)
NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20)
SETS = st.dictionaries(NAMES, POLICIES, max_size=5).map(
    lambda found: [SignedIdentifier(name, policy) for name, policy in found.items()]
)
ZONES = st.sampled_from(
    ["UTC", "Europe/Istanbul", "America/St_Johns", "Pacific/Kiritimati", "Europe/Amsterdam"]
)


@settings(max_examples=of_usual(30))
@given(SETS, ZONES)
def test_any_set_comes_back_from_the_form(identifiers, zone):
    formset = PolicyFormSet(write_data(draft_set(identifiers, zone)))
    assert formset.identifiers == identifiers
    assert list(formset.draft.seen) == identifiers


@settings(max_examples=of_usual(30))
@given(st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)), ZONES)  # noqa: DTZ001
def test_a_time_typed_as_it_is_shown_is_that_time(moment, zone):
    shown = show_time(read_instant(f"{moment.isoformat()[:19]}Z"), ZoneInfo(zone))
    data = write_data(draft_set([SignedIdentifier("a", AccessPolicy(None, SOONER, "r"))], zone))
    data["policies-0-expiry"] = shown
    (read,) = PolicyFormSet(data).identifiers
    # an hour that comes twice, where only one of them can be typed without an offset
    assert show_time(read.policy.expiry, ZoneInfo(zone)) == shown


def test_times_have_the_zone_in_which_they_were_drawn(visit, cast, keep):
    keep(*PLAIN)
    cast["max"].time_zone = "Europe/Istanbul"
    cast["max"].save()
    client = visit("max")
    page = client.get(PAGE)
    assert 'value="2031-01-01 03:00"' in text(page)
    assert "00:00 UTC" in text(page)
    cast["max"].time_zone = "UTC"
    cast["max"].save()
    client.post(SAVE, form_of(page, p0_start="2030-01-01 03:00"))
    assert stored()[0].policy == AccessPolicy(SOONER, LATER, "r")


# five at most, and what is wrong


def test_a_sixth_policy_is_impossible(visit, keep):
    keep(*(SignedIdentifier(name) for name in "abcd"))
    client = visit("max")
    added = client.post(SAVE, form_of(client.get(PAGE), do="add:partner"))
    assert "5 of 5" in text(added)
    assert "A table can have up to 5 policies." in text(added)
    assert 'value="add:' not in text(added)
    again = client.post(SAVE, form_of(added, do="add:"))
    refused = client.post(SAVE, form_of(again, do="save"))
    assert refused.status_code == 422
    assert "A table can have up to 5 policies." in text(refused)
    six = write_xml([SignedIdentifier(name) for name in "abcdef"])
    assert client.post(SAVE, form_of(client.get(PAGE + "?view=xml"), xml=six, do="form")).status_code == 422
    assert [it.identifier for it in stored()] == list("abcd")


def test_refuses_a_value_at_its_place(visit, keep):
    keep(*PLAIN)
    client = visit("max")
    page = client.get(PAGE)
    for field, value, rule in [
        ("p1_identifier", "partner", "Another policy of this table already has this Id."),
        ("p1_identifier", "", "An Id needs 1 to 64 characters"),
        ("p1_identifier", "😀" * 33, "An Id needs 1 to 64 characters"),
        ("p0_start", "soon", "Enter a time such as"),
        ("p0_expiry", "2026-02-30", "Enter a time such as"),
    ]:
        refused = client.post(SAVE, form_of(page, **{field: value}))
        name = f"policies-{field[1]}-{field[3:]}"
        assert refused.status_code == 422, (field, value)
        assert all(part in text(refused) for part in (f'href="#id_{name}"', f'id="id_{name}_error"', rule)), (
            field,
            value,
        )
        assert stored() == PLAIN, (field, value)


def test_warns_of_what_is_hardly_meant(visit, keep):
    keep(*PLAIN)
    client = visit("max")
    preview = client.post(
        SAVE,
        form_of(
            client.get(PAGE), do="preview", p0_identifier="CI", p1_identifier="ci", p1_start="2032-01-01"
        ),
        headers=HTMX,
    )
    assert "Another Id differs only in letter case." in text(preview)
    assert "Renaming creates a new policy: tokens that use partner are revoked." in text(preview)
    assert "before the start" in text(preview)
    spaced = client.post(
        SAVE, form_of(client.get(PAGE), do="preview", p0_identifier=" partner"), headers=HTMX
    )
    assert "The Id begins or ends with a space" in text(spaced)
    assert stored() == PLAIN


ONE = {"policies-TOTAL_FORMS": 1, "policies-INITIAL_FORMS": 0, "do": "preview"}


def test_forged_forms_are_bad_requests(visit, keep):
    keep(*PLAIN)
    client = visit("max")
    for broken in [
        "{",
        '{"a": 1}',
        '[{"identifier": "a"}]',
        '[{"identifier": "\\ud800", "policy": null}]',
        '[{"identifier": "a", "policy": {"start": null, "expiry": null, "permission": "xx"}}]',
        "[" * 100_000,
    ]:
        assert client.post(SAVE, {"seen": broken, "do": "save"}).status_code == 400, broken
        assert client.post(SAVE, {**ONE, "policies-0-basis": broken}).status_code == 400, broken
        assert stored() == PLAIN, broken


# buttons


def test_adds_from_templates_and_removes_without_saving(visit, keep):
    keep(*PLAIN)
    client = visit("max")
    answer = client.get(PAGE)
    for template in TEMPLATES:
        answer = client.post(SAVE, form_of(answer, do=f"add:{template.name}"))
    names = [row["notes"]["identifier"] for row in answer.context["rows"]]
    assert names == ["partner", "ci", "partner-read", "device-append", "ci-full"]
    answer = client.post(SAVE, form_of(answer, do="remove:0"))
    again = client.post(SAVE, form_of(answer, do="add:partner"))
    assert [row["notes"]["identifier"] for row in again.context["rows"]][-1] == "partner-read-2"
    assert stored() == PLAIN
    client.post(SAVE, form_of(answer, do="save"))
    results = {it.identifier: it.policy for it in stored()}
    assert list(results) == names[1:]
    assert (results["device-append"], results["ci-full"].permission) == (
        AccessPolicy(None, None, "a"),
        "raud",
    )


NOW = datetime(2026, 11, 21, 23, 10, 30, 7, tzinfo=ZoneInfo("Europe/Istanbul"))


@pytest.mark.parametrize(
    ("choices", "name", "text"),
    [
        (presets.STARTS, "none", None),
        (presets.STARTS, "now", "2026-11-21 23:10"),
        (presets.STARTS, "earlier", "2026-11-21 23:05"),
        (presets.EXPIRIES, "1h", "2026-11-22 00:11"),
        (presets.EXPIRIES, "30d", "2026-12-21 23:11"),
        (presets.EXPIRIES, "quarter", "2026-12-31 23:59:59"),
    ],
)
def test_presets(choices, name, text):
    (found,) = (preset for preset in choices if preset.name == name)
    moment = found.resolve(NOW)
    assert (None if moment is None else presets.show_moment(moment)) == text


def test_presets_fill_in_the_field(now, visit, keep):
    keep(*PLAIN)
    client = visit("max")
    answer = client.post(SAVE, form_of(client.get(PAGE), do="expiry:0:none"))
    answer = client.post(SAVE, form_of(answer, do="start:1:now"))
    answer = client.post(SAVE, form_of(answer, do="expiry:1:date", p1_date="2029-05-04"))
    spelled = client.post(SAVE, form_of(answer, do="expiry:1:date", p1_date="May 4"))
    assert form_of(spelled)["policies-1-expiry"] == ["May 4"]  # the form refuses it when it is saved
    client.post(SAVE, form_of(answer, do="save"))
    partner, ci = stored()
    assert partner.policy == AccessPolicy(None, None, "r")
    assert ci.policy.expiry == "2029-05-04T23:59:59.0000000Z"
    assert datetime.fromisoformat(ci.policy.start) == now.replace(second=0, microsecond=0)


def test_copies_from_another_table_exactly(visit, keep):
    keep(*PLAIN)
    keep(*ODD, table="odd")
    other = accounts.add("other")
    tables.create(other, "secret")
    policies.replace_by_name(other, "secret", PLAIN)
    client = visit("max")
    page = client.get(PAGE)
    assert '<option value="odd" selected> odd (5)</option>' in text(page)
    assert "secret" not in text(page)
    copied = client.post(SAVE, form_of(page, do="copy", source="odd"))
    assert "Copied the policies of odd. Nothing is saved yet." in text(copied)
    assert stored() == PLAIN
    client.post(SAVE, form_of(copied, do="save"))
    assert stored() == ODD
    refused = client.post(SAVE, form_of(client.get(PAGE), do="copy", source="secret"))
    assert "The specified resource does not exist." in " ".join(map(str, refused.context["messages"]))


def test_form_and_xml_are_one(visit, keep):
    keep(*ODD)
    client = visit("max")
    page = client.get(PAGE)
    xml = client.post(SAVE, form_of(page, do="xml", p0_permissions=["r"]))
    document = form_of(xml)["xml"][0]
    edited = [SignedIdentifier("absent", AccessPolicy(None, None, "r")), *ODD[1:]]
    same = [
        SignedIdentifier(it.identifier, None if it.policy == AccessPolicy() else it.policy) for it in edited
    ]
    assert read_identifiers(document.encode()) == same
    back = client.post(SAVE, form_of(xml, do="form", xml=document.replace("absent", "present")))
    rows = [row["notes"]["identifier"] for row in back.context["rows"]]
    assert rows[0] == "present"
    client.post(SAVE, form_of(back, do="save"))
    assert stored()[0] == SignedIdentifier("present", AccessPolicy(None, None, "r"))
    assert stored()[3:] == ODD[3:]


def test_refuses_xml_and_previews_none_of_it(visit, keep):
    keep(*PLAIN)
    client = visit("max")
    page = client.get(PAGE + "?view=xml")
    for xml, told in [
        ("<SignedIdentifiers>", "The XML is invalid at line 1"),
        ("<Other/>", "UnsupportedXmlNode"),
        (write_xml(PLAIN).replace("partner", "ci"), "Another policy of this table already has this Id."),
        (write_xml(PLAIN).replace("partner", ""), "An Id needs 1 to 64 characters"),
        (write_xml(PLAIN).replace(LATER, "soon"), "InvalidXmlNodeValue"),
        (write_xml([SignedIdentifier(name) for name in "abcdef"]), "A table can have up to 5 policies."),
    ]:
        fields = {**form_of(page), "xml": xml}
        refused = client.post(SAVE, fields)
        assert refused.status_code == 422, (xml, told)
        assert told in text(refused), (xml, told)
        looked_at = client.post(SAVE, {**fields, "do": "preview"}, headers=HTMX)
        assert looked_at.status_code == 200, (xml, told)
        assert "Fix the XML to see the impact." in text(looked_at), (xml, told)
        assert stored() == PLAIN, (xml, told)


# the effect of saving


def test_preview_names_tokens(visit, keep, issue):
    keep(*PLAIN)
    issue("partner", "weekly <report>")
    issue("ci", "nightly import")
    client = visit("max")
    page = client.get(PAGE)
    assert "0 tokens affected · 2 unchanged" in text(page)
    preview = client.post(
        SAVE,
        form_of(page, do="preview", p1_permissions=["r", "a", "u"], p0_identifier="partner-2"),
        headers=HTMX,
    )
    shown = text(preview)
    assert "2 tokens affected · 0 unchanged" in shown
    assert "weekly &lt;report&gt;" in shown
    assert "revoked: the policy partner was renamed to partner-2, and tokens keep the old Id" in shown
    assert "loses d Delete" in shown
    assert "d Delete removed" in shown
    assert "Allows point reads and queries, inserts, updates and merges, upserts." in shown
    # the swapped part has no fields, so that typed text is kept
    assert "<input" not in shown
    assert stored() == PLAIN
    keep(*PLAIN[1:])  # now a token without its policy is refused, whatever is saved
    shown = text(client.get(PAGE))
    assert "1 token stays refused" in shown
    assert "still revoked: no policy has its Id" in shown


def test_preview_says_what_happens_to_tokens(visit, keep, issue):
    keep(*PLAIN)
    issue("partner")
    client = visit("max")
    page = client.get(PAGE)
    for changes, told in [
        ({"p0_permissions": ["r", "d"]}, "gains d Delete"),
        ({"p0_expiry": "2030-01-01 00:00"}, "expires earlier: 2030-01-01 00:00"),
        ({"p0_expiry": "2032-01-01 00:00"}, "expires later: 2032-01-01 00:00"),
        ({"p0_expiry": "2020-01-01"}, "revoked: expired"),
        ({"p0_expiry": ""}, "revoked: neither the token nor its policy would set an expiry and permissions"),
        ({"p0_start": "2030-01-01"}, "refused until 2030-01-01 00:00"),
        ({"do": "remove:0"}, "revoked: the policy partner no longer exists"),
    ]:
        answer = client.post(SAVE, form_of(page, **{"do": "preview", **changes}))
        assert told in text(answer), (changes, told)


def test_preview_says_that_an_account_takes_no_signatures(visit, keep):
    keep(*PLAIN)
    client = visit("max")
    assert "This account accepts bearer tokens only" not in text(client.get(PAGE))
    account_settings.change(accounts.by_name("acme"), shared_key_access=False)
    assert "This account accepts bearer tokens only" in text(client.get(PAGE))


def test_undo_brings_back_what_it_revoked(visit, keep, issue):
    keep(*PLAIN)
    issue("ci")
    client = visit("max")
    saved = client.post(
        SAVE, form_of(client.post(SAVE, form_of(client.get(PAGE), do="remove:1")), do="save"), follow=True
    )
    assert stored() == PLAIN[:1]
    told = " ".join(map(str, saved.context["messages"]))
    assert "Saved the policies of people." in told
    assert "1 known token was revoked. Undo to restore it." in told
    record = Activity.objects.latest("pk")
    client.post(f"/ui/undo/{record.pk}/")
    assert stored() == PLAIN
    client.post(SAVE, form_of(client.post(SAVE, form_of(client.get(PAGE), do="remove:0")), do="save"))
    assert "Undo restores tokens that use partner." in said(client)


# when two edit at once


@pytest.mark.parametrize("view", ["", "?view=xml"])
def test_two_editors(visit, keep, issue, view):
    keep(*PLAIN)
    issue("ci")
    first, second = visit("max"), visit("alice")
    fields = form_of(first.get(PAGE + view))
    second.post(SAVE, form_of(second.get(PAGE), p0_identifier="other"))
    if view:
        fields["xml"] = fields["xml"][0].replace("raud", "r")
    else:
        fields["policies-1-permissions"] = ["r"]
    preview = first.post(SAVE, fields | {"do": "preview"}, headers=HTMX)
    assert "loses a Add, u Update, d Delete" in text(preview)
    conflict = first.post(SAVE, fields)
    assert conflict.status_code == 409
    assert "These policies were changed after you opened them" in text(conflict)
    assert "alice" in text(conflict)
    assert [side.draft.identifier for side in conflict.context["theirs"]] == ["other", "ci"]
    assert [side.draft.identifier for side in conflict.context["ours"]] == ["partner", "ci"]
    assert all(side.is_different for side in conflict.context["theirs"])
    assert stored()[0].identifier == "other"
    edited = first.post(SAVE, lists_of(conflict, None, do="form"))
    assert [row["notes"]["identifier"] for row in edited.context["rows"]] == ["partner", "ci"]
    first.post(SAVE, lists_of(conflict, None, do="save"))
    assert stored() == [PLAIN[0], SignedIdentifier("ci", AccessPolicy(None, LATER, "r"))]


def test_the_same_edit_twice_is_none(visit, keep):
    keep(*PLAIN)
    first, second = visit("max"), visit("alice")
    pages = [(client, client.get(PAGE)) for client in (first, second)]
    answers = [client.post(SAVE, form_of(page, p0_permissions=["d"])) for client, page in pages]
    assert [answer.status_code for answer in answers] == [302, 302]
    assert "Nothing was changed." in said(second)


# permissions


def test_others_only_look(visit, keep, issue):
    keep(*PLAIN)
    issue("ci")
    victor = visit("victor")
    page = text(victor.get(PAGE))
    assert 'value="partner"' in page
    assert '<fieldset class="policy-list" disabled>' in page
    assert 'name="do"' not in page
    assert "1 token" in page
    assert "Impact of this change" not in page
    assert " readonly >" in text(victor.get(PAGE + "?view=xml"))
    for name in ("victor", "eve"):
        assert visit(name).post(SAVE, {"do": "preview"}).status_code == 403
    assert stored() == PLAIN


def test_a_read_only_account_keeps_its_policies(visit, keep):
    keep(*PLAIN)
    client = visit("max")
    page = client.get(PAGE)
    Account.objects.filter(name="acme").update(read_only=True)
    refused = client.post(SAVE, form_of(page, p0_permissions=["d"]))
    assert refused.status_code in {403, 422}
    assert stored() == PLAIN
    shown = text(client.get(PAGE))
    assert "This account is read-only, so policies cannot be changed." in shown
    assert 'name="do"' not in shown


def test_help_says_what_the_grants_say():
    entities = [it for letters in notes.OPERATIONS.values() for it in letters]
    every = {"".join(chosen) for size in range(5) for chosen in combinations(PERMISSIONS, size)}
    for letters in every:
        grant = Grant(GrantKind.TABLE_SAS, _permissions(letters), Resource.OBJECT, table="people")
        allowed = {it for it in Operation if grant.allows(it, "people")} - {
            Operation.ENTITY_GROUP_TRANSACTION
        }
        said = {
            it for chosen, those in notes.OPERATIONS.items() if set(chosen) <= set(letters) for it in those
        }
        assert said == allowed
    assert len(entities) == len(set(entities))
    assert notes.ALLOWS.keys() == notes.OPERATIONS.keys()
