"""Changes of an activity for display: entities by property, and settings one by one."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.grid import cells
from console.site import account_settings, roles
from storage.access.subject import AccessVerb
from storage.core.account_settings import SETTINGS
from storage.core.verbs import Verb
from storage.domain.entities.entity import EntityKey, StoredEntity, read_stored, split_members
from storage.domain.entities.previews import STRING_PREVIEW_LENGTH
from storage.domain.values.edm import Edm, EdmValue
from storage.editing import merge
from storage.editing.merge import Properties
from storage.models import Activity
from storage.people.subject import PeopleVerb

MOST: Final = 50  # entities on a page
_CONTEXT: Final = 40  # characters before the first that differs


@dataclass(frozen=True, slots=True)
class ShownValue:
    markup: SafeString
    type: str = ""  # an EDM name


@dataclass(frozen=True, slots=True)
class Difference:
    """Property or setting before and after; None where absent."""

    name: str | Promise
    before: ShownValue | None
    after: ShownValue | None

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class EntityDifference:
    """The differences between two versions of an entity."""

    key: EntityKey
    kind: str
    differences: Sequence[Difference]
    same: int  # the number of unchanged properties
    before: str  # the whole entity as JSON
    after: str  # the whole entity as JSON
    sequence: int = 0  # the number of the change in the history, 0 if it has none


def compare_entities(
    key: EntityKey, was: StoredEntity | None, became: StoredEntity | None
) -> EntityDifference:
    """Return the properties that differ between two states of an entity; None is a missing entity."""
    before, after = properties_of(was), properties_of(became)
    changed = merge.changed_names(before, after)
    kind = "added" if was is None else "removed" if became is None else "changed"
    return EntityDifference(
        key,
        kind,
        [compare_property(name, before.get(name), after.get(name)) for name in changed],
        len({*before, *after}) - len(changed),
        _document(was),
        _document(became),
    )


def properties_of(stored: StoredEntity | None) -> Properties:
    return {} if stored is None else read_stored(stored).properties


def compare_property(name: str, before: EdmValue | None, after: EdmValue | None) -> Difference:
    """Render a property before and after; long texts start at their first difference."""
    start = _first_difference(before, after)
    return Difference(name, _side(before, start), _side(after, start))


def _first_difference(before: EdmValue | None, after: EdmValue | None) -> int:
    """Return the offset of the first difference between long strings, less some context."""
    match before, after:
        case (Edm.STRING, str(old)), (Edm.STRING, str(new)) if (
            max(len(old), len(new)) > STRING_PREVIEW_LENGTH
        ):
            pairs = enumerate(zip(old, new, strict=False))
            first = next((place for place, (a, b) in pairs if a != b), min(len(old), len(new)))
            return max(0, first - _CONTEXT)
    return 0


def _side(value: EdmValue | None, start: int) -> ShownValue | None:
    if value is None:
        return None
    if start:
        whole = str(value.value)
        rest = whole[start:]
        size = len(whole.encode(errors="surrogatepass")) if len(rest) > STRING_PREVIEW_LENGTH else None
        return ShownValue(format_html("…{}", cells.draw(EdmValue(Edm.STRING, rest), size).markup), value.type)
    return ShownValue(cells.draw(value).markup, value.type)


def _document(stored: StoredEntity | None) -> str:
    """Return the properties as the service would send them, one member per line."""
    if stored is None:
        return ""
    members = [f"  {it.removeprefix(b',').decode()}" for it in split_members(stored.content)]
    return "{\n" + ",\n".join([f"  {stored.keys.decode()}", *members]) + "\n}"


# settings

_NAMES: Final[Mapping[str, Promise]] = {
    **account_settings.NAMES,
    "tags": gettext_lazy("Tags"),
    "is_admin": gettext_lazy("Server admin"),
    "is_active": gettext_lazy("Can sign in"),
    "role": gettext_lazy("Role"),
    "name": gettext_lazy("Name"),
    "is_shared": gettext_lazy("Shared"),
    "purpose": gettext_lazy("Purpose"),
    "owner": gettext_lazy("Owner"),
    "blocked": gettext_lazy("Blocked"),
    "query.f": gettext_lazy("Filter"),
    "query.s": gettext_lazy("Selected properties"),
    "query.cols": gettext_lazy("Columns"),
    "query.sort": gettext_lazy("Sort order"),
    "query.top": gettext_lazy("Page size"),
    "query.view": gettext_lazy("View"),
}


def setting_differences(done: Activity) -> list[Difference]:
    return compare_settings(*(_flat(done.effective_verb, value) for value in (done.before, done.after)))


def setting_name(setting: str) -> str | Promise:
    return _NAMES.get(setting, setting)


def flatten_settings(value: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_members(value))


def flatten_policies(value: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {policy["identifier"]: _policy(policy["policy"]) for policy in value}


def compare_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    names = [*before, *(name for name in after if name not in before)]
    both = bool(before) and bool(after)  # empty settings matter only in a comparison
    return [
        Difference(setting_name(name), *(_setting(name, values.get(name)) for values in (before, after)))
        for name in names
        if before.get(name) != after.get(name) and (before.get(name) or after.get(name) or both)
    ]


def _flat(verb: Verb, value: Any) -> dict[str, Any]:
    """Flatten a value to comparable members; policies by identifier."""
    if value is None:
        return {}
    if verb is AccessVerb.POLICIES_SET:
        return flatten_policies(value)
    if isinstance(value, dict):
        return flatten_settings(value)
    return (
        {"role": role_label(value)}
        if verb in {PeopleVerb.MEMBER_SET, PeopleVerb.MEMBER_REMOVE}
        else {"": value}
    )


def role_label(value: Any) -> str:
    return roles.label(value) if isinstance(value, int) else ""


def _members(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, member in value.items():
        if isinstance(member, dict):
            yield from _members(member, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", member


def _policy(policy: Mapping[str, str | None] | None) -> str:
    if policy is None:
        return "-"
    start, expiry = (_instant(policy[name]) for name in ("start", "expiry"))
    return f"{policy['permission'] or '-'}, {start} – {expiry}"


def _instant(text: str | None) -> str:
    return "…" if not text else text.replace(".0000000Z", "Z")


def _setting(name: str, value: Any) -> ShownValue | None:
    if name in SETTINGS and SETTINGS[name].unit > 1 and value is not None:
        value //= SETTINGS[name].unit
    match value:
        case None:
            return None
        case bool():
            return ShownValue(format_html("{}", _("yes") if value else _("no")))
        case str():
            return ShownValue(cells.draw(EdmValue(Edm.STRING, value)).markup)
        case list() if all(isinstance(item, str) for item in value):
            return ShownValue(format_html("{}", ", ".join(value) or "-"))
    return ShownValue(format_html("{}", json.dumps(value, ensure_ascii=False)))


_FACTS: Final[Mapping[str, Promise]] = {
    "key": gettext_lazy("Key"),
    "fingerprint": gettext_lazy("Fingerprint"),
    "user": gettext_lazy("User"),
    "by": gettext_lazy("By"),
    "rows": gettext_lazy("Entities"),
    "format": gettext_lazy("Format"),
    "as_of": gettext_lazy("As of"),
    "tables": gettext_lazy("Tables"),
    "kept_days": gettext_lazy("Retention (days)"),
    "note": gettext_lazy("Note"),
    "role": gettext_lazy("Role"),
    "is_admin": gettext_lazy("Server admin"),
    "days": gettext_lazy("Valid for (days)"),
    "added": gettext_lazy("Added"),
    "changed": gettext_lazy("Changed"),
    "removed": gettext_lazy("Removed"),
}
# already in the sentence, or internal
_SAID: Final = frozenset({"verb", "declared", "label", "kind", "query", "of_table", "saved", "version"})


def activity_facts(done: Activity) -> list[tuple[str | Promise, str]]:
    """Return details of an activity that its sentence omits."""
    return [
        (_FACTS.get(name, name), _fact(name, value))
        for name, value in done.detail.items()
        if name not in _SAID and value not in ("", None, [])
    ]


def _fact(name: str, value: Any) -> str:
    match value:
        case bool():
            return _("yes") if value else _("no")
        case list():
            return ", ".join(map(str, value))
    return role_label(value) if name == "role" else str(value)
