"""Read threads of comments: of a subject, of a table or account, and how many entities of a page have."""

from collections.abc import Collection, Sequence

from django.db.models import Count, Exists, OuterRef, Prefetch, Q, QuerySet

from storage.domain.entities.entity import EntityKey
from storage.domain.service.comments import Subject, SubjectKind
from storage.models import Account, Comment, CommentThread, Table


def of_subject(table: Table, subject: Subject) -> list[CommentThread]:
    """Return the threads about a subject with their comments, the oldest first; at most 200."""
    found = _with_comments().filter(table=table, digest=subject.digest, subject=subject.kind)
    return list(found.order_by("pk")[:200])


def of_table(table: Table) -> QuerySet[CommentThread]:
    """Select the threads about a table and what is in it, the newest first."""
    return _with_comments().filter(table=table).order_by("-pk")


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
    """Return a comment of an account that is not deleted, and whose table is not either."""
    found = Comment.objects.filter(thread__account=account, thread__table__deleted_at=None, deleted_at=None)
    return found.select_related("thread", "thread__table", "thread__account").filter(pk=pk).first()


def subject_of(thread: CommentThread) -> Subject:
    if thread.subject == SubjectKind.ENTITY:
        return Subject(EntityKey(thread.partition_key, thread.row_key))
    return Subject(query=thread.query)


def _with_comments() -> QuerySet[CommentThread]:
    """Select the threads that have a comment, with them, the oldest first."""
    shown = Comment.objects.filter(deleted_at=None).order_by("pk")
    found = CommentThread.objects.filter(Exists(shown.filter(thread=OuterRef("pk")).order_by()))
    comments = Prefetch("comments", shown.select_related("author"), to_attr="shown")
    return found.select_related("table", "account").prefetch_related(comments)


# numbers


def count(table: Table, subject: Subject) -> int:
    """Return how many comments there are about a subject, without those of resolved threads."""
    return count_many(table, [subject]).get(subject, 0)


def count_many(table: Table, subjects: Collection[Subject]) -> dict[Subject, int]:
    """Return the numbers of comments about subjects that have some in open threads, by one query at most."""
    if not table.has_comments:
        return {}
    by_digest = {it.digest: it for it in subjects}
    found = (
        CommentThread.objects.filter(table=table, digest__in=list(by_digest), resolved_at=None)
        .values_list("digest")
        .annotate(number=Count("comments", filter=Q(comments__deleted_at=None)))
        .order_by()
    )
    return {by_digest[bytes(digest)]: number for digest, number in found if number}


def count_open(table: Table, queries: Sequence[int] = ()) -> int:
    """Return how many open threads there are about a table and what is in it, of queries only about these."""
    found = CommentThread.objects.filter(table=table, resolved_at=None)
    shown = Comment.objects.filter(deleted_at=None, thread=OuterRef("pk"))
    return found.filter(Q(query=None) | Q(query__in=queries)).filter(Exists(shown)).count()
