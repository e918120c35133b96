"""Replicas as administrators see them, and the notes to members about a replica that is not in use."""

import pytest
from django.utils.html import strip_tags

from console.site import layout
from storage.replicas import replicas
from tests.replicas.test_operations import LIMIT, World

PAGE = "/ui/replicas/"
OVERVIEW = "/ui/a/acme/overview/"


@pytest.fixture
def world(settings):
    result = World()
    settings.READ_SOURCES = ("near", "far")
    replicas.set_of_this_process(result.replicas)
    yield result
    replicas.set_of_this_process(None)


def text(answer):
    return " ".join(strip_tags(answer.content.decode()).split())


def test_says_how_to_have_replicas(visit):
    page = text(visit("ada").get(PAGE))
    assert "No replicas" in page
    assert "TABLERO_REPLICAS" in page


def test_shows_state_and_lag(visit, world):
    world.primary_is_at(1000, ago=5)
    world.primary_is_at(4072)
    world.replica_is_at(world.near, 1000)
    page = text(visit("ada").get(PAGE))
    assert "near in use 5.0 s 3.0 KB just now" in page
    assert "far left out It does not answer." in page
    assert "Accounts by level Strong1" in page

    world.clock.now += LIMIT

    part = visit("ada").get(PAGE, headers={"HX-Request": "true"})
    assert "near behind Not used: more than 30 seconds behind." in text(part)
    assert b"<html" not in part.content


def test_the_overview_says_what_is_not_in_use(visit, account, world):
    world.primary_is_at(100)
    world.replica_is_at(world.near, 100)
    said = "1 replica of 2 is not in use. Other servers answer its reads."
    assert said in text(visit("victor").get(OVERVIEW))
    assert PAGE not in visit("victor").get(OVERVIEW).content.decode()
    assert f'<a href="{PAGE}">' in " ".join(visit("ada").get(OVERVIEW).content.decode().split())

    world.replica_is_at(world.far, 100)

    assert "not in use" not in text(visit("victor").get(OVERVIEW))


def test_the_sidebar_has_replicas_only_where_there_are_some(visit, settings):
    for sources in ((), ("host=replica",)):
        settings.READ_SOURCES = sources
        layout.navigation.cache_clear()
        shown = visit("ada").get("/ui/backups/").content.decode()
        assert ('href="/ui/replicas/"' in shown) is bool(sources)
    layout.navigation.cache_clear()
