"""Toasts: success messages with an undo button, and errors."""

from collections.abc import Sequence
from typing import Final

from django.contrib import messages
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from storage.activity import activity
from storage.activity.actors import actor_of
from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.domain.history.recorded import Op, RecordedChange
from storage.models import Activity

UNDO = "undo-"
LINK = "link-"
# keys of the session: the last undo in an account without history, and the most bytes of it
_UNRECORDED: Final = "unrecorded"
_LARGEST: Final = 64 * 1024


def notify_success(
    request: HttpRequest, text: str, *, undo: Activity | Sequence[Activity] | None = None, link: str = ""
) -> None:
    """Show a success toast, with an optional undo button and link."""
    done = [undo] if isinstance(undo, Activity) else undo or ()
    if any(it.entities and not activity.is_recorded(it) for it in done) and not _keep(request, done):
        text, done = f"{text} {_('Turn on history to undo changes.')}", ()
    numbers = ",".join(str(it.pk) for it in done)
    tags = [f"{UNDO}{numbers}" if numbers else "", f"{LINK}{link}" if link else ""]
    messages.success(request, text, extra_tags=" ".join(filter(None, tags)))


def _keep(request: HttpRequest, several: Sequence[Activity]) -> bool:
    """Keep changes without a history in the session for undo; return whether they are small enough."""
    sizes = [sum(len(it.before.content) for it in done.unrecorded if it.before) for done in several]
    if not all(done.unrecorded for done in several) or sum(sizes) > _LARGEST:
        return False
    request.session[_UNRECORDED] = {
        str(done.pk): [
            (*it.key, it.op, it.ticks, it.before and it.before.content.decode()) for it in done.unrecorded
        ]
        for done in several
    }
    return True


def find_unrecorded(request: HttpRequest, several: Sequence[Activity]) -> None:
    """Attach the changes kept by the last toast to activities."""
    kept = request.session.pop(_UNRECORDED, {})
    for done in several:
        done.unrecorded = [_read(done, *it) for it in kept.get(str(done.pk), ())]


def _read(done: Activity, pk: str, rk: str, op: str, ticks: int, content: str | None) -> RecordedChange:
    key, by = EntityKey(pk, rk), actor_of(done)
    before = None if content is None else StoredEntity(encode_entity_key(key), b"0", content.encode())
    return RecordedChange(0, Op(op), done.table_name, done.table_id or 0, key, ticks, by, before, None)


def count_text(text: str, count: int) -> str:
    """Format ``shown``, the count with the language's separators, into a text."""
    return text % {"shown": number_format(count, force_grouping=True)}


def notify_error(request: HttpRequest, text: str, *, link: str = "") -> None:
    """Show an error toast; ``link`` is a page about its cause."""
    messages.error(request, text, extra_tags=f"{LINK}{link}" if link else "")
