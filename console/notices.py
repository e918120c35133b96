"""What a page says once, after something was done: a sentence, and the way back if there is one."""

from django.contrib import messages
from django.http import HttpRequest

from storage.models import Activity

UNDO = "undo-"


def say(request: HttpRequest, text: str, *, undo: Activity | None = None) -> None:
    """``undo``: the record of what was done, if it can be undone."""
    messages.success(request, text, extra_tags=f"{UNDO}{undo.pk}" if undo is not None else "")


def complain(request: HttpRequest, text: str) -> None:
    messages.error(request, text)
