"""Who may ask for what: every address of the console, by every role and method, against one table."""

from http.cookies import SimpleCookie
from itertools import product

import pytest
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.test import Client, RequestFactory
from django.urls import URLResolver, get_resolver, reverse

from console.site import roles
from console.site.access import account_required, admin_required
from storage.domain.access.roles import LEAST_ROLE, Capability, Role, may
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
    "home:index": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}},
    "tables:index": {"GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN}},
    "tables:sizes": MEMBERS_READ,
    "tables:new": {
        "GET": {200: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {422: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "tables:sample": MANAGERS_POST,
    "tables:delete": MANAGERS_POST,
    "tables:tag": MANAGERS_POST,
    "tables:restore": MANAGERS_POST,
    "tables:settings": MEMBERS_READ,
    "tables:notes": MANAGERS_POST,
    "policies:show": MEMBERS_READ,
    "policies:save": MANAGERS_POST,
    "accounts:service": MEMBERS_READ,
    "accounts:service_save": {
        **MANAGERS_POST,
        "POST": {409: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    # after a proof of who they are; rotating and what only owners do likewise
    **each(
        ("accounts:key_reveal", "accounts:key_copy", "accounts:connection", "accounts:connection_copy"),
        MANAGERS_PROVE,
    ),
    "accounts:keys": {"GET": {200: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN}},
    "accounts:key_end": {
        "POST": {403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: {"alice", "ada"}, 403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "accounts:key_rotate": each(("GET", "POST"), {403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN}),
    **each(
        ("accounts:settings", "accounts:delete"),
        {
            "GET": {200: {"alice", "ada"}, 403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN},
            "POST": {422: {"alice", "ada"}, 403: BELOW_OWNER, 404: {"sam"}, "else": TO_SIGN_IN},
        },
    ),
    "sas:index": {
        "GET": {200: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "sas:new": {
        "GET": {200: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {422: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "sas:preview": {
        "POST": {200: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "sas:range": {
        "POST": {302: MANAGERS, 403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    # no format named, and no such token
    **each(
        ("sas:export", "sas:show"),
        {
            "GET": {404: MANAGERS | {"sam"}, 403: BELOW_MANAGER, "else": TO_SIGN_IN},
            "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
        },
    ),
    **each(
        ("sas:describe", "sas:block"),
        {
            "POST": {404: MANAGERS | {"sam"}, 403: BELOW_MANAGER, "else": TO_SIGN_IN},
            "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
        },
    ),
    "accounts:created": {"GET": {403: BELOW_OWNER, 404: {"sam"}, "else": 302}},
    "accounts:new": {
        "GET": {200: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "POST": {422: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
    },
    "home:star": {
        "POST": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "sas:inspector": {
        "GET": {200: SIGNED_IN, "else": TO_SIGN_IN},
        "POST": {422: SIGNED_IN, "else": TO_SIGN_IN},
    },
    **each(
        ("help:about", "help:index", "help:document", "help:shortcuts", "help:limits"),
        {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}},
    ),
    "activity:server_index": {
        "GET": {200: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    **each(
        ("activity:server_entry", "activity:server_export"),
        {"GET": {404: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN}},
    ),
    "activity:index": {
        "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    # nothing of that number, and no format named
    "activity:entry": {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}},
    "activity:export": {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}},
    "activity:undo": {
        "POST": {404: SIGNED_IN, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "entities:index": {"GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN}},
    "home:search": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}},
    "home:palette": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}},
    "people:profile": {
        "GET": {200: SIGNED_IN, "else": TO_SIGN_IN},
        "POST": {422: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "people:password": {
        "GET": {200: SIGNED_IN, "else": TO_SIGN_IN},
        "POST": {422: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "accounts:members": {
        "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "accounts:members_add": OWNERS_POST_A_FORM,
    "accounts:members_invite": OWNERS_POST_A_FORM,
    "accounts:member": {
        "POST": {404: {"alice", "ada", "sam"}, 403: BELOW_OWNER, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "accounts:member_remove": {
        "POST": {404: {"alice", "ada", "sam"}, 403: BELOW_OWNER, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "people:users": {
        "GET": {200: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "people:users_invite": {
        "POST": {422: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "people:user": {
        "GET": {404: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "people:user_change": {
        "POST": {404: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "people:join": {"GET": {"else": 404}, "POST": {"else": 404}},
    "accounts:invitation_withdraw": {
        "POST": {404: SIGNED_IN, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    **each(
        ("account_reauthenticate", "mfa_reauthenticate", "mfa_reauthenticate_webauthn"),
        {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {422: SIGNED_IN, "else": TO_SIGN_IN}},
    ),
    # a token is made by who proved lately who they are, or they are asked to; there is none of that number
    "people:api_tokens": {
        "GET": {200: SIGNED_IN, "else": TO_SIGN_IN},
        "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "people:api_token_new": each(("GET", "POST"), {"else": TO_SIGN_IN}),
    "people:api_token_revoke": each(("GET", "POST"), {404: SIGNED_IN, "else": TO_SIGN_IN}),
    "people:user_token_revoke": each(
        ("GET", "POST"), {404: {"ada"}, 403: SIGNED_IN - {"ada"}, "else": TO_SIGN_IN}
    ),
    "help:api": {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}},
    **each(("people:security", "people:sessions"), {"GET": {200: SIGNED_IN, "else": TO_SIGN_IN}}),
    "people:sessions_end": {"GET": {405: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {"else": 302}},
    "people:session_end": {"GET": {405: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {"else": 302}},
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
    "entities:cell": each(("GET", "POST"), EDITORS_FIND_NO_CELL),
    "entities:check_cell": {"POST": EDITORS_FIND_NO_CELL, "GET": {405: SIGNED_IN, "else": TO_SIGN_IN}},
    "entities:delete": {
        "POST": {302: EDITORS, 403: {"victor"}, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "entities:paste": {
        "GET": {200: EDITORS, 403: {"victor"}, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {422: EDITORS, 403: {"victor"}, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "entities:show": {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}, "POST": EDITORS_FIND_NO_CELL},
    "entities:key": each(("GET", "POST"), EDITORS_FIND_NO_CELL),
    "entities:row": {"POST": EDITORS_FIND_NO_CELL},
    "entities:new": {
        "GET": {200: EDITORS, 403: {"victor"}, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": EDITORS_FIND_NO_CELL,
    },
    "entities:staged": {
        "POST": {400: EDITORS, 403: {"victor"}, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "entities:value": {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}},
    "entities:count": {"GET": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN}},
    **each(
        ("queries:known", "queries:values", "queries:select"),
        {
            "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
            "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
        },
    ),
    "queries:facets": {"GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN}},
    "queries:code": {
        "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {403: BELOW_MANAGER, 404: {"sam"}, "else": TO_SIGN_IN},  # others prove first who they are
    },
    "queries:check": {
        "POST": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "queries:rows": {
        "POST": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "queries:cell": {
        "POST": {404: SIGNED_IN, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "grid:columns": {
        "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    "grid:export": each(("GET", "POST"), {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN}),
    "grid:copy": {
        "POST": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "grid:compare": {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}},
    "grid:layouts": {
        "POST": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "grid:layout_delete": {
        "POST": {302: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    **each(
        ("queries:index", "queries:menu"),
        {
            "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
            "POST": {405: SIGNED_IN, "else": TO_SIGN_IN},
        },
    ),
    "queries:forget": {
        "POST": {303: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "GET": {405: SIGNED_IN, "else": TO_SIGN_IN},
    },
    "queries:new": {
        "GET": {200: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
        "POST": {422: MEMBERS, 404: {"sam"}, "else": TO_SIGN_IN},
    },
    # none is saved
    **each(
        ("queries:run", "queries:versions"),
        {"GET": {404: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {405: SIGNED_IN, "else": TO_SIGN_IN}},
    ),
    "queries:edit": each(("GET", "POST"), {404: SIGNED_IN, "else": TO_SIGN_IN}),
    **each(
        ("queries:update", "queries:delete", "queries:restore"),
        {"POST": {404: SIGNED_IN, "else": TO_SIGN_IN}, "GET": {405: SIGNED_IN, "else": TO_SIGN_IN}},
    ),
    "site:appearance": {"GET": {"else": 405}, "POST": {"else": 302}},
    "people:setup": {"GET": {"else": 404}, "POST": {"else": 404}},
    "account_login": {"GET": {302: SIGNED_IN, "else": 200}, "POST": {302: SIGNED_IN, "else": 422}},
    "mfa_authenticate": {"GET": {"else": 302}, "POST": {"else": 302}},
    "mfa_login_webauthn": {"GET": {"else": 302}, "POST": {"else": 302}},
    "openid_connect_login": {"GET": {"else": 405}, "POST": {"else": 404}},
    "openid_connect_callback": {"GET": {"else": 404}},
    **each(
        ("people:connect", "people:disconnect"),
        {"GET": {405: SIGNED_IN, "else": TO_SIGN_IN}, "POST": {"else": 302}},
    ),
    "account_inactive": {"GET": {"else": 403}},
    "account_logout": {"GET": {200: SIGNED_IN, "else": 302}, "POST": {"else": 302}},
}
ARGUMENTS = {
    **each(("queries:index", "queries:forget"), ["acme"]),
    **each(("queries:menu", "queries:new"), ["acme", "people"]),
    **each(
        ("queries:run", "queries:edit", "queries:update", "queries:delete", "queries:versions"),
        ["acme", "people", "none"],
    ),
    "queries:restore": ["acme", "people", "none", 1],
    **each(("activity:index", "activity:export"), ["acme"]),
    "activity:entry": ["acme", 0],
    **each(("activity:server_entry", "activity:undo"), [0]),
    **{
        name: ["acme", "people"] for name in ("entities:show", "entities:new", "entities:key", "entities:row")
    },
    **each(
        ("accounts:keys", "accounts:connection", "accounts:connection_copy", "accounts:settings"), ["acme"]
    ),
    **each(("accounts:delete", "accounts:created"), ["acme"]),
    **each(("sas:index", "sas:new", "sas:preview", "sas:export"), ["acme"]),
    **each(("sas:show", "sas:describe", "sas:block"), ["acme", "f" * 64]),
    "sas:range": ["acme", "people"],
    **each(
        ("accounts:key_reveal", "accounts:key_copy", "accounts:key_rotate", "accounts:key_end"), ["acme", 1]
    ),
    "home:star": ["acme", "people"],
    **each(
        (
            "queries:code",
            "queries:facets",
            "queries:check",
            "queries:rows",
            "queries:known",
            "queries:values",
            "queries:cell",
            "queries:select",
            "entities:count",
            "grid:columns",
            "grid:export",
            "grid:copy",
            "grid:compare",
            "grid:layouts",
        ),
        ["acme", "people"],
    ),
    "grid:layout_delete": ["acme", "people", 0],
    **{name: ["acme", "people"] for name in ("entities:cell", "entities:check_cell")},
    **{
        name: ["acme", "people"]
        for name in ("entities:delete", "entities:paste", "entities:staged", "entities:value")
    },
    **{name: ["acme"] for name in ("accounts:members", "accounts:members_add", "accounts:members_invite")},
    **{name: ["acme", 0] for name in ("accounts:member", "accounts:member_remove")},
    "people:api_token_revoke": [0],
    "people:user_token_revoke": [0, 0],
    **{name: [0] for name in ("people:user", "people:user_change", "accounts:invitation_withdraw")},
    **{
        name: ["acme"]
        for name in (
            "tables:sizes",
            "tables:new",
            "tables:sample",
            "tables:delete",
            "tables:tag",
            "accounts:service",
            "accounts:service_save",
            "tables:restore",
        )
    },
    **{
        name: ["acme", "people"]
        for name in ("tables:settings", "tables:notes", "policies:show", "policies:save")
    },
    **each(("mfa_edit_webauthn", "mfa_remove_webauthn", "people:session_end", "people:disconnect"), [0]),
    **each(("openid_connect_login", "openid_connect_callback", "people:connect"), ["nowhere"]),
    "tables:index": ["acme"],
    "entities:index": ["acme", "people"],
    "help:document": ["access"],
}
UNNAMED = {"", "ui", "ui/healthz", "ui/readyz", "ui/metrics"}  # redirects, and what machines ask


def test_every_address_is_in_the_table():
    found = list(every(get_resolver().url_patterns))
    assert {str(pattern.pattern) for _, pattern in found if not pattern.name} <= UNNAMED
    # those of the management API have a table of their own
    names = {
        f"{namespace}{pattern.name}"
        for namespace, pattern in found
        if pattern.name and not pattern.name.startswith("api-")
    }
    assert names == set(PAGES)


def every(patterns, namespace=""):
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from every(
                pattern.url_patterns, f"{pattern.namespace}:" if pattern.namespace else namespace
            )
        else:
            yield namespace, pattern


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
