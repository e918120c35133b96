"""Creation, editing, deletion and resolution of comments, and their undo."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from storage.accounts import locking, quotas
from storage.activity import activity
from storage.activity.activity import ChangedSince
from storage.activity.undoing import check_first, find_table
from storage.comments.content import (
    LONGEST,
    MOST_AT_ONCE,
    RETENTION_DAYS,
    Subject,
    mentioned_names,
)
from storage.comments.subject import CommentVerb
from storage.core.quotas import COMMENTS
from storage.core.verbs import Verb
from storage.domain.access.actor import Actor
from storage.domain.errors import TableNotFound
from storage.domain.refusals import Reason, Refused
from storage.models import Account, Activity, Comment, CommentMention, CommentThread, Membership, Table
from storage.people.members import Person
from storage.sql.django import storable_text

_MINUTE: Final = timedelta(minutes=1)


class CommentRefused(Refused):
    """The comment is refused."""


@transaction.atomic
def begin(
    table: Table, subject: Subject, text: str, *, author: Person, by: Actor
) -> tuple[Comment, Activity]:
    """Begin a thread about a subject; raises CommentRefused, and TableNotFound for a deleted table."""
    text = _check_text(text)
    _check_rate(table, author)
    # locks the table, which no constraint of a thread would keep
    if not Table.objects.filter(pk=table.pk, deleted_at=None).update(has_comments=True):
        raise TableNotFound
    table.has_comments = True
    pk, rk = subject.key or ("", "")
    thread = CommentThread(
        account_id=table.account_id,
        table=table,
        subject=subject.kind,
        partition_key=pk,
        row_key=rk,
        query=subject.query,
        digest=subject.digest,
        created_at=timezone.now(),
    )
    thread.save(force_insert=True)
    return _write(thread, text, author, by)


@transaction.atomic
def reply(thread: CommentThread, text: str, *, author: Person, by: Actor) -> tuple[Comment, Activity]:
    """Add a comment to a thread and reopen it; raises CommentRefused, or ChangedSince if the thread is gone."""
    text = _check_text(text)
    _check_rate(thread.table, author)
    if not CommentThread.objects.filter(pk=thread.pk).update(resolved_at=None, resolved_by=""):
        raise ChangedSince
    return _write(thread, text, author, by)


def _write(thread: CommentThread, text: str, author: Person, by: Actor) -> tuple[Comment, Activity]:
    comment = Comment.objects.create(
        thread=thread,
        author_id=author.pk,
        author_name=author.username,
        text=text,
        created_at=timezone.now(),
    )
    _mention(comment)
    return comment, _record(CommentVerb.CREATE, comment, by)


@transaction.atomic
def edit(comment: Comment, text: str, *, by: Actor) -> Activity | None:
    """Change the text of a comment; return None if it is the same. Raises CommentRefused or ChangedSince."""
    text = _check_text(text)
    quotas.lock_user(comment.author_id or 0)
    fresh = _lock(comment.pk)
    if fresh.deleted_at is not None:
        raise ChangedSince
    if fresh.text == text:
        return None
    lately = Activity.objects.filter(
        account=fresh.thread.account_id,
        at__range=_around_now(),
        verb=CommentVerb.CHANGE,
        actor=storable_text(by.name, 256),
    )
    if lately.count() >= MOST_AT_ONCE:
        raise CommentRefused(Reason.TOO_MANY_COMMENTS_AT_ONCE, most=MOST_AT_ONCE)
    _set_text(fresh, text)
    return _record(CommentVerb.CHANGE, fresh, by)


@transaction.atomic
def delete(comment: Comment, *, by: Actor, undoes: Activity | None = None) -> Activity:
    """Soft-delete a comment; raises ChangedSince if it is deleted already."""
    fresh = _lock(comment.pk)
    if fresh.deleted_at is not None:
        raise ChangedSince
    fresh.deleted_at = timezone.now()
    fresh.save(update_fields=("deleted_at",))
    return _record(CommentVerb.DELETE, fresh, by, undoes)


@transaction.atomic
def resolve(
    thread: CommentThread, *, is_resolved: bool, by: Actor, undoes: Activity | None = None
) -> Activity | None:
    """Resolve or reopen a thread; return None if nothing changed."""
    fresh = CommentThread.objects.select_for_update().select_related(None).filter(pk=thread.pk).first()
    if fresh is None:
        raise ChangedSince
    if (fresh.resolved_at is not None) is is_resolved:
        return None
    fresh.resolved_at = timezone.now() if is_resolved else None
    fresh.resolved_by = storable_text(by.name, 256) if is_resolved else ""
    fresh.save(update_fields=("resolved_at", "resolved_by"))
    verb = CommentVerb.RESOLVE if is_resolved else CommentVerb.REOPEN
    return _record_thread(verb, fresh, by, {}, undoes)


def _lock(pk: int) -> Comment:
    found = Comment.objects.select_for_update(of=("self",)).select_related("thread").filter(pk=pk).first()
    if found is None:
        raise ChangedSince
    return found


def _set_text(comment: Comment, text: str) -> None:
    comment.former_text, comment.text, comment.edited_at = comment.text, text, timezone.now()
    comment.save(update_fields=("former_text", "text", "edited_at"))
    _mention(comment)


def _check_text(text: str) -> str:
    text = storable_text(text.replace("\r\n", "\n"), LONGEST + 1).strip()
    if not text:
        raise CommentRefused(Reason.COMMENT_EMPTY)
    if len(text) > LONGEST:
        raise CommentRefused(Reason.COMMENT_TOO_LONG, most=LONGEST)
    return text


def _around_now() -> tuple[datetime, datetime]:
    """Return now ± one minute; bounded on both sides in case the clock was set back."""
    now = timezone.now()
    return now - _MINUTE, now + _MINUTE


def _check_rate(table: Table, author: Person) -> None:
    """Enforce the rate limit of an author and the comment quota of the account; raises CommentRefused."""
    quotas.lock_user(author.pk)  # before the account, as everywhere
    account = locking.lock(table.account)
    lately = Comment.objects.filter(author_id=author.pk, created_at__range=_around_now())
    if lately.count() >= MOST_AT_ONCE:
        raise CommentRefused(Reason.TOO_MANY_COMMENTS_AT_ONCE, most=MOST_AT_ONCE)
    most = quotas.limit(COMMENTS)
    if Comment.objects.filter(thread__account=account).count() >= most:
        raise CommentRefused(Reason.TOO_MANY_COMMENTS, account=account.name, most=most)


# mentions


def mentionable(account: Account, start: str = "", *, top: int) -> list[str]:
    """Return the first usernames with a prefix that a comment can mention: users with access to the account."""
    found = _with_access(account).filter(username__startswith=start.lower())
    return list(found.order_by("username").values_list("username", flat=True)[:top])


def _with_access(account: Account) -> Any:
    people = apps.get_model(settings.AUTH_USER_MODEL)._default_manager.filter(is_active=True)
    own = Membership.objects.filter(account=account)
    return people.filter(Q(is_admin=True) | Q(pk__in=own.values("user_id")))


def _mention(comment: Comment) -> None:
    """Store the users that a comment mentions; users who have seen an earlier mention in it are not notified again."""
    names = mentioned_names(comment.text)
    people = (
        _with_access(comment.thread.table.account).filter(username__in=names).exclude(pk=comment.author_id)
    )
    user_ids = set(people.values_list("pk", flat=True)) if names else set()
    CommentMention.objects.filter(comment=comment, seen_at=None).exclude(user__in=user_ids).delete()
    CommentMention.objects.bulk_create(
        (CommentMention(comment=comment, user_id=pk) for pk in sorted(user_ids)), ignore_conflicts=True
    )


def mark_seen(user: Person, threads: Sequence[CommentThread]) -> bool:
    """Mark mentions in threads as seen; return whether any was unseen."""
    found = CommentMention.objects.filter(user_id=user.pk, comment__thread__in=threads, seen_at=None)
    return bool(threads) and bool(found.update(seen_at=timezone.now()))


# the activity log, which has no texts: they are deleted with the account


def _record(verb: Verb, comment: Comment, by: Actor, undoes: Activity | None = None) -> Activity:
    detail = {
        "comment": comment.pk,
        "edited_at": "" if comment.edited_at is None else comment.edited_at.isoformat(),
    }
    return _record_thread(verb, comment.thread, by, detail, undoes)


def _record_thread(
    verb: Verb, thread: CommentThread, by: Actor, detail: dict[str, object], undoes: Activity | None
) -> Activity:
    at = "" if thread.resolved_at is None else thread.resolved_at.isoformat()
    more = {"thread": thread.pk, "resolved_at": at} | detail
    return activity.record(verb, by, account=thread.account, table=thread.table, detail=more, undoes=undoes)


@transaction.atomic
def undo(done: Activity, by: Actor) -> Activity | None:
    """Undo an activity on a comment or thread; raises CannotUndo, and ChangedSince if it was changed since."""
    find_table(done)
    check_first(done)
    verb = done.effective_verb
    if verb in (CommentVerb.RESOLVE, CommentVerb.REOPEN):
        return _undo_resolution(done, by)
    comment = _lock(int(done.detail.get("comment", 0)))
    if verb is CommentVerb.CREATE:
        return delete(comment, by=by, undoes=done)
    if verb is CommentVerb.DELETE and comment.deleted_at is not None:
        comment.deleted_at = None
        comment.save(update_fields=("deleted_at",))
        return _record(CommentVerb.CREATE, comment, by, done)
    edited_at = "" if comment.edited_at is None else comment.edited_at.isoformat()
    is_same = edited_at == done.detail.get("edited_at") and comment.deleted_at is None
    if verb is CommentVerb.CHANGE and is_same and comment.former_text is not None:
        _set_text(comment, comment.former_text)
        return _record(CommentVerb.CHANGE, comment, by, done)
    raise ChangedSince


def _undo_resolution(done: Activity, by: Actor) -> Activity | None:
    thread = CommentThread.objects.select_for_update().filter(pk=done.detail.get("thread", 0)).first()
    at = "" if thread is None or thread.resolved_at is None else thread.resolved_at.isoformat()
    if thread is None or at != done.detail.get("resolved_at"):
        raise ChangedSince
    return resolve(thread, is_resolved=done.effective_verb is CommentVerb.REOPEN, by=by, undoes=done)


# keeping


def tidy(now: datetime) -> None:
    """Purge comments deleted long ago, and empty threads."""
    Comment.objects.filter(deleted_at__lt=now - timedelta(days=RETENTION_DAYS)).delete()
    CommentThread.objects.filter(comments=None, created_at__lt=now - timedelta(days=1)).delete()
