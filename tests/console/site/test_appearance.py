"""Theme, density and language of a browser."""

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from console.site import appearance
from console.site.appearance import Appearance, Density, Theme


def read(**cookies):
    request = RequestFactory().get("/ui/")
    request.COOKIES.update(cookies)
    return appearance.read(request)


@pytest.mark.parametrize("value", [None, "", "DARK", '"><script>', "x" * 5000])
def test_reads_cookies(value):
    known = read(tablero_theme="dark", tablero_density="compact", tablero_sidebar="closed")
    assert known == Appearance(Theme.DARK, Density.COMPACT, sidebar_closed=True)
    unknown = {} if value is None else {f"tablero_{name}": value for name in ("theme", "density", "rail")}
    assert read(**unknown) == Appearance()


def test_remembers():
    response = appearance.remember(HttpResponse(), theme="dark", density="", language="tr")
    assert response.cookies["tablero_theme"].value == "dark"
    assert response.cookies["tablero_language"].value == "tr"
    assert all(cookie["path"] == "/ui/" and cookie["httponly"] for cookie in response.cookies.values())
    assert "tablero_density" not in response.cookies
    nonsense = appearance.remember(HttpResponse(), theme="pink", density="huge", language="../x")
    assert not nonsense.cookies


def test_change_returns_to_the_page():
    response = Client().post("/ui/appearance/", {"theme": "light", "next": "/ui/login/?next=/ui/"})
    assert (response.status_code, response["Location"]) == (302, "/ui/login/?next=/ui/")
    assert response.cookies["tablero_theme"].value == "light"


@pytest.mark.parametrize("target", ["", "//evil.example", "https://evil.example/ui/", "javascript:alert(1)"])
def test_change_leaves_for_no_other_site(target):
    assert Client().post("/ui/appearance/", {"theme": "light", "next": target})["Location"] == "/ui/"
