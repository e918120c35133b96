"""Where the console may send a browser."""

import posixpath
from urllib.parse import SplitResult, unquote, urlsplit

from django.conf import settings
from django.utils.http import url_has_allowed_host_and_scheme


def is_console_path(address: str) -> bool:
    """Whether it is a path of the console: everything else on this host is data that anybody may have written."""
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
    """What a browser says in a header; the parts of what is no address are empty."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
