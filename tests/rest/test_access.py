"""Access to every operation by role, by scope and by the account of the token, as one table."""

from functools import cache
from itertools import pairwise
from uuid import uuid4

from django.urls import get_resolver

from storage.accounts import accounts
from storage.domain.access.roles import LEAST_ROLE, Capability, Role, Scope, may, reaches
from storage.rest import documentation
from tests.fixtures import API, ROLES, Caller

READ, TABLES, CONFIGURE, ACCESS, OWN, GRANT = (
    Capability.READ, Capability.MANAGE_TABLES, Capability.CONFIGURE, Capability.MANAGE_ACCESS, Capability.OWN,
    Capability.GRANT,
)  # fmt: skip
NO_TOKEN = "0" * 64
# method, address, required scope, body, status for permitted users
OPERATIONS = [
    ("GET", "accounts/acme", READ, None, 200),
    ("PATCH", "accounts/acme", OWN, {}, 200),
    ("DELETE", "accounts/acme?with_tables=x", OWN, None, 400),
    ("POST", "accounts/acme/freeze", OWN, None, 200),
    ("GET", "accounts/acme/copy", READ, None, 200),
    ("POST", "accounts/acme/copy", GRANT, {}, 400),
    ("POST", "accounts/acme/copy-from", CONFIGURE, {}, 400),
    ("POST", "accounts/acme/copy-from-file?policies=false", CONFIGURE, None, 400),
    ("POST", "accounts/acme/copy-to", CONFIGURE, {}, 400),
    ("POST", "accounts/acme/thaw", OWN, None, 200),
    ("POST", "accounts/acme/export", CONFIGURE, None, 202),
    ("GET", "accounts/acme/connection-string", ACCESS, None, 200),
    ("GET", "accounts/acme/keys", ACCESS, None, 200),
    ("POST", "accounts/acme/keys/key9/rotate", GRANT, None, 404),
    ("POST", "accounts/acme/keys/key9/end", GRANT, None, 404),
    ("GET", "accounts/acme/tables", READ, None, 200),
    ("POST", "accounts/acme/tables", TABLES, {"name": "1"}, 400),
    ("GET", "accounts/acme/tables/people", READ, None, 200),
    ("PATCH", "accounts/acme/tables/people", TABLES, {}, 200),
    ("DELETE", "accounts/acme/tables/nothing", TABLES, None, 404),
    ("POST", "accounts/acme/tables/nothing/restore", TABLES, None, 404),
    ("POST", "accounts/acme/tables/people/rename", TABLES, {"name": 1}, 400),
    ("POST", "accounts/acme/tables/people/copy", TABLES, {"name": 1}, 400),
    ("POST", "accounts/acme/tables/people/distribute", OWN, None, 409),
    ("POST", "accounts/acme/tables/people/undistribute", OWN, None, 409),
    ("GET", "accounts/acme/tables/people/policies", READ, None, 200),
    ("PUT", "accounts/acme/tables/people/policies", ACCESS, {"items": []}, 200),
    ("GET", "accounts/acme/tables/people/indexes", READ, None, 200),
    ("POST", "accounts/acme/tables/people/indexes", TABLES, {"property": "RowKey"}, 400),
    ("GET", "accounts/acme/tables/people/indexes/Score", READ, None, 404),
    ("DELETE", "accounts/acme/tables/people/indexes/Score", TABLES, None, 404),
    ("GET", "accounts/acme/tables/people/history?pk=a&rk=b", READ, None, 200),
    ("GET", "accounts/acme/tables/people/export", READ, None, 200),
    ("POST", "accounts/acme/tables/people/export", READ, {"format": "x"}, 400),
    ("POST", "accounts/acme/export", READ, {"format": "x"}, 400),
    ("POST", "accounts/acme/tables/people/import", Capability.WRITE, None, 400),
    ("POST", "accounts/acme/tables/people/bulk-edit", Capability.WRITE, {}, 400),
    ("POST", "accounts/acme/tables/people/second-copies/check", READ, {}, 400),
    ("GET", "accounts/acme/sas", ACCESS, None, 200),
    ("POST", "accounts/acme/sas", ACCESS, {}, 400),
    ("GET", f"accounts/acme/sas/{NO_TOKEN}", ACCESS, None, 404),
    ("PATCH", f"accounts/acme/sas/{NO_TOKEN}", ACCESS, {}, 404),
    ("POST", f"accounts/acme/sas/{NO_TOKEN}/block", ACCESS, None, 404),
    ("POST", f"accounts/acme/sas/{NO_TOKEN}/unblock", ACCESS, None, 404),
    ("GET", "accounts/acme/service-properties", READ, None, 200),
    ("PUT", "accounts/acme/service-properties", CONFIGURE, {}, 400),
    ("GET", "accounts/acme/members", READ, None, 200),
    ("PUT", "accounts/acme/members/nobody", GRANT, {"role": "owner"}, 404),
    ("DELETE", "accounts/acme/members/nobody", GRANT, None, 404),
    ("GET", "accounts/acme/invitations", GRANT, None, 200),
    ("POST", "accounts/acme/invitations", GRANT, {"days": 0}, 400),
    ("DELETE", "accounts/acme/invitations/0", GRANT, None, 404),
    ("GET", "accounts/acme/tables/people/queries", READ, None, 200),
    ("POST", "accounts/acme/tables/people/queries", Capability.WRITE, {}, 400),
    ("GET", "accounts/acme/tables/people/queries/none", READ, None, 404),
    ("PATCH", "accounts/acme/tables/people/queries/none", Capability.WRITE, {}, 404),
    ("DELETE", "accounts/acme/tables/people/queries/none", Capability.WRITE, None, 404),
    ("GET", "accounts/acme/activity", READ, None, 200),
    ("GET", "accounts/acme/requests", READ, None, 200),
    ("GET", f"accounts/acme/requests/{uuid4()}", READ, None, 404),
    ("GET", "accounts/acme/request-statistics", READ, None, 200),
    ("GET", "accounts/acme/metrics", READ, None, 200),
    ("GET", "accounts/acme/tables/people/metrics", READ, None, 200),
    ("GET", "accounts/acme/design", READ, None, 200),
    ("GET", "accounts/acme/tables/people/design", READ, None, 200),
    ("POST", "accounts/acme/deployments", Capability.WRITE, {"name": ""}, 400),
    ("GET", "accounts/acme/changes", READ, None, 200),
    ("GET", "accounts/acme/comments", READ, None, 200),
    ("GET", "accounts/acme/comments/0", READ, None, 404),
    ("GET", "accounts/acme/comments/0/replies", READ, None, 404),
    ("POST", "accounts/acme/undo", TABLES, {}, 400),
    ("GET", "accounts/acme/snapshots", READ, None, 200),
    ("POST", "accounts/acme/snapshots", TABLES, {"name": 1}, 400),
    ("GET", "accounts/acme/snapshots/none", READ, None, 404),
    ("PATCH", "accounts/acme/snapshots/none", TABLES, {}, 404),
    ("DELETE", "accounts/acme/snapshots/none", TABLES, None, 404),
    ("POST", "accounts/acme/snapshots/none/restore", TABLES, {}, 404),
    ("GET", "accounts/acme/snapshot-schedule", READ, None, 200),
    ("PUT", "accounts/acme/snapshot-schedule", TABLES, {}, 400),
    ("DELETE", "accounts/acme/snapshot-schedule", TABLES, None, 204),
    ("GET", "accounts/acme/rehearsals", READ, None, 200),
    ("POST", "accounts/acme/rehearsals", TABLES, {"set": 1}, 400),
    ("GET", "accounts/acme/rehearsals/0", READ, None, 404),
    ("POST", "accounts/acme/rehearsals/0/stop", TABLES, None, 404),
    ("GET", "accounts/acme/rehearsals/0/report", READ, None, 404),
    ("GET", "accounts/acme/rehearsals/0/requests", READ, None, 404),
    ("GET", "accounts/acme/rehearsal-sets", READ, None, 200),
    ("PUT", "accounts/acme/rehearsal-sets/own", TABLES, {}, 400),
    ("DELETE", "accounts/acme/rehearsal-sets/own", TABLES, None, 404),
    ("GET", "accounts/acme/branches", READ, None, 200),
    ("POST", "accounts/acme/branches", GRANT, {"name": 1}, 400),
    ("POST", "accounts/acme/reset", ACCESS, {"snapshot": "none"}, 404),
    ("GET", "accounts/acme/diff?left=acme&right=acme", READ, None, 200),
    ("GET", "accounts/acme/diff/entities?left=acme/people&right=acme/people", READ, None, 200),
    ("POST", "accounts/acme/diff/apply", Capability.WRITE, {}, 400),
    ("GET", "accounts/acme/notice-rules", READ, None, 200),
    ("PUT", "accounts/acme/notice-rules/odd", CONFIGURE, {}, 404),
    ("GET", "accounts/acme/webhooks", ACCESS, None, 200),
    ("POST", "accounts/acme/webhooks", ACCESS, {}, 400),
    ("GET", "accounts/acme/webhooks/0", ACCESS, None, 404),
    ("PATCH", "accounts/acme/webhooks/0", ACCESS, {}, 404),
    ("DELETE", "accounts/acme/webhooks/0", ACCESS, None, 404),
    ("POST", "accounts/acme/webhooks/0/test", ACCESS, None, 404),
    ("POST", "accounts/acme/webhooks/0/secret", ACCESS, None, 404),
    ("GET", "accounts/acme/webhooks/0/deliveries", ACCESS, None, 404),
]
OF_SERVER = [
    ("GET", "token"),
    ("GET", "replicas"),
    ("GET", "backup"),
    ("GET", "accounts"),
    ("POST", "accounts"),
    # jobs of accounts in which the user has a role: tests/jobs/test_api.py
    ("GET", "jobs"),
    ("GET", "jobs/{job}"),
    ("GET", "jobs/{job}/files/{file}"),
    ("POST", "jobs/{job}/pause"),
    ("POST", "jobs/{job}/resume"),
    ("POST", "jobs/{job}/cancel"),
    # viewers may comment, with a token that may write: tests/comments/test_api.py
    ("POST", "accounts/{account}/tables/{table}/comments"),
    ("PATCH", "accounts/{account}/comments/{thread}"),
    ("POST", "accounts/{account}/comments/{thread}/replies"),
    ("PATCH", "accounts/{account}/comments/{thread}/replies/{comment}"),
    ("DELETE", "accounts/{account}/comments/{thread}/replies/{comment}"),
    # those that the user may see, and for admins those of the server: tests/notices/test_api.py
    ("GET", "notices"),
    ("GET", "notices/{notice}"),
    ("POST", "notices/seen"),
    ("GET", "notice-mutes"),
    ("POST", "notice-mutes"),
    ("DELETE", "notice-mutes/{mute}"),
    ("GET", "notice-rules"),
    ("PUT", "notice-rules/{kind}"),
    ("GET", "webhooks"),
    ("POST", "webhooks"),
    ("GET", "webhooks/{webhook}"),
    ("PATCH", "webhooks/{webhook}"),
    ("DELETE", "webhooks/{webhook}"),
    ("POST", "webhooks/{webhook}/test"),
    ("POST", "webhooks/{webhook}/secret"),
    ("GET", "webhooks/{webhook}/deliveries"),
    # per account that a manifest names: tests/manifest/test_api.py
    ("GET", "manifest"),
    ("POST", "manifest/plan"),
    ("POST", "manifest/apply"),
    # for admins: tests/people/test_api.py
    ("GET", "activity"),
    ("GET", "users"),
    ("GET", "users/{user}"),
    ("PATCH", "users/{user}"),
    ("POST", "users/{user}/sign-out"),
    ("POST", "users/{user}/reset-factors"),
    ("GET", "users/{user}/tokens"),
    ("DELETE", "users/{user}/tokens/{token}"),
    ("GET", "invitations"),
    ("POST", "invitations"),
    ("DELETE", "invitations/{invitation}"),
]


def part_of(path):
    """Return the part of an account that an operation is about."""
    return "/".join(path.partition("?")[0].split("/")[2:3])


def test_reach_grows_with_the_scope_and_rights_with_the_role():
    for capability in Capability:
        for narrow, wide in pairwise(Scope):
            assert reaches(wide, capability) >= reaches(narrow, capability)
        for low, high in pairwise(Role):
            assert may(high, capability) >= may(low, capability)


def asked(capability):
    """Yield who asks, with which scope, and whether they may: the least, just short of it, the admin."""
    names = {role: name for name, role in ROLES.items()}
    role = LEAST_ROLE[capability]
    scopes = [scope for scope in Scope if reaches(scope, capability)]
    yield names[role], scopes[0], True
    yield "ada", Scope.MANAGE, True
    if role > min(Role):
        yield names[Role(role - 1)], Scope.MANAGE, False
    if short := [scope for scope in Scope if scope not in scopes]:
        yield "alice", short[-1], False


def test_role_and_scope_both_count(table, call):
    caller_of, wrong = cache(call), []
    strangers = [("sam", Scope.MANAGE, 404), (None, Scope.MANAGE, 401)]
    for method, path, capability, body, good in OPERATIONS:
        known = [(name, scope, good if allowed else 403) for name, scope, allowed in asked(capability)]
        for name, scope, status in [*known, *strangers]:
            answer = caller_of(name, scope)(method, path, body)
            if answer.status_code != status:
                wrong.append(f"{method} {path} by {name}, {scope}: {answer.status_code} instead of {status}")
    assert wrong == []


def test_every_operation_is_in_the_table(table):
    written = {(method, as_documented(path)) for method, path, *_ in OPERATIONS}
    written |= {(method, f"{API}/{path}") for method, path in OF_SERVER}
    documented = {
        (method.upper(), path)
        for path, methods in documentation.document()["paths"].items()
        for method in methods
    }
    missing, others = sorted(documented - written), sorted(written - documented)
    assert not missing, f"add {missing} to OPERATIONS"
    assert not others, f"remove {others} from OPERATIONS"


def as_documented(path):
    parts = path.partition("?")[0].split("/")
    names = {"accounts": "account", "tables": "table", "sas": "fingerprint", "members": "user", "keys": "key"}
    names |= {"indexes": "property", "requests": "request_id", "snapshots": "snapshot"}
    names |= {"rehearsals": "rehearsal", "rehearsal-sets": "name"}
    names |= {"comments": "thread", "webhooks": "webhook", "notice-rules": "kind"}
    names |= {"invitations": "invitation", "queries": "query", "versions": "version"}
    results = [f"{{{names[before]}}}" if before in names else part for before, part in pairwise(["", *parts])]
    return "/".join([API, *results])


def test_a_token_of_one_account_knows_no_other(table, account, call):
    accounts.add("other")
    mine, others = (call("ada", account=it) for it in (account, accounts.find("other")))
    assert mine("GET", "accounts/acme").status_code == 200
    for method, path, _capability, body, _good in OPERATIONS:
        assert others(method, path, body).status_code == 404, path


def test_accounts_are_made_by_admins_with_a_token_for_the_server(call, account):
    for name, scope, only, status in (
        ("ada", "manage", None, 201),
        ("ada", "operate", None, 403),
        ("ada", "manage", account, 403),
        ("alice", "manage", None, 403),
    ):
        assert call(name, scope, account=only)("POST", "accounts", {}).status_code == status, (name, scope)


def test_refusals_name_the_missing_scope_or_role(call):
    scope = call("alice", "read")("POST", "accounts/acme/freeze")
    assert scope.json()["type"].endswith("#problem-scope")
    assert 'error="insufficient_scope", scope="operate"' in scope.headers["WWW-Authenticate"]
    role = call("max")("POST", "accounts/acme/freeze").json()
    assert role["detail"] == "This operation needs the role owner in the account acme."


def test_the_role_of_the_moment_counts(call, cast, account):
    caller = call("alice")
    assert caller("GET", "accounts/acme").status_code == 200
    cast["alice"].memberships.all().delete()
    assert caller("GET", "accounts/acme").status_code == 404


def test_the_token_tells_of_itself(call, account):
    assert call(None)("GET", "token").status_code == 401
    result = call("alice", "read", account=account)("GET", "token").json()
    assert {name: result[name] for name in ("name", "user", "scope", "account", "is_admin")} == {
        "name": "ci", "user": "alice", "scope": "read", "account": "acme", "is_admin": False,
    }  # fmt: skip


def test_a_session_opens_nothing_but_the_document(cast, account):
    caller = Caller()
    caller.client.force_login(cast["ada"])
    answer = caller("GET", "accounts")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="Tablero"'
    assert Caller()("GET", "schema").json()["openapi"].startswith("3.")


def test_every_address_has_a_name():
    api = next(pattern for pattern in get_resolver().url_patterns if str(pattern.pattern) == "ui/api/v1/")
    assert all(pattern.name.startswith("api-") for pattern in api.url_patterns)
