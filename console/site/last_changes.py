"""Sentences about the last change of an entity or table."""

from datetime import datetime
from html import unescape

from django.utils import timezone
from django.utils.html import format_html, strip_tags
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from console.site.actors import draw_actor, label_door
from console.site.times import draw_time, to_local
from storage.domain.access.actor import Actor, ActorKind
from storage.domain.history.recorded import Op, RecordedChange
from storage.history.last_change import TableDeletion

_KEYS_AND_TOKENS = frozenset({ActorKind.KEY, ActorKind.SAS, ActorKind.BEARER})


def describe_change(change: RecordedChange, account: str = "") -> SafeString:
    """Describe who changed or deleted an entity and when; in an account, a SAS token is linked."""
    words = {"who": _draw_with_door(change.actor, account), "time": draw_recent(change.at)}
    if change.op is Op.DELETE:
        return _fill(_("{who} deleted this entity at {time}."), words)
    if change.actor.kind not in _KEYS_AND_TOKENS:
        return _fill(_("Changed by {who} at {time}."), words)
    if not change.actor.address:
        return _fill(_("Changed with {who} at {time}."), words)
    words["address"] = format_html('<span class="mono">{}</span>', change.actor.address)
    return _fill(_("Changed with {who} from {address} at {time}."), words)


def plain_change(change: RecordedChange) -> str:
    return unescape(strip_tags(describe_change(change)))


def describe_deletion(deletion: TableDeletion, account: str = "") -> SafeString:
    """Describe who deleted a table and when."""
    words = {"table": format_html("<bdi>{}</bdi>", deletion.name), "time": draw_recent(deletion.at)}
    if deletion.by is None:
        return _fill(_("The table {table} was deleted at {time}."), words)
    words["who"] = _draw_with_door(deletion.by, account)
    return _fill(_("{who} deleted the table {table} at {time}."), words)


def _fill(text: str, words: dict[str, SafeString]) -> SafeString:
    return format_html(text, **words)


def _draw_with_door(actor: Actor, account: str) -> SafeString:
    """Render an actor; keys and tokens with their kind."""
    name = draw_actor(actor, account)
    if actor.kind not in (ActorKind.SAS, ActorKind.BEARER) or (
        actor.kind is ActorKind.SAS and not actor.label
    ):
        return name
    return format_html("{} ({})", name, label_door(actor.kind))


def draw_recent(at: datetime) -> SafeString:
    """Render the time of day, with the date unless it is today."""
    local = to_local(at)
    is_today = local.date() == to_local(timezone.now()).date()
    return draw_time(local, f"{local:%H:%M:%S}" if is_today else f"{local:%Y-%m-%d %H:%M:%S}")
