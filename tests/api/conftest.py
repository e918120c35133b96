"""The cast of the console's tests, each with tokens: `call("alice", "manage")` is a client that asks with one."""

import json
from dataclasses import dataclass, field

import pytest
from django.test import Client

from console.models import User
from storage.accounts import accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Role, Scope
from storage.models import Membership
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest
from storage.tables import tables

API = "/ui/api/v1"
ROLES = {"alice": Role.OWNER, "max": Role.MAINTAINER, "eve": Role.EDITOR, "victor": Role.VIEWER}


@dataclass
class Caller:
    """A script with a token."""

    secret: str = ""
    client: Client = field(default_factory=Client)

    def __call__(self, method, path, body=None, **headers):
        if self.secret:
            headers["Authorization"] = f"Bearer {self.secret}"
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.generic(
            method,
            path if path.startswith("/") else f"{API}/{path}",
            data,
            "application/json",
            headers=headers,
        )


@pytest.fixture
def account(db):
    return accounts.add("acme")


@pytest.fixture
def people(account):
    return tables.create(account, "people")


@pytest.fixture
def cast(account):
    found = {name: User(username=name) for name in (*ROLES, "sam")}
    found["ada"] = User(username="ada", is_admin=True)
    for user in found.values():
        user.set_unusable_password()
        user.save()
    for name, role in ROLES.items():
        Membership.objects.create(user=found[name], account=account, role=role)
    return found


@pytest.fixture
def issue(cast):
    """`issue("alice", "read", account=...)`: the secret and the token."""

    def issue(name, scope="manage", *, account=None, expires_at=None):
        by = Actor(ActorKind.USER, name)
        return api_tokens.issue(cast[name], TokenRequest("ci", Scope(scope), account, expires_at), by=by)

    return issue


@pytest.fixture
def call(issue):
    def call(name, scope="manage", *, account=None):
        return Caller() if name is None else Caller(issue(name, scope, account=account)[0])

    return call
