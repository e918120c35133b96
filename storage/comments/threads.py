"""Queries of comment threads: by subject, table or account, and counts per entity.

A thread comes with its latest comments as ``shown``, oldest first; each knows the ``total`` of the thread.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from storage.comments.content import Subject, SubjectKind
from storage.domain.entities.entity import EntityKey
from storage.models import Account, Comment, CommentThread, Table

SHOWN: Final = 50  # comments of a thread


def of_subject(table: Table, subject: Subject) -> QuerySet[CommentThread]:
    """Select the threads about a subject, the oldest first."""
    found = _with_comments().filter(table=table, digest=subject.digest, subject=subject.kind)
    return found.order_by("pk")


def of_table(table: Table) -> QuerySet[CommentThread]:
    """Select the threads about a table and its entities, the newest first."""
    return _with_comments().filter(table=table).order_by("-pk")


def count_earlier(thread: CommentThread) -> int:
    """Return the number of comments of a thread before the displayed ones."""
    shown: list[Any] = thread.shown  # type: ignore[attr-defined]
    return shown[0].total - len(shown) if shown else 0


def comments_of(thread: CommentThread) -> QuerySet[Comment]:
    """Select all comments of a thread, the oldest first."""
    return Comment.objects.filter(thread=thread, deleted_at=None).order_by("pk")


def earlier(thread: CommentThread, before: int) -> tuple[list[Comment], bool]:
    """Return the page of comments before one of a thread, oldest first, and whether there are more."""
    found = comments_of(thread).filter(pk__lt=before).select_related("author").order_by("-pk")[: SHOWN + 1]
    return list(found)[:SHOWN][::-1], len(found) > SHOWN


def of_account(account: Account) -> QuerySet[CommentThread]:
    """Select the threads about tables and entities of an account, the newest first.

    Those about saved queries are the console's: only it knows who may see a query.
    """
    shown = _with_comments().filter(account=account, table__deleted_at=None)
    return shown.exclude(subject=SubjectKind.QUERY).order_by("-pk")


def find(account: Account, pk: int) -> CommentThread | None:
    """Return a thread of an account whose table exists, with its comments."""
    return _with_comments().filter(account=account, pk=pk, table__deleted_at=None).first()


def find_comment(account: Account, pk: int) -> Comment | None:
    """Return an existing comment of an account, on a table that exists."""
    found = Comment.objects.filter(thread__account=account, thread__table__deleted_at=None, deleted_at=None)
    return found.select_related("thread", "thread__table", "thread__account").filter(pk=pk).first()


def subject_of(thread: CommentThread) -> Subject:
    if thread.subject == SubjectKind.ENTITY:
        return Subject(EntityKey(thread.partition_key, thread.row_key))
    return Subject(query=thread.query)


def _with_comments() -> QuerySet[CommentThread]:
    """Select the threads with comments, prefetching the latest ones."""
    shown = Comment.objects.filter(deleted_at=None)
    matching = CommentThread.objects.filter(Exists(shown.filter(thread=OuterRef("pk"))))
    of_thread = F("thread")
    latest = shown.annotate(
        place=Window(RowNumber(), of_thread, order_by="-pk"), total=Window(Count("*"), of_thread)
    )
    latest = latest.filter(place__lte=SHOWN).select_related("author").order_by("pk")
    comments = Prefetch("comments", latest, to_attr="shown")
    return matching.select_related("table", "account").prefetch_related(comments)


# numbers


def count(table: Table, subject: Subject) -> int:
    """Count the comments about a subject in open threads."""
    return count_many(table, [subject]).get(subject, 0)


def count_many(table: Table, subjects: Collection[Subject]) -> dict[Subject, int]:
    """Count the comments in open threads by subject, without subjects that have none; at most one query."""
    if not table.has_comments:
        return {}
    by_digest = {it.digest: it for it in subjects}
    counted = (
        CommentThread.objects.filter(table=table, digest__in=list(by_digest), resolved_at=None)
        .values_list("digest")
        .annotate(number=Count("comments", filter=Q(comments__deleted_at=None)))
        .order_by()
    )
    return {by_digest[bytes(digest)]: number for digest, number in counted if number}


def count_open(table: Table, queries: Sequence[int] = ()) -> int:
    """Count the open threads about a table and its entities, and about these saved queries."""
    found = CommentThread.objects.filter(table=table, resolved_at=None)
    shown = Comment.objects.filter(deleted_at=None, thread=OuterRef("pk"))
    return found.filter(Q(query=None) | Q(query__in=queries)).filter(Exists(shown)).count()
