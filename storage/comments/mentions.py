"""Unseen mentions, which cause notices."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from storage.comments.content import RETENTION_DAYS, SubjectKind
from storage.comments.subject import CommentNotice
from storage.models import CommentMention, CommentThread, Membership
from storage.notices import evaluation

_LONGEST: Final = 200  # characters of the name of a thread's subject


def not_seen(now: datetime) -> Iterable[CommentMention]:
    """Return, for each user and thread, the latest unseen mention of a user who still has access."""
    own = Membership.objects.filter(user=OuterRef("user"), account=OuterRef("comment__thread__account"))
    mentions = CommentMention.objects.filter(
        Q(user__is_admin=True) | Exists(own),
        seen_at=None,
        user__is_active=True,
        comment__deleted_at=None,
        comment__thread__table__deleted_at=None,
        comment__created_at__gt=now - timedelta(days=RETENTION_DAYS),
    )
    related = mentions.select_related("comment__thread__table")
    latest = {(it.user_id, it.comment.thread_id): it for it in related.order_by("pk")}
    return latest.values()


def forget_query(query: int) -> None:
    """Delete mentions on a saved query whose comments are no longer readable, and their notices."""
    number, _ = CommentMention.objects.filter(comment__thread__query=query, seen_at=None).delete()
    if number:
        transaction.on_commit(lambda: evaluation.evaluate_kind(CommentNotice.MENTION, timezone.now()))


def describe(thread: CommentThread) -> str:
    """Return the name of a thread's subject."""
    table = thread.table.name
    if thread.subject == SubjectKind.ENTITY:
        return f"{table}: {thread.partition_key}, {thread.row_key}"[:_LONGEST]
    return table
