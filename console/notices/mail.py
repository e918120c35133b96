"""E-mail about notices, in the language and the time zone of its reader."""

import zoneinfo
from collections.abc import Sequence

from django.conf import settings
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.models import User
from console.notices.presentation import ShownNotice
from console.site.time_zones import zone_named
from storage.models import Notice
from storage.notices import delivery


def write(user: User, notices: Sequence[Notice]) -> tuple[str, str]:
    """Return the subject and the text of an e-mail about some notices."""
    with translation.override(user.language or settings.LANGUAGE_CODE), timezone.override(_zone(user)):
        shown = [ShownNotice(it) for it in notices]
        subject = (
            f"{shown[0].title}{_place(shown[0])}"
            if len(shown) == 1
            else ngettext("%(number)s notice", "%(number)s notices", len(shown)) % {"number": len(shown)}
        )
        lines = [part for it in shown for part in (f"{it.title}{_place(it)}", it.text, _address(it.path), "")]
        lines.append(
            _("You get this e-mail because you entered your address at %(page)s.")
            % {"page": _address("/ui/me/notices/")}
        )
    return f"[Tablero] {subject}", "\n".join(lines) + "\n"


def send_code(user: User, address: str, code: str) -> str:
    """Send a confirmation code; return the error, or an empty string."""
    text = _("Enter this code at %(page)s to get notices of Tablero at this address: %(code)s") % {
        "page": _address("/ui/me/notices/"),
        "code": code,
    }
    more = _("It is valid for an hour. If you did not ask for it, ignore this e-mail.")
    return delivery.send_mail(address, f"[Tablero] {_('Confirm your address')}", f"{text}\n\n{more}\n")


def _place(shown: ShownNotice) -> str:
    return "" if shown.notice.account is None else f" - {shown.notice.account.name}"


def _address(path: str) -> str:
    return f"{settings.CONSOLE_URL}{path}"


def _zone(user: User) -> zoneinfo.ZoneInfo:
    # one without a choice follows the browser, which is not known here
    return zone_named(user.time_zone) or zoneinfo.ZoneInfo("UTC")
