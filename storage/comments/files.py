"""Comments in account files, with authors by name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, datetime
from typing import Any, Final

from storage.accounts import quotas
from storage.comments import threads
from storage.comments.content import LONGEST, Subject, SubjectKind
from storage.core.quotas import COMMENTS
from storage.domain.entities.entity import EntityKey
from storage.domain.refusals import Reason
from storage.models import Comment, CommentThread, Table
from storage.sql.django import storable_text

_AT_ONCE: Final = 500  # comments of a line


@dataclass(frozen=True, slots=True)
class Written:
    """Comment in a file; its author is a name, not a user."""

    author: str
    text: str
    created_at: datetime
    edited_at: datetime | None


@dataclass(frozen=True, slots=True)
class Thread:
    """Thread in a file, or a part of a long one; ``continues`` marks a continuation of the previous part."""

    subject: Subject
    created_at: datetime
    resolved_at: datetime | None
    resolved_by: str
    comments: tuple[Written, ...]
    continues: bool = False


class CommentLines:
    """The lines of threads: see TableLines in storage.account_files.account_files."""

    name = "thread"

    def __init__(self) -> None:
        self.most = quotas.limit(COMMENTS)
        self.too_many = Reason.FILE_COMMENTS.of(most=self.most)

    def write(self, table: Table) -> Iterator[dict[str, Any]]:
        return write_threads(table)

    def read(self, found: Mapping[str, Any]) -> Thread:
        return read_thread(found)

    def count(self, item: Thread) -> int:
        return len(item.comments)

    def add(self, table: Table, items: Iterable[Thread]) -> None:
        add(table, items)


def write_threads(table: Table) -> Iterator[dict[str, Any]]:
    """Yield the threads about a table and its entities as JSON, oldest first; long threads are split into parts."""
    if not table.has_comments:
        return
    stored = threads.of_table(table).exclude(subject=SubjectKind.QUERY).order_by("pk")
    for thread in stored.iterator(chunk_size=500):
        key = threads.subject_of(thread).key
        written = {
            "key": None if key is None else list(key),
            "created_at": _write_time(thread.created_at),
            "resolved_at": _write_time(thread.resolved_at),
            "resolved_by": thread.resolved_by,
        }
        for place, part in enumerate(_parts(thread)):
            yield {
                **written,
                "comments": [
                    {
                        "author": it.author_name,
                        "text": it.text,
                        "created_at": _write_time(it.created_at),
                        "edited_at": _write_time(it.edited_at),
                    }
                    for it in part
                ],
                **({"continues": True} if place else {}),
            }


def _parts(thread: CommentThread) -> Iterator[Sequence[Comment]]:
    """Split the comments of a thread into parts that fit on a line."""
    shown: list[Comment] = thread.shown  # type: ignore[attr-defined]
    if threads.count_earlier(thread) == 0:
        yield shown
        return
    last = 0
    while part := list(threads.comments_of(thread).filter(pk__gt=last)[:_AT_ONCE]):
        yield part
        last = part[-1].pk


def read_thread(content: Mapping[str, Any]) -> Thread:
    """Parse a thread from JSON; raises ValueError, LookupError or TypeError if it is invalid."""
    return Thread(
        Subject(None if content["key"] is None else EntityKey(*map(_read_key, content["key"]))),
        _read_time(content["created_at"]),
        None if content["resolved_at"] is None else _read_time(content["resolved_at"]),
        _read_text(content["resolved_by"], 256),
        tuple(
            Written(
                _read_text(it["author"], 256),
                _read_text(it["text"], LONGEST),
                _read_time(it["created_at"]),
                None if it["edited_at"] is None else _read_time(it["edited_at"]),
            )
            for it in content["comments"]
        ),
        continues=content.get("continues") is True,
    )


def add(table: Table, read: Iterable[Thread]) -> None:
    """Store parsed threads, in the caller's transaction."""
    thread = None
    for it in read:
        if thread is None or not it.continues:
            thread = _add_thread(table, it)
        Comment.objects.bulk_create(
            Comment(
                thread=thread,
                author_name=written.author,
                text=written.text,
                created_at=written.created_at,
                edited_at=written.edited_at,
            )
            for written in it.comments
        )
        table.has_comments = True
    if table.has_comments:
        table.save(update_fields=("has_comments",))


def _add_thread(table: Table, read: Thread) -> CommentThread:
    pk, rk = read.subject.key or ("", "")
    return CommentThread.objects.create(
        account_id=table.account_id,
        table=table,
        subject=read.subject.kind,
        partition_key=pk,
        row_key=rk,
        digest=read.subject.digest,
        created_at=read.created_at,
        resolved_at=read.resolved_at,
        resolved_by=read.resolved_by,
    )


def _write_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _read_time(text: Any) -> datetime:
    """Parse a time that is representable in any time zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or not MINYEAR < moment.year < MAXYEAR:
        raise ValueError
    return moment


def _read_text(text: Any, most: int) -> str:
    if not isinstance(text, str) or storable_text(text, most) != text:
        raise ValueError
    return text


def _read_key(text: Any) -> str:
    return _read_text(text, 2048)
