"""Actors, whose changes the history records."""

from storage.domain.access.actor import Actor, ActorKind
from storage.sql import history
from storage.sql.django import run


def test_an_actor_has_one_number(db):
    ada = Actor(ActorKind.USER, "ada", "10.0.0.1", "Firefox", "one")
    number = run(history.intern(ada))
    assert number is not None
    assert run(history.intern(Actor(ActorKind.USER, "ada", "10.0.0.1", "Firefox", "two"))) == number
    assert run(history.intern(Actor(ActorKind.USER, "ada", "10.0.0.2", "Firefox"))) not in (number, None)
