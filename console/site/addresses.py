"""Addresses of pages and their fields, safe redirect targets, and parsing of URLs in headers."""

import posixpath
from functools import lru_cache
from urllib.parse import SplitResult, unquote, urlsplit

from django.conf import settings
from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme


@lru_cache(maxsize=4096)  # a page has a hundred of them, and many are the same on the next one
def path_of(name: str, *arguments: str) -> str:
    """Return the path of a page by the name of its URL."""
    return reverse(name, args=arguments)


def address_of(name: str, *arguments: str, **query: object) -> str:
    """Return the address of a page, omitting empty fields."""
    return reverse(name, args=arguments, query={name: value for name, value in query.items() if value})


def public_url(request: HttpRequest, path: str) -> str:
    """Return the public URL of a page, by the configured address or else the request's host.

    The Host header is whatever the client sends, and may be an address that only it can reach.
    """
    return f"{settings.CONSOLE_URL}{path}" if settings.CONSOLE_URL else request.build_absolute_uri(path)


def read_text(query: QueryDict, name: str, *, longest: int | None = None) -> str:
    """Return a stripped field without NUL, which the database cannot store."""
    return query.get(name, "").replace("\0", "").strip()[:longest]


def is_console_path(address: str) -> bool:
    """Return whether an address is a path of the console, as other paths on this host may serve untrusted data."""
    if (
        not address.startswith("/")
        or not address.isprintable()
        or not url_has_allowed_host_and_scheme(address, allowed_hosts=None)
    ):
        return False
    path = unquote(urlsplit(address).path)
    return path.startswith(settings.COOKIE_PATH) and f"{posixpath.normpath(path)}/".startswith(
        settings.COOKIE_PATH
    )


def split_url(address: str) -> SplitResult:
    """Split the URL in a header; all parts of an invalid URL are empty."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
