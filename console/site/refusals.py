"""Messages for refused operations in the user's language."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.site.toasts import notify_error
from storage.domain.errors import StorageError
from storage.domain.refusals import AnyReason, Reason, Refused
from storage.domain.values.edm import utf16_length
from storage.editing.filters.diagnostics import Diagnostic

# in place of sentences for programs: these speak to the reader, or say what to do on the page
OWN_TEXTS: Final[Mapping[AnyReason, Promise]] = {
    Reason.BULK_EDIT_NUMBER: _(
        "The account %(account)s is protected. Type the number of entities that the query finds."
    ),
    Reason.TOO_MANY_OWN_QUERIES: _("You can have at most %(most)s saved queries. Delete one first."),
    Reason.NODES_ARE_BUSY: _(
        "Other tables are being created or moved on the nodes of the cluster. Try again in a moment."
    ),
    Reason.NODE_IS_DOWN: _("A node of the cluster does not answer. Try again in a moment."),
    Reason.JOB_DIES: _(
        "The same step was begun %(attempts)s times and did not end: the process died, or the database was "
        "busy. Resume the job to try again."
    ),
    Reason.COMMENT_EMPTY: _("Enter a comment."),
    Reason.COMMENT_TOO_LONG: _("Use at most %(most)s characters."),
    Reason.TOO_MANY_COMMENTS_AT_ONCE: _("You can write %(most)s comments per minute. Wait a moment."),
    Reason.TOO_MANY_MUTES: _("You can mute at most %(most)s notices and kinds. Unmute one first."),
    Reason.JOB_BROKEN: _(
        "An internal error occurred (%(why)s). The log of the server has the details. Resume the job to try again."
    ),
    Reason.EDIT_OF_KEY: _("%(property)s is part of the key. Use the operation “Change keys”."),
    Reason.EDIT_KEY_MISSING: _("Enter a PartitionKey, a RowKey or both."),
}


def describe_refusal(error: Refused | StorageError | Diagnostic) -> str:
    """Return the sentence of a refusal, or the service's own message without a reason."""
    refusal = error.refusal
    text = OWN_TEXTS.get(refusal.reason) or gettext(refusal.reason.value)
    return str(text) % refusal.facts


def mark_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of a fault in UTF-16 units, as browsers count."""
    if start >= min(end, len(text)):  # at the end there is nothing to mark but the last character
        start = max(0, start - 1)
    return utf16_length(text[:start]), utf16_length(text[:end])


@contextmanager
def notify_refusals(request: HttpRequest) -> Iterator[None]:
    """Show the refusal of an operation in the block as an error toast."""
    try:
        yield
    except (Refused, StorageError) as error:
        notify_error(request, describe_refusal(error))
