"""Activities as sentences in the reader's language, and the messages about an attempt to undo them."""

import re
from collections.abc import Callable, Mapping, Sequence
from html import unescape
from typing import Final

from django.urls import reverse
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html, format_html_join, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.activity.presentation import presentation_of, translate
from console.site import roles
from console.site.actors import draw_actor
from storage.activity import activity
from storage.activity.actors import actor_of
from storage.activity.undoing import CannotUndo, Reason
from storage.core import registry
from storage.core.subject import Word
from storage.core.verbs import Group
from storage.domain.access.actor import ActorKind
from storage.history.subject import HistoryVerb
from storage.models import Activity
from storage.people.subject import PeopleVerb
from storage.queries.subject import QueryVerb
from storage.transfer.subject import TransferVerb

_LONGEST_KEY: Final = 60  # characters
_OUTER_BLANKS: Final = re.compile(r"^\s+|\s+$")
_NO_KEY: Final = {"partition_key": "", "row_key": ""}


def sentence(done: Activity, *, links_tokens: bool = False) -> SafeString:
    """Describe an activity in a sentence, with links to the table and entity if they still exist.

    ``links_tokens``: the reader may see the SAS token that was used.
    """
    said = _fill(_choose_text(done), _Words(done, links_tokens=links_tokens))
    is_command = actor_of(done).kind is ActorKind.COMMAND
    return _fill(_("%(sentence)s (command line)"), {"sentence": said}) if is_command else said


def plain_sentence(done: Activity) -> str:
    return unescape(strip_tags(sentence(done)))


def _choose_text(done: Activity) -> str | Promise:
    verb, shown = done.effective_verb, presentation_of(done.effective_verb)
    query = done.detail.get("query")
    match verb:
        case PeopleVerb.SIGN_IN_FAILED if not done.actor:
            return _("Someone failed to sign in")
        case PeopleVerb.MEMBER_SET if done.detail.get("invited_by"):
            return _("%(who)s joined with the role %(role)s, invited by %(inviter)s")
        case PeopleVerb.USER_INVITE:
            return _choose_invitation_text(done)
        case PeopleVerb.USER_CHANGE if done.detail.get("user") == done.actor:
            return _("%(who)s changed their sign-in settings")
        case QueryVerb.DELETE if not query:
            return _("%(who)s deleted a private query for %(table)s")
        case QueryVerb.CREATE | QueryVerb.CHANGE if not query:
            return _("%(who)s restored a private query for %(table)s")
        case QueryVerb.CREATE if done.undoes_id:
            return _("%(who)s restored the query %(query)s for %(table)s")
        case HistoryVerb.REVERT if done.table_name:
            return ngettext(
                "%(who)s undid changes to %(number)s entity in %(table)s",
                "%(who)s undid changes to %(number)s entities in %(table)s",
                _count(done),
            )
    if shown.several is None or _names_entity(done) or (verb is TransferVerb.EXPORT and not _count(done)):
        return translate(shown.sentence)
    return translate(shown.several, _count(done))


def _choose_invitation_text(done: Activity) -> str:
    is_named = bool(done.detail.get("user"))
    if done.detail.get("withdrawn"):
        return (
            _("%(who)s withdrew the invitation for %(user)s")
            if is_named
            else _("%(who)s withdrew an invitation")
        )
    if done.detail.get("is_admin"):
        return (
            _("%(who)s invited %(user)s as an admin")
            if is_named
            else _("%(who)s created an invitation link for an admin")
        )
    if not done.account_name:
        return _("%(who)s invited %(user)s") if is_named else _("%(who)s created an invitation link")
    return (
        _("%(who)s invited %(user)s with the role %(role)s")
        if is_named
        else _("%(who)s created an invitation link for the role %(role)s")
    )


def _names_entity(done: Activity) -> bool:
    return _count(done) == 1 and getattr(done, "first_key", None) is not None


def _fill(text: str | Promise, words: Mapping[str, str]) -> SafeString:
    # the words are escaped already; the text itself is ours, or a translator's
    return mark_safe(conditional_escape(str(text)) % words)  # noqa: S308


# the words of a sentence


class _Words(dict[str, SafeString]):
    """Placeholders in sentences about one activity, computed on access."""

    def __init__(self, done: Activity, *, links_tokens: bool) -> None:
        self.done = done
        self.account = done.account_name if links_tokens else ""

    def __missing__(self, name: str) -> SafeString:
        if name == "who":
            return _describe_actor(self.done, self.account)
        return _WORDS[name](self.done) if name in _WORDS else _draw_word(registry.words()[name], self.done)


def _describe_actor(done: Activity, account: str) -> SafeString:
    """Name the actor of an activity; a SAS label links to the token's page in the given account."""
    actor = actor_of(done)
    name = _strong(done.actor)
    match actor.kind:
        case ActorKind.USER | ActorKind.COMMAND:
            return name
        case ActorKind.KEY:
            return _fill(_("A client using %(name)s"), {"name": name})
        case ActorKind.SAS:
            name = _strong(draw_actor(actor, account))
            text = _("A client using the SAS token %(name)s") if actor.label else _("A client using %(name)s")
            return _fill(text, {"name": name})
        case ActorKind.BEARER:
            return _fill(_("A client using a bearer token of %(name)s"), {"name": name})
        case ActorKind.TOKEN:
            token = _mono(actor.token)
            return _fill(_("%(name)s, using the API token %(token)s,"), {"name": name, "token": token})
        case ActorKind.SERVER:
            return SafeString(conditional_escape(_("The server")))
        case _:  # a newer version has recorded another
            return name


def _link_table(done: Activity) -> SafeString:
    if not getattr(done, "has_table", False):
        return _mono(done.table_name or done.detail.get("of_table", ""))
    address = reverse("entities:index", args=(done.account_name, done.table_name))
    return format_html('<a class="mono" href="{}">{}</a>', address, done.table_name)


def _draw_word(word: Word, done: Activity) -> SafeString:
    text = translate(word.text) if word.text else done.detail.get(word.label, "")
    if not word.url:
        return SafeString(conditional_escape(text))
    address = reverse(word.url, args=(done.account_name, done.detail.get(word.detail, 0)))
    return format_html('<a href="{}">{}</a>', address, text)


def _link_entity(done: Activity) -> SafeString:
    key: Mapping[str, str] = getattr(done, "first_key", None) or _NO_KEY
    keys = key["partition_key"], key["row_key"]
    separator = mark_safe('<span class="faint"> / </span>')
    shown = format_html_join(separator, "<bdi>{}</bdi>", ((_shorten(text),) for text in keys))
    if not getattr(done, "has_table", False):
        return _mono(shown)
    return format_html('<a class="mono" href="{}">{}</a>', entity_address(done, *keys), shown)


def _shorten(key: str) -> str:
    shown = f"{key[:_LONGEST_KEY]}…" if len(key) > _LONGEST_KEY else key or '""'
    return _OUTER_BLANKS.sub(lambda blanks: "␣" * len(blanks[0]), shown)


def entity_address(done: Activity, partition_key: str, row_key: str) -> str:
    query = {"pk": partition_key, "rk": row_key}
    return reverse("entities:show", args=(done.account_name, done.table_name), query=query)


def _name_key(done: Activity) -> SafeString:
    if done.detail.get("declared"):
        return SafeString(conditional_escape(_("the configured keys")))
    return _mono(done.detail.get("key", ""))


def _name_sas(done: Activity) -> SafeString:
    """Return the label of the SAS token, or the start of its fingerprint."""
    label = done.detail.get("label", "")
    return _strong_bdi(label) if label else _fingerprint(str(done.detail.get("fingerprint", "")))


def _count(done: Activity) -> int:
    """Return the number of changed entities or exported rows."""
    rows = done.detail.get("rows")
    if isinstance(rows, int):
        return rows
    changed: int | None = getattr(done, "changed", None)
    return activity.count_changes(done) if changed is None else changed


def _group_digits(number: int) -> SafeString:
    return SafeString(number_format(number, force_grouping=True))


def _strong(text: str) -> SafeString:
    return format_html("<strong>{}</strong>", text)


def _strong_bdi(text: str) -> SafeString:
    return format_html("<strong><bdi>{}</bdi></strong>", text)


def _mono(text: str) -> SafeString:
    return format_html('<strong class="mono">{}</strong>', text)


def _fingerprint(text: str) -> SafeString:
    return format_html('<strong class="mono" title="{}">{}</strong>', text, text[:8])


def _label_role(done: Activity) -> str:
    role = done.detail.get("role") if done.after is None else done.after
    return roles.label(role) if isinstance(role, int) else ""


def _link_job(done: Activity) -> SafeString:
    number = done.detail.get("job", 0)
    return format_html('<a href="{}">{}</a>', reverse("jobs:show", args=(number,)), number)


_WORDS: Final[Mapping[str, Callable[[Activity], SafeString]]] = {
    "account": lambda done: _strong(done.account_name),
    "verb": lambda done: _mono(done.effective_verb),
    "table": _link_table,
    "entity": _link_entity,
    "number": lambda done: _group_digits(_count(done)),
    "property": lambda done: _mono(done.detail.get("property", "")),
    "former": lambda done: _mono(done.detail.get("from", "")),
    "query": lambda done: _strong_bdi(done.detail.get("query", "")),
    "key": _name_key,
    "sas": _name_sas,
    "token": lambda done: _mono(done.detail.get("token", "")),
    "snapshot": lambda done: _strong_bdi(done.detail.get("snapshot", "")),
    "branch": lambda done: _strong(done.detail.get("branch", "")),
    "set": lambda done: _strong(done.detail.get("set", "")),
    "user": lambda done: _strong(done.detail.get("user", "")),
    "role": lambda done: _strong(_label_role(done)),
    "job": _link_job,
    "webhook": lambda done: _strong_bdi(done.detail.get("webhook", "")),
    "notice": lambda done: _mono(done.detail.get("notice", "")),
    "deployment": lambda done: _strong_bdi(done.detail.get("deployment", "")),
    "inviter": lambda done: _strong(done.detail.get("invited_by", "")),
}


# undo


def report_undo(several: Sequence[Activity]) -> str:
    """Describe the result of an undo; ``several`` are the activities that it recorded."""
    first, shown = several[0], presentation_of(several[0].effective_verb)
    if not shown.undone:
        return _("Undid the change.")
    number = sum(map(_count, several)) if shown.group is Group.ENTITIES else len(several)
    return translate(shown.undone, number) % {"table": first.table_name, "number": _group_digits(number)}


_REASONS: Final[Mapping[Reason, Promise]] = {
    Reason.NEVER: gettext_lazy("This cannot be undone."),
    Reason.ALREADY_UNDONE: gettext_lazy("This was already undone."),
    Reason.CHANGED_SINCE: gettext_lazy("Not undone: it was changed since, and those changes would be lost."),
    Reason.GONE: gettext_lazy("Not undone: it no longer exists."),
    Reason.NAME_TAKEN: gettext_lazy("Not undone: another table has this name now. Delete it first."),
    Reason.TOO_OLD: gettext_lazy("Not undone: the deleted table can no longer be restored."),
    Reason.NOT_KEPT: gettext_lazy("Not undone: the history no longer has this change."),
    Reason.NO_HISTORY: gettext_lazy("Turn on history to undo changes."),
    Reason.READ_ONLY: gettext_lazy("Not undone: the account is read-only."),
    Reason.LAST: gettext_lazy("Not undone: the account would be left without an owner."),
}


def explain_reason(reason: Reason) -> str:
    return str(_REASONS[reason])


def explain_refusal(cannot: CannotUndo) -> str:
    if cannot.reason is Reason.LAST and cannot.done.effective_verb is PeopleVerb.USER_CHANGE:
        return _("Not undone: the server would be left without an admin.")
    if cannot.key is None:
        return explain_reason(cannot.reason)
    key = {"key": " / ".join(cannot.key)}
    if cannot.reason is Reason.GONE:
        return _("Not undone: the entity %(key)s no longer exists.") % key
    return _("Not undone: the entity %(key)s was changed since, and those changes would be lost.") % key
