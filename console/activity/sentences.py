"""What was done, as one sentence in the reader's language, and what became of the attempt to undo it."""

from collections.abc import Callable, Mapping, Sequence
from html import unescape
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html, format_html_join, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.site import roles
from storage.domain.access.actor import ActorKind
from storage.domain.service.activity import Verb
from storage.models import Activity
from storage.operations.undo import CannotUndo, Reason, effect

ICONS: Final[Mapping[str, str]] = {
    "account": "database",
    "key": "key-round",
    "table": "table-2",
    "policies": "shield",
    "query": "bookmark",
    "sas": "ticket",
    "properties": "sliders-horizontal",
    "entity": "rows-3",
    "user": "user",
    "member": "users",
    "api-token": "plug",
}
_OWN_ICONS: Final[Mapping[Verb, str]] = {
    Verb.ENTITY_INSERT: "circle-plus",
    Verb.ENTITY_CHANGE: "pencil",
    Verb.ENTITY_DELETE: "trash-2",
    Verb.ENTITY_REKEY: "arrow-left-right",
    Verb.ENTITY_EXPORT: "file-down",
    Verb.TABLE_DELETE: "trash-2",
    Verb.TABLE_RESTORE: "rotate-ccw",
    Verb.ACCOUNT_DELETE: "trash-2",
    Verb.ACCOUNT_EXPIRE: "hourglass",
    Verb.KEY_REVEAL: "eye",
    Verb.KEY_COPY: "copy",
    Verb.KEY_ROTATE: "rotate-ccw-key",
    Verb.SAS_BLOCK: "ban",
    Verb.SIGN_IN: "log-in",
    Verb.SIGN_OUT: "log-out",
    Verb.SIGN_IN_FAILED: "shield-alert",
    Verb.USER_INVITE: "mail-plus",
    Verb.USER_CREATE: "user-plus",
    Verb.USER_REMOVE: "user-x",
    Verb.MEMBER_REMOVE: "user-minus",
}

_SENTENCES: Final[Mapping[Verb, Promise]] = {
    Verb.ACCOUNT_CREATE: gettext_lazy("%(who)s created the account %(account)s"),
    Verb.ACCOUNT_CHANGE: gettext_lazy("%(who)s changed settings of the account %(account)s"),
    Verb.ACCOUNT_EXPIRE: gettext_lazy("%(who)s froze the expired account %(account)s"),
    Verb.ACCOUNT_DELETE: gettext_lazy("%(who)s deleted the account %(account)s"),
    Verb.KEY_REVEAL: gettext_lazy("%(who)s revealed %(key)s"),
    Verb.KEY_COPY: gettext_lazy("%(who)s copied %(key)s"),
    Verb.KEY_ROTATE: gettext_lazy("%(who)s rotated %(key)s"),
    Verb.KEY_END: gettext_lazy("%(who)s ended the grace period of %(key)s"),
    Verb.TABLE_CREATE: gettext_lazy("%(who)s created the table %(table)s"),
    Verb.TABLE_CHANGE: gettext_lazy("%(who)s changed the notes for the table %(table)s"),
    Verb.TABLE_DELETE: gettext_lazy("%(who)s deleted the table %(table)s"),
    Verb.TABLE_RESTORE: gettext_lazy("%(who)s restored the table %(table)s"),
    Verb.QUERY_CREATE: gettext_lazy("%(who)s saved the query %(query)s for %(table)s"),
    Verb.QUERY_CHANGE: gettext_lazy("%(who)s changed the query %(query)s for %(table)s"),
    Verb.QUERY_DELETE: gettext_lazy("%(who)s deleted the query %(query)s for %(table)s"),
    Verb.POLICIES_SET: gettext_lazy("%(who)s changed the access policies of %(table)s"),
    Verb.PROPERTIES_SET: gettext_lazy("%(who)s changed the service properties"),
    Verb.SAS_ISSUE: gettext_lazy("%(who)s created the SAS token %(sas)s"),
    Verb.SAS_CHANGE: gettext_lazy("%(who)s changed the notes for the SAS token %(sas)s"),
    Verb.SAS_BLOCK: gettext_lazy("%(who)s blocked the SAS token %(sas)s"),
    Verb.SAS_UNBLOCK: gettext_lazy("%(who)s unblocked the SAS token %(sas)s"),
    Verb.API_TOKEN_ISSUE: gettext_lazy("%(who)s created the API token %(token)s for %(user)s"),
    Verb.API_TOKEN_REVOKE: gettext_lazy("%(who)s revoked the API token %(token)s of %(user)s"),
    Verb.SIGN_IN: gettext_lazy("%(who)s signed in"),
    Verb.SIGN_OUT: gettext_lazy("%(who)s signed out"),
    Verb.SIGN_IN_FAILED: gettext_lazy("Someone failed to sign in as %(who)s"),
    Verb.USER_INVITE: gettext_lazy("%(who)s invited someone"),
    Verb.USER_CREATE: gettext_lazy("%(who)s created the user %(user)s"),
    Verb.USER_CHANGE: gettext_lazy("%(who)s changed the user %(user)s"),
    Verb.USER_REMOVE: gettext_lazy("%(who)s deleted the user %(user)s"),
    Verb.MEMBER_SET: gettext_lazy("%(who)s gave %(user)s the role %(role)s"),
    Verb.MEMBER_REMOVE: gettext_lazy("%(who)s removed %(user)s from the account"),
}


def sentence(done: Activity) -> SafeString:
    """Who did what to what; names lead to what is still there."""
    verb = effect(done)
    if verb is Verb.SIGN_IN_FAILED and not done.actor:
        return SafeString(conditional_escape(_("Someone failed to sign in")))
    parts = {
        "who": who(done),
        "table": _table(done),
        "account": format_html("<strong>{}</strong>", done.account_name),
        "user": format_html("<strong>{}</strong>", done.detail.get("user", "")),
        "key": _key(done),
        "sas": _signature(done),
        "token": format_html('<strong class="mono">{}</strong>', done.detail.get("token", "")),
        "role": format_html("<strong>{}</strong>", _role(done)),
    }
    if verb is Verb.USER_CHANGE and done.detail.get("user") == done.actor:
        return _filled(_("%(who)s changed their sign-in settings"), parts)
    if verb is Verb.ENTITY_REKEY:
        return _filled(
            _REKEYED, parts | {"entity": _entity(done, getattr(done, "first_key", None) or _NO_KEY)}
        )
    if verb in _ENTITIES:
        return _of_entities(done, verb, parts)
    if verb.startswith("query."):
        return _of_query(done, verb, parts)
    return _filled(_SENTENCES[verb], parts)


def plain(done: Activity) -> str:
    """The sentence without its links."""
    return unescape(strip_tags(sentence(done)))


def _filled(text: str | Promise, parts: Mapping[str, str]) -> SafeString:
    # what is put in is escaped already; the text itself is ours, or a translator's
    return mark_safe(conditional_escape(str(text)) % parts)  # noqa: S308


def icon_of(done: Activity) -> str:
    verb = effect(done)
    return _OWN_ICONS.get(verb, ICONS[verb.partition(".")[0]])


def who(done: Activity) -> SafeString:
    name = format_html("<strong>{}</strong>", done.actor)
    match ActorKind(done.actor_kind):
        case ActorKind.USER:
            return name
        case ActorKind.KEY:
            return _filled(_("A client using %(name)s"), {"name": name})
        case ActorKind.SAS:
            short = format_html('<strong class="mono" title="{}">{}</strong>', done.actor, done.actor[:8])
            return _filled(_("A client using the SAS token %(name)s"), {"name": short})
        case ActorKind.BEARER:
            return _filled(_("A client using a bearer token of %(name)s"), {"name": name})
        case ActorKind.TOKEN:
            token = format_html('<strong class="mono">{}</strong>', done.detail.get("by_token", ""))
            return _filled(_("%(name)s, using the API token %(token)s,"), {"name": name, "token": token})
        case ActorKind.COMMAND:
            return _filled(_("%(name)s, on the server's command line,"), {"name": name})
        case ActorKind.SERVER:
            return SafeString(conditional_escape(_("The server")))


def _table(done: Activity) -> SafeString:
    if not getattr(done, "has_table", False):
        return format_html('<strong class="mono">{}</strong>', done.table_name)
    address = reverse("entities:index", args=(done.account_name, done.table_name))
    return format_html('<a class="mono" href="{}">{}</a>', address, done.table_name)


def _role(done: Activity) -> str:
    return roles.label(done.after) if isinstance(done.after, int) else ""


def _key(done: Activity) -> SafeString:
    if done.detail.get("declared"):
        return SafeString(conditional_escape(_("the configured keys")))
    return format_html('<strong class="mono">{}</strong>', done.detail.get("key", ""))


def _signature(done: Activity) -> SafeString:
    """By its label, or else by what its fingerprint begins with."""
    label, fingerprint = done.detail.get("label", ""), str(done.detail.get("fingerprint", ""))
    if label:
        return format_html("<strong><bdi>{}</bdi></strong>", label)
    return format_html('<strong class="mono" title="{}">{}</strong>', fingerprint, fingerprint[:8])


def _of_query(done: Activity, verb: Verb, parts: dict[str, SafeString]) -> SafeString:
    """Of a private one nobody is told the name; one whose table is gone has no table to lead to."""
    name = done.detail.get("query", "")
    table = done.table_name or done.detail.get("of_table", "")
    found = {
        **parts,
        "query": format_html("<strong><bdi>{}</bdi></strong>", name),
        "table": parts["table"]
        if done.table_name
        else format_html('<strong class="mono">{}</strong>', table),
    }
    if name:
        return _filled(
            _BROUGHT_BACK if done.undoes_id and verb is Verb.QUERY_CREATE else _SENTENCES[verb], found
        )
    if verb is Verb.QUERY_DELETE:
        return _filled(_("%(who)s deleted a private query for %(table)s"), found)
    return _filled(_("%(who)s restored a private query for %(table)s"), found)


_BROUGHT_BACK: Final = gettext_lazy("%(who)s restored the query %(query)s for %(table)s")
_REKEYED: Final = gettext_lazy("%(who)s changed the key of an entity in %(table)s to %(entity)s")
_Plural = Callable[[int], str]
_ENTITIES: Final[Mapping[Verb, tuple[Promise, _Plural]]] = {
    Verb.ENTITY_INSERT: (
        gettext_lazy("%(who)s added %(entity)s to %(table)s"),
        lambda number: ngettext(
            "%(who)s added %(number)s entity to %(table)s",
            "%(who)s added %(number)s entities to %(table)s",
            number,
        ),
    ),
    Verb.ENTITY_CHANGE: (
        gettext_lazy("%(who)s changed %(entity)s in %(table)s"),
        lambda number: ngettext(
            "%(who)s changed %(number)s entity in %(table)s",
            "%(who)s changed %(number)s entities in %(table)s",
            number,
        ),
    ),
    Verb.ENTITY_DELETE: (
        gettext_lazy("%(who)s deleted %(entity)s from %(table)s"),
        lambda number: ngettext(
            "%(who)s deleted %(number)s entity from %(table)s",
            "%(who)s deleted %(number)s entities from %(table)s",
            number,
        ),
    ),
    Verb.ENTITY_EXPORT: (
        gettext_lazy("%(who)s exported entities from %(table)s"),
        lambda number: ngettext(
            "%(who)s exported %(number)s entity from %(table)s",
            "%(who)s exported %(number)s entities from %(table)s",
            number,
        ),
    ),
}


def _of_entities(done: Activity, verb: Verb, parts: dict[str, SafeString]) -> SafeString:
    of_one, of_several = _ENTITIES[verb]
    number = _number(done)
    first = getattr(done, "first_key", None)
    if verb is Verb.ENTITY_EXPORT and number == 0:
        return _filled(of_one, parts)
    if number == 1 and first is not None:
        return _filled(of_one, parts | {"entity": _entity(done, first)})
    return _filled(of_several(number), parts | {"number": number_format(number, force_grouping=True)})


def _number(done: Activity) -> int:
    rows = done.detail.get("rows")
    if isinstance(rows, int):
        return rows
    changed: int | None = getattr(done, "changed", None)
    return done.changes.count() if changed is None else changed


def _entity(done: Activity, key: Mapping[str, str]) -> SafeString:
    """Its keys, which lead to it where it may be."""
    keys = key["partition_key"], key["row_key"]
    shown = format_html_join(
        mark_safe('<span class="faint"> / </span>'),
        "<bdi>{}</bdi>",
        ((_short(text),) for text in keys),
    )
    if not getattr(done, "has_table", False):
        return format_html('<strong class="mono">{}</strong>', shown)
    return format_html('<a class="mono" href="{}">{}</a>', entity_address(done, *keys), shown)


_NO_KEY: Final = {"partition_key": "", "row_key": ""}
_LONGEST_KEY: Final = 60


def _short(key: str) -> str:
    return f"{key[:_LONGEST_KEY]}…" if len(key) > _LONGEST_KEY else key or '""'


def entity_address(done: Activity, partition_key: str, row_key: str) -> str:
    address = reverse("entities:show", args=(done.account_name, done.table_name))
    return f"{address}?{urlencode({'pk': partition_key, 'rk': row_key})}"


# undoing


def undone(several: Sequence[Activity]) -> str:
    """What became of it: ``several`` are the records of the way back."""
    first = several[0]
    names = {"table": first.table_name, "account": first.account_name, "user": first.detail.get("user", "")}
    match effect(first):
        case Verb.TABLE_RESTORE | Verb.TABLE_DELETE if len(several) > 1:
            return _of_tables(effect(first), len(several))
        case Verb.TABLE_RESTORE:
            return _("Restored %(table)s.") % names
        case Verb.TABLE_DELETE:
            return _("Deleted %(table)s.") % names
        case Verb.ENTITY_INSERT | Verb.ENTITY_CHANGE | Verb.ENTITY_DELETE | Verb.ENTITY_REKEY:
            number = sum(map(_number, several))
            shown = number_format(number, force_grouping=True)
            return _entities_undone(effect(first), number) % {**names, "number": shown}
        case Verb.QUERY_CREATE:
            return _("Restored the query.")
        case Verb.QUERY_DELETE:
            return _("Deleted the query.")
    return _("Undid the change.")


def _entities_undone(verb: Verb, number: int) -> str:
    if verb is Verb.ENTITY_INSERT:
        return ngettext(
            "Restored %(number)s entity in %(table)s.",
            "Restored %(number)s entities in %(table)s.",
            number,
        )
    if verb is Verb.ENTITY_DELETE:
        return ngettext(
            "Deleted %(number)s entity from %(table)s.", "Deleted %(number)s entities from %(table)s.", number
        )
    if verb is Verb.ENTITY_REKEY:
        return _("Restored the previous key of the entity in %(table)s.")
    return ngettext(
        "Reverted %(number)s entity in %(table)s.",
        "Reverted %(number)s entities in %(table)s.",
        number,
    )


def _of_tables(verb: Verb, number: int) -> str:
    if verb is Verb.TABLE_RESTORE:
        text = ngettext("Restored %(number)s table.", "Restored %(number)s tables.", number)
    else:
        text = ngettext("Deleted %(number)s table.", "Deleted %(number)s tables.", number)
    return text % {"number": number}


REASONS: Final[Mapping[Reason, Promise]] = {
    Reason.NEVER: gettext_lazy("This cannot be undone."),
    Reason.ALREADY_UNDONE: gettext_lazy("This was already undone."),
    Reason.CHANGED_SINCE: gettext_lazy("Not undone: it was changed since, and those changes would be lost."),
    Reason.GONE: gettext_lazy("Not undone: it no longer exists."),
    Reason.NAME_TAKEN: gettext_lazy("Not undone: another table has this name now. Delete it first."),
    Reason.TOO_OLD: gettext_lazy("Not undone: the deleted table can no longer be restored."),
    Reason.READ_ONLY: gettext_lazy("Not undone: the account is read-only."),
    Reason.NOT_YOURS: gettext_lazy("Only maintainers can undo other people's changes."),
    Reason.LAST: gettext_lazy("Not undone: the account would be left without an owner."),
}


def refusal(cannot: CannotUndo) -> str:
    if cannot.reason is Reason.LAST and effect(cannot.done) is Verb.USER_CHANGE:
        return _("Not undone: the server would be left without an admin.")
    if cannot.key is None:
        return str(REASONS[cannot.reason])
    named = {"key": " / ".join(cannot.key)}
    if cannot.reason is Reason.GONE:
        return _("Not undone: the entity %(key)s no longer exists.") % named
    return _("Not undone: the entity %(key)s was changed since, and those changes would be lost.") % named
