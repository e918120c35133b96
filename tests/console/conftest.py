"""The cast: Alice owns the account, Max maintains it, Eve edits, Victor looks, Sam is a stranger, Ada the admin."""

from datetime import timedelta

import pytest
from django.contrib.auth.hashers import make_password
from django.test import Client
from django.utils import timezone

from console.models import User
from storage.accounts import accounts
from storage.domain.access.roles import Role
from storage.domain.entities.changes import Insert
from storage.domain.entities.entity import Entity, EntityKey
from storage.domain.values.edm import Edm, EdmValue
from storage.models import Membership
from storage.sql import entities as sql
from storage.sql.django import run
from storage.sql.relations import relation_name
from storage.tables import tables

PASSWORD = "correct horse"
ROLES = {
    "alice": Role.OWNER,
    "max": Role.MAINTAINER,
    "eve": Role.EDITOR,
    "victor": Role.VIEWER,
}
# what pages wait for: statements, samples, jobs, and other servers
PATIENCE = {
    "console.compare.views.compare._BUDGET": 60.0,
    "console.bulk_edit.views._WHILE_TYPING": timedelta(minutes=1),
    "console.site.waiting.PATIENCE": 60.0,
    "storage.access.key_set.TIMEOUT": 60,
    "storage.entities.estimates.LIMIT": timedelta(minutes=1),
    "storage.notices.sending.TIMEOUT": 60.0,
    "storage.sql.django._time_limit": lambda limit: "statement_timeout = '1min'",
}


@pytest.fixture(autouse=True)
def _quick_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def _patience(patient_lanes, monkeypatch, settings):
    """Nothing is given up in moments, which a busy machine may take: a page then has an estimate, or another end."""
    for name, value in PATIENCE.items():
        monkeypatch.setattr(name, value)
    settings.EMAIL_TIMEOUT = 60


@pytest.fixture
def now(monkeypatch):
    """The time, which stands still: no minute, hour or day begins between what a test does and what a page says."""
    moment = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: moment)
    return moment


@pytest.fixture
def account(db):
    return accounts.add("acme")


@pytest.fixture
def cast(account):
    """Everybody by name, in two statements, since almost every test begins with it."""
    password = make_password(PASSWORD)
    everybody = [
        User(username=name, password=password, is_admin=name == "ada") for name in (*ROLES, "sam", "ada")
    ]
    found = {user.username: user for user in User.objects.bulk_create(everybody)}
    Membership.objects.bulk_create(
        Membership(user=found[name], account=account, role=role) for name, role in ROLES.items()
    )
    return found


@pytest.fixture
def visit(cast):
    """`visit("alice")`: a browser in which she is signed in; `visit(None)`: nobody."""

    def visit(name):
        client = Client()
        if name is not None:
            client.force_login(cast[name])
        return client

    return visit


@pytest.fixture
def people(account):
    """A table; `people(partition_key, row_key, Name=...)` adds an entity to it."""
    table = tables.create(account, "people")

    def add(partition_key, row_key, **properties):
        values = {name: as_edm(value) for name, value in properties.items()}
        entity = Entity(EntityKey(partition_key, row_key), values)
        run(sql.change(relation_name(table.pk), Insert(entity)))

    return add


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
def proven(visit):
    """`proven("alice")`: a browser in which she has just proved who she is."""

    def proven(name):
        client = visit(name)
        answer = client.post("/ui/me/again/", {"password": PASSWORD, "next": "/ui/a/acme/keys/"})
        assert answer["Location"] == "/ui/a/acme/keys/"
        return client

    return proven
