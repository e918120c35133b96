"""Notices in the user's language: titles by kind, and sentences."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.site.times import to_local
from storage.core import registry
from storage.core.notices import NoticeKind, Severity
from storage.domain.values.stored import read_member
from storage.models import Notice
from storage.notices import presentation
from storage.notices.kinds import NoticeEvent

# for a kind of a newer version, which runs beside this one
_UNKNOWN: Final = _("A newer version of Tablero on the same database has found this.")
EVENTS: Final[Mapping[str, Promise]] = {
    NoticeEvent.OPENED: _("opened"),
    NoticeEvent.CHANGED: _("changed"),
    NoticeEvent.RESOLVED: _("resolved"),
}
_BADGES: Final[Mapping[Severity, tuple[str, str, Promise]]] = {
    Severity.INFO: ("info", "info", _("info")),
    Severity.WARNING: ("warn", "triangle-alert", _("warning")),
    Severity.ERROR: ("danger", "circle-alert", _("error")),
}


def title_of(kind: str) -> str:
    """Return the title of a notice kind; an unknown kind is returned unchanged."""
    known = registry.notice_kinds().get(kind)
    return kind if known is None else gettext(known.condition.title)


@dataclass(frozen=True)
class ShownNotice:
    """Notice for display, with its title, text, badge and link."""

    notice: Notice
    is_new: bool = False  # whether its reader has not seen the latest news about it

    @cached_property
    def kind(self) -> NoticeKind:
        return registry.find_notice_kind(self.notice.kind)

    @property
    def title(self) -> str:
        return title_of(self.kind)

    @property
    def text(self) -> str:
        facts = presentation.facts_of(self.notice)
        text = gettext(self.kind.condition.text) if self.kind.condition.text else str(_UNKNOWN)
        return text % {name: _write(value) for name, value in facts.items()}

    @property
    def path(self) -> str:
        return presentation.path_of(self.notice) + self.kind.condition.query

    @property
    def _badge(self) -> tuple[str, str, Promise]:
        severity = read_member(Severity, self.notice.severity)
        return _BADGES.get(severity, _BADGES[Severity.WARNING])

    @property
    def badge(self) -> str:
        return "ok" if self.notice.resolved_at else self._badge[0]

    @property
    def icon(self) -> str:
        return "circle-check" if self.notice.resolved_at else self._badge[1]

    @property
    def label(self) -> Promise:
        return _("resolved") if self.notice.resolved_at else self._badge[2]


def _write(value: object) -> object:
    if isinstance(value, datetime):
        local = to_local(value)
        return f"{local:%Y-%m-%d %H:%M %Z}"
    return number_format(value, force_grouping=True) if isinstance(value, int) else value
