"""What a page says once, after something was done: a sentence, and the way back if there is one."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest

from storage.models import Activity

UNDO = "undo-"
LINK = "link-"


def say(request: HttpRequest, text: str, *, undo: Activity | Sequence[Activity] | None = None) -> None:
    """``undo``: the records of what was done, if it can be undone; several are undone together."""
    done = [undo] if isinstance(undo, Activity) else undo or ()
    numbers = ",".join(str(activity.pk) for activity in done)
    messages.success(request, text, extra_tags=f"{UNDO}{numbers}" if numbers else "")


def complain(request: HttpRequest, text: str, *, link: str = "") -> None:
    """``link``: where to look at what is in the way."""
    messages.error(request, text, extra_tags=f"{LINK}{link}" if link else "")
