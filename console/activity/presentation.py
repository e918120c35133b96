"""Texts and icons of the activity log's verbs, as declared by subjects: see storage.core.verbs."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_noop, ngettext
from django.utils.translation import gettext_lazy as _

from storage.core import registry
from storage.core.verbs import Act, Group, Verb
from storage.domain.translation import Plural

GROUP_LABELS: Final[Mapping[Group, Promise]] = {
    Group.ENTITIES: _("Entities"),
    Group.TABLES: _("Tables"),
    Group.QUERIES: _("Saved queries"),
    Group.COMMENTS: _("Comments"),
    Group.ACCESS: _("Policies and keys"),
    Group.SNAPSHOTS: _("Snapshots and branches"),
    Group.SETTINGS: _("Account and service"),
    Group.PEOPLE: _("People"),
}

# names of the kinds of changes
OP_LABELS: Final[Mapping[str, Promise]] = {
    "inserts": _("Entities: inserted"),
    "updates": _("Entities: changed"),
    "deletes": _("Entities: deleted"),
}

# for a verb of a newer version, which runs beside this one
_UNKNOWN: Final = Act(
    "",
    icon="circle-help",
    sentence=gettext_noop("%(who)s did something that a newer version of Tablero has recorded: %(verb)s"),
)


def presentation_of(verb: Verb) -> Act:
    """Return the group, icon and texts of a verb."""
    return verb.act if verb.act.sentence else _UNKNOWN


def verbs_of(group: str) -> tuple[Verb, ...]:
    return tuple(verb for verb in registry.verbs().values() if verb.act.group == group and verb.act.sentence)


def translate(text: Plural | str, number: int = 1) -> str:
    """Translate a declared text, keeping its placeholders."""
    if isinstance(text, str):
        return gettext(text) if text else ""
    if number == 1 and text.one:
        return gettext(text.one)
    return ngettext(text.singular, text.plural, number)
