"""Who may ask for what: every address of the console, by every role and method, against one table."""

from http.cookies import SimpleCookie
from itertools import product

import pytest
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.test import Client, RequestFactory
from django.urls import URLResolver, get_resolver, reverse

from console.access import account_required, admin_required
from console.people import roles
from storage.domain.roles import LEAST_ROLE, Capability, Role, may
from storage.operations import accounts

EVERYBODY = (None, "sam", "victor", "eve", "max", "alice", "ada")
MEMBERS = {"victor", "eve", "max", "alice", "ada"}
SIGNED_IN = MEMBERS | {"sam"}
TO_SIGN_IN = 302


def each(names, what):
    return dict.fromkeys(names, what)


BELOW_OWNER = {"victor", "eve", "max"}
OWNERS_POST_A_FORM = {
    "POST": {422: {"alice", "ada"}, 403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN},
    "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
}

MANAGERS = {"max", "alice", "ada"}
BELOW_MANAGER = {"victor", "eve"}
MEMBERS_READ = {
    "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
    "POST": {405: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
}
MANAGERS_POST = {
    "POST": {302: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
    "GET": {405: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
}

EDITORS = {"eve", "max", "alice", "ada"}
EDITORS_FIND_NO_CELL = {404: EDITORS | {"sam"}, 403: {"victor"}, "else": TO_SIGN_IN}

MANAGERS_PROVE = {
    "POST": {403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
    "GET": {405: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
}

# address → method → what each gets; who is not named gets what stands under "else"
PAGES = {
    "home": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}},
    "account": {"GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN}},
    "table_sizes": MEMBERS_READ,
    "table_new": {
        "GET": {200: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {422: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "tables_sample": MANAGERS_POST,
    "tables_delete": MANAGERS_POST,
    "tables_tag": MANAGERS_POST,
    "table_restore": MANAGERS_POST,
    "table_settings": MEMBERS_READ,
    "table_notes": MANAGERS_POST,
    "policies": MEMBERS_READ,
    "policies_save": MANAGERS_POST,
    "service": MEMBERS_READ,
    "service_save": {
        **MANAGERS_POST,
        "POST": {409: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    # after a proof of who they are; rotating and what only owners do likewise
    **each(("key_reveal", "key_copy", "connection", "connection_copy"), MANAGERS_PROVE),
    "keys": {"GET": {200: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN}},
    "key_end": {
        "POST": {403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: {"alice", "ada"}, 403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "key_rotate": each(("GET", "POST"), {403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN}),
    **each(
        ("account_settings", "account_delete"),
        {
            "GET": {200: {"alice", "ada"}, 403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN},
            "POST": {422: {"alice", "ada"}, 403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN},
        },
    ),
    "sas": {
        "GET": {200: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "sas_new": {
        "GET": {200: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {422: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "sas_preview": {
        "POST": {200: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "sas_range": {
        "POST": {302: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    # no format named, and no such token
    **each(
        ("sas_export", "sas_token"),
        {
            "GET": {404: MANAGERS | {"sam"}, 403: BELOW_MANAGER, "else": TO_SIGN_IN},
            "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
        },
    ),
    **each(
        ("sas_describe", "sas_block"),
        {
            "POST": {404: MANAGERS | {"sam"}, 403: BELOW_MANAGER, "else": TO_SIGN_IN},
            "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
        },
    ),
    "account_created": {"GET": {403: BELOW_OWNER, 404: {"sam"}, "else": 302}},
    "account_new": {
        "GET": {200: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "POST": {422: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
    },
    "star": {
        "POST": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "inspect": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {422: SIGNED_IN, "else": TO_SIGN_IN}},
    **each(("about", "shortcuts", "limits"), {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}}),
    "server_activity": {
        "GET": {200: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    **each(
        ("server_activity_entry", "server_activity_export"),
        {"GET": {404: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN}},
    ),
    "activity": {
        "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    # nothing of that number, and no format named
    "activity_entry": {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}},
    "activity_export": {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}},
    "undo": {"POST": {404: SIGNED_IN, "else": TO_SIGN_IN}, "GET": {405: SIGNED_IN, "else": TO_SIGN_IN}},
    "entities": {"GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN}},
    "search": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}},
    "palette": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}},
    "profile": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {422: SIGNED_IN, "else": TO_SIGN_IN}},
    "password": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {422: SIGNED_IN, "else": TO_SIGN_IN}},
    "members": {
        "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "members_add": OWNERS_POST_A_FORM,
    "members_invite": OWNERS_POST_A_FORM,
    "member": {
        "POST": {404: {"alice", "ada", "sam"}, 403: BELOW_OWNER, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "member_remove": {
        "POST": {404: {"alice", "ada", "sam"}, 403: BELOW_OWNER, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "users": {
        "GET": {200: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "users_invite": {
        "POST": {422: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "user": {
        "GET": {404: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "user_change": {
        "POST": {404: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "join": {"GET": {"else": 404}, "POST": {"else": 404}},
    "invitation_withdraw": {
        "POST": {404: SIGNED_IN, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    **each(
        ("account_reauthenticate", "mfa_reauthenticate", "mfa_reauthenticate_webauthn"),
        {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {422: SIGNED_IN, "else": TO_SIGN_IN}},
    ),
    # a token is made by who proved lately who they are, or they are asked to; there is none of that number
    "api_tokens": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {405: SIGNED_IN, "else": TO_SIGN_IN}},
    "api_token_new": each(("GET", "POST"), {"else": TO_SIGN_IN}),
    "api_token_revoke": each(("GET", "POST"), {404: SIGNED_IN, "else": TO_SIGN_IN}),
    "user_token_revoke": each(("GET", "POST"), {404: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN}),
    "api_docs": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}},
    **each(("security", "sessions"), {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}}),
    "sessions_end": {"GET": {405: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {"else": 302}},
    "session_end": {"GET": {405: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {"else": 302}},
    # whoever did not sign in lately is asked to prove who they are
    **each(
        (
            "mfa_add_webauthn",
            "mfa_edit_webauthn",
            "mfa_remove_webauthn",
            "mfa_activate_totp",
            "mfa_deactivate_totp",
            "mfa_view_recovery_codes",
            "mfa_generate_recovery_codes",
        ),
        {"GET": {"else": 302}, "POST": {"else": 302}},
    ),
    "entities_cell": each(("GET", "POST"), EDITORS_FIND_NO_CELL),
    "entities_check": {"POST": EDITORS_FIND_NO_CELL, "GET": {405: SIGNED_IN, "else": TO_SIGN_IN}},
    "entities_delete": {
        "POST": {302: EDITORS, 403: {"victor"}, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "entities_paste": {
        "GET": {200: EDITORS, 403: {"victor"}, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {422: EDITORS, 403: {"victor"}, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "entity": {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}, "POST": EDITORS_FIND_NO_CELL},
    "entity_key": each(("GET", "POST"), EDITORS_FIND_NO_CELL),
    "entity_row": {"POST": EDITORS_FIND_NO_CELL},
    "entity_new": {
        "GET": {200: EDITORS, 403: {"victor"}, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": EDITORS_FIND_NO_CELL,
    },
    "entities_staged": {
        "POST": {400: EDITORS, 403: {"victor"}, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "entities_value": {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}},
    "entities_count": {"GET": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN}},
    **each(
        ("query_known", "query_values", "query_select"),
        {
            "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
            "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
        },
    ),
    "entities_facets": {"GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN}},
    "query_code": {
        "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},  # others prove first who they are
    },
    "query_check": {
        "POST": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "query_rows": {
        "POST": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "query_cell": {"POST": {404: SIGNED_IN, "else": TO_SIGN_IN}, "GET": {405: SIGNED_IN, "else": TO_SIGN_IN}},
    "entities_columns": {
        "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "entities_export": each(("GET", "POST"), {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN}),
    "entities_copy": {
        "POST": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "entities_compare": {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}},
    "layouts": {
        "POST": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "layout_delete": {
        "POST": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    **each(
        ("queries", "query_menu"),
        {
            "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
            "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
        },
    ),
    "queries_forget": {
        "POST": {303: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "query_new": {
        "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {422: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    # none is saved
    **each(
        ("query", "query_versions"),
        {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {405: SIGNED_IN, "else": TO_SIGN_IN}},
    ),
    "query_edit": each(("GET", "POST"), {404: SIGNED_IN, "else": TO_SIGN_IN}),
    **each(
        ("query_update", "query_delete", "query_restore"),
        {"POST": {404: SIGNED_IN, "else": TO_SIGN_IN}, "GET": {405: SIGNED_IN, "else": TO_SIGN_IN}},
    ),
    "appearance": {"GET": {"else": 405}, "POST": {"else": 302}},
    "setup": {"GET": {"else": 404}, "POST": {"else": 404}},
    "account_login": {"GET": {302: SIGNED_IN, "else": 200}, "POST": {302: SIGNED_IN, "else": 422}},
    "mfa_authenticate": {"GET": {"else": 302}, "POST": {"else": 302}},
    "mfa_login_webauthn": {"GET": {"else": 302}, "POST": {"else": 302}},
    "openid_connect_login": {"GET": {"else": 405}, "POST": {"else": 404}},
    "openid_connect_callback": {"GET": {"else": 404}},
    **each(("connect", "disconnect"), {"GET": {405: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {"else": 302}}),
    "account_inactive": {"GET": {"else": 403}},
    "account_logout": {"GET": {200: SIGNED_IN, "else": 302}, "POST": {"else": 302}},
}
ARGUMENTS = {
    **each(("queries", "queries_forget"), ["acme"]),
    **each(("query_menu", "query_new"), ["acme", "people"]),
    **each(
        ("query", "query_edit", "query_update", "query_delete", "query_versions"), ["acme", "people", "none"]
    ),
    "query_restore": ["acme", "people", "none", 1],
    **each(("activity", "activity_export"), ["acme"]),
    "activity_entry": ["acme", 0],
    **each(("server_activity_entry", "undo"), [0]),
    **{name: ["acme", "people"] for name in ("entity", "entity_new", "entity_key", "entity_row")},
    **each(("keys", "connection", "connection_copy", "account_settings"), ["acme"]),
    **each(("account_delete", "account_created"), ["acme"]),
    **each(("sas", "sas_new", "sas_preview", "sas_export"), ["acme"]),
    **each(("sas_token", "sas_describe", "sas_block"), ["acme", "f" * 64]),
    "sas_range": ["acme", "people"],
    **each(("key_reveal", "key_copy", "key_rotate", "key_end"), ["acme", 1]),
    "star": ["acme", "people"],
    **each(
        (
            "query_code",
            "entities_facets",
            "query_check",
            "query_rows",
            "query_known",
            "query_values",
            "query_cell",
            "query_select",
            "entities_count",
            "entities_columns",
            "entities_export",
            "entities_copy",
            "entities_compare",
            "layouts",
        ),
        ["acme", "people"],
    ),
    "layout_delete": ["acme", "people", 0],
    **{name: ["acme", "people"] for name in ("entities_cell", "entities_check")},
    **{
        name: ["acme", "people"]
        for name in ("entities_delete", "entities_paste", "entities_staged", "entities_value")
    },
    **{name: ["acme"] for name in ("members", "members_add", "members_invite")},
    **{name: ["acme", 0] for name in ("member", "member_remove")},
    "api_token_revoke": [0],
    "user_token_revoke": [0, 0],
    **{name: [0] for name in ("user", "user_change", "invitation_withdraw")},
    **{
        name: ["acme"]
        for name in (
            "table_sizes",
            "table_new",
            "tables_sample",
            "tables_delete",
            "tables_tag",
            "service",
            "service_save",
            "table_restore",
        )
    },
    **{name: ["acme", "people"] for name in ("table_settings", "table_notes", "policies", "policies_save")},
    **each(("mfa_edit_webauthn", "mfa_remove_webauthn", "session_end", "disconnect"), [0]),
    **each(("openid_connect_login", "openid_connect_callback", "connect"), ["nowhere"]),
    "account": ["acme"],
    "entities": ["acme", "people"],
}
UNNAMED = {"", "ui", "ui/healthz", "ui/readyz", "ui/metrics"}  # redirects, and what machines ask


def test_every_address_is_in_the_table():
    patterns = list(every(get_resolver().url_patterns))
    assert {str(pattern.pattern) for pattern in patterns if not pattern.name} <= UNNAMED
    # those of the management API have a table of their own
    names = {pattern.name for pattern in patterns if pattern.name and not pattern.name.startswith("api-")}
    assert names == set(PAGES)


def every(patterns):
    for pattern in patterns:
        yield from every(pattern.url_patterns) if isinstance(pattern, URLResolver) else [pattern]


@pytest.mark.parametrize("name", PAGES)
def test_access(visit, people, name):
    """Everybody meets the same world, since what each does is undone before the next one comes."""
    cookies = {who: visit(who).cookies for who in EVERYBODY}
    address = reverse(name, args=ARGUMENTS.get(name))
    wrong = []
    for method, who in product(PAGES[name], EVERYBODY):
        client = Client()
        client.cookies = SimpleCookie(cookies[who].output(header="", sep=";"))
        with transaction.atomic():
            answer = client.generic(method, address)
            transaction.set_rollback(True)
        status = expected(PAGES[name][method], who)
        if answer.status_code != status:
            wrong.append(f"{method} by {who or 'nobody'}: {answer.status_code} instead of {status}")
        if status == TO_SIGN_IN and who is None and name in {"home", "account", "entities", "profile"}:
            assert answer["Location"].startswith("/ui/login/?next=/ui/")
    assert wrong == []


def expected(statuses, who):
    named = next((status for status, whos in statuses.items() if status != "else" and who in whos), None)
    return named or statuses["else"]


def test_permissions_grow_with_the_role():
    for capability in Capability:
        for role in Role:
            assert may(role, capability) == (role >= LEAST_ROLE[capability])
    assert [sum(may(role, capability) for capability in Capability) for role in Role] == [1, 2, 4, 5]


def request_of(user):
    request = RequestFactory().get("/ui/")
    request.user = user
    return request


@pytest.mark.parametrize("capability", Capability)
@pytest.mark.parametrize("who", sorted(MEMBERS))
def test_a_view_asks_for_a_role(cast, capability, who, account):
    view = account_required(capability)(lambda request, found: found)
    role = Role.OWNER if who == "ada" else cast[who].memberships.get().role
    if role >= LEAST_ROLE[capability]:
        assert view(request_of(cast[who]), account="acme") == account
    else:
        with pytest.raises(PermissionDenied, match=roles.label(LEAST_ROLE[capability])):
            view(request_of(cast[who]), account="acme")


def test_an_admin_view_names_the_admin(cast):
    view = admin_required(lambda request: "done")
    assert view(request_of(cast["ada"])) == "done"
    with pytest.raises(PermissionDenied, match="Admin"):
        view(request_of(cast["alice"]))


def test_no_such_account(visit):
    assert visit("ada").get("/ui/a/nothing/").status_code == 404


def test_an_account_that_must_not_be_used_here(visit, settings):
    accounts.add("devs", accounts.DEVELOPMENT_KEY)
    assert visit("ada").get("/ui/a/devs/").status_code == 200
    settings.DEVELOPMENT_ACCOUNT_ALLOWED = False
    assert visit("ada").get("/ui/a/devs/").status_code == 404
    assert b"devs" not in visit("ada").get("/ui/").content


def test_a_user_who_is_switched_off(visit, cast):
    client = visit("alice")
    cast["alice"].is_active = False
    cast["alice"].save()
    assert client.get("/ui/").status_code == 302
