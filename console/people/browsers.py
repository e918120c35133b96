"""What a browser is called by people, of what it says about itself."""

from typing import Final

from django.utils.translation import gettext as _

# the first that is found, for most claim to be several
_BROWSERS: Final = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
    "curl/": "curl",
    "python-requests/": "Python",
}
_SYSTEMS: Final = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iOS",
    "iPad": "iPadOS",
    "Mac OS X": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


def name_of(agent: str) -> str:
    """As "Firefox on Linux", as far as it can be told from a User-Agent."""
    browser, system = _first(_BROWSERS, agent), _first(_SYSTEMS, agent)
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return browser or system or _("Unknown browser")


def _first(names: dict[str, str], agent: str) -> str:
    return next((name for mark, name in names.items() if mark in agent), "")
