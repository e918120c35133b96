"""Fixtures that several rooms share: an account with a table and people with roles, signed in or with tokens."""

import json
from dataclasses import dataclass, field

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.hashers import make_password
from django.test import Client
from django.utils import timezone

from console.models import User
from storage.accounts import accounts
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.access.roles import Role, Scope
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.models import Membership
from storage.people import api_tokens
from storage.people.api_tokens import TokenRequest
from storage.runtime.service import Service
from storage.runtime.threads import in_thread
from storage.sql import entities as sql
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables
from tests import patience

API = "/ui/api/v1"
PASSWORD = "correct horse"
ROLES = {
    "alice": Role.OWNER,
    "max": Role.MAINTAINER,
    "eve": Role.EDITOR,
    "victor": Role.VIEWER,
}


@pytest.fixture(autouse=True)
def _patient(request, monkeypatch):
    """Let nothing be given up because the machine is busy, unless a test is about a limit and therefore slow."""
    if "db" not in request.fixturenames and request.node.get_closest_marker("django_db") is None:
        return
    if request.node.get_closest_marker("slow") is None:
        request.getfixturevalue("patient_lanes")
        patience.extend_limits(monkeypatch)
    if "visit" in request.fixturenames:
        patience.extend_limits_of_pages(monkeypatch)
        monkeypatch.setattr(django_settings, "EMAIL_TIMEOUT", 60)


@pytest.fixture
def now(monkeypatch):
    """Stop the time: no minute, hour or day begins between what a test does and what a page says."""
    moment = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: moment)
    return moment


@pytest.fixture
def account(db):
    return accounts.add("acme")


@pytest.fixture
def table(account):
    return tables.create(account, "people")


@pytest.fixture
def insert(table):
    """Return `insert(row_key, Name=EdmValue(...))`, which adds an entity without the activity log."""

    def insert(row_key, **values):
        run(sql.change(relation_name(table.pk), Insert(Entity(EntityKey("p", row_key), values))))

    return insert


@pytest.fixture
def add_entity(table):
    """Return `add_entity(partition_key, row_key, Name="Ada")`, which adds an entity with the types of Python's
    values.
    """

    def add_entity(partition_key, row_key, **properties):
        values = {name: as_edm(value) for name, value in properties.items()}
        entity = Entity(EntityKey(partition_key, row_key), values)
        run(sql.change(relation_name(table.pk), Insert(entity)))

    return add_entity


def as_edm(value):
    match value:
        case EdmValue():
            return value
        case bool():
            return EdmValue(Edm.BOOLEAN, value)
        case int():
            return EdmValue(Edm.INT32, value)
        case float():
            return EdmValue(Edm.DOUBLE, value)
        case bytes():
            return EdmValue(Edm.BINARY, value)
        case _:
            return EdmValue(Edm.STRING, value)


@pytest.fixture
async def service():
    """Start the service of the protocol, with an account "owner"."""
    await in_thread(accounts.add, "owner")
    service = Service(django_settings.LANES_CONNINFO)
    await service.open()
    yield service
    await service.close()


@pytest.fixture
def cast(account):
    """Users by name: Alice owns the account, Max maintains it, Eve edits, Victor looks, Sam a stranger, Ada the admin.

    Made in two statements, since almost every test of pages begins with it.
    """
    password = make_password(PASSWORD)
    everybody = [
        User(username=name, password=password, is_admin=name == "ada") for name in (*ROLES, "sam", "ada")
    ]
    users = {user.username: user for user in User.objects.bulk_create(everybody)}
    Membership.objects.bulk_create(
        Membership(user=users[name], account=account, role=role) for name, role in ROLES.items()
    )
    return users


@pytest.fixture
def visit(cast):
    """Return `visit("alice")`, a browser in which she is signed in; `visit(None)` has no session."""

    def visit(name):
        client = Client()
        if name is not None:
            client.force_login(cast[name])
        return client

    return visit


@pytest.fixture
def proven(visit):
    """Return `proven("alice")`, a browser in which she has just confirmed her password."""

    def proven(name):
        client = visit(name)
        answer = client.post("/ui/me/again/", {"password": PASSWORD, "next": "/ui/a/acme/keys/"})
        assert answer["Location"] == "/ui/a/acme/keys/"
        return client

    return proven


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
def issue(cast):
    """Return `issue("alice", "read", account=...)`, which returns the secret and the token."""

    def issue(name, scope="manage", *, account=None, expires_at=None):
        by = Actor(ActorKind.USER, name)
        return api_tokens.issue(cast[name], TokenRequest("ci", Scope(scope), account, expires_at), by=by)

    return issue


@pytest.fixture
def call(issue):
    """Return `call("alice", "manage")`, a client that sends a token of hers; `call(None)` sends no token."""

    def call(name, scope="manage", *, account=None):
        return Caller() if name is None else Caller(issue(name, scope, account=account)[0])

    return call
