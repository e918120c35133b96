"""Toasts: what was done, with a button to undo it, and what went wrong."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest
from django.utils.formats import number_format

from storage.models import Activity

UNDO = "undo-"
LINK = "link-"


def notify_success(
    request: HttpRequest, text: str, *, undo: Activity | Sequence[Activity] | None = None, link: str = ""
) -> None:
    """Show a sentence; ``undo``: the activities it offers to undo, all together; or ``link``: where to look."""
    done = [undo] if isinstance(undo, Activity) else undo or ()
    numbers = ",".join(str(activity.pk) for activity in done)
    tags = f"{UNDO}{numbers}" if numbers else f"{LINK}{link}" if link else ""
    messages.success(request, text, extra_tags=tags)


def count_text(text: str, count: int) -> str:
    """Fill in ``shown``, the count with the separators of the reader's language."""
    return text % {"shown": number_format(count, force_grouping=True)}


def notify_error(request: HttpRequest, text: str, *, link: str = "") -> None:
    """Show an error; ``link``: the address of what caused it."""
    messages.error(request, text, extra_tags=f"{LINK}{link}" if link else "")
