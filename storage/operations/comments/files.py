"""Comments in the file of an account: those on its tables and entities, by the names of their authors.

Users are another server's, so authors are names only, and mentions there have no readers.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from storage.domain.entities.entity import EntityKey
from storage.domain.service.comments import LONGEST, Subject, SubjectKind
from storage.models import Comment, CommentThread, Table
from storage.operations.comments import threads
from storage.sql.django import storable_text


@dataclass(frozen=True, slots=True)
class Written:
    """A comment; it has no author here."""

    author: str
    text: str
    created_at: datetime
    edited_at: datetime | None


@dataclass(frozen=True, slots=True)
class Thread:
    subject: Subject
    created_at: datetime
    resolved_at: datetime | None
    resolved_by: str
    comments: tuple[Written, ...]


def write_threads(table: Table) -> Iterator[dict[str, Any]]:
    """Yield the threads about a table and its entities, the oldest first, as JSON."""
    if not table.has_comments:
        return
    found = threads.of_table(table).exclude(subject=SubjectKind.QUERY).order_by("pk")
    for thread in found.iterator(chunk_size=500):
        key = threads.subject_of(thread).key
        yield {
            "key": None if key is None else list(key),
            "created_at": _write_time(thread.created_at),
            "resolved_at": _write_time(thread.resolved_at),
            "resolved_by": thread.resolved_by,
            "comments": [
                {
                    "author": it.author_name,
                    "text": it.text,
                    "created_at": _write_time(it.created_at),
                    "edited_at": _write_time(it.edited_at),
                }
                for it in thread.shown  # type: ignore[attr-defined]
            ],
        }


def read_thread(found: Mapping[str, Any]) -> Thread:
    """Read what was written; raises ValueError, LookupError or TypeError for anything else."""
    return Thread(
        Subject(None if found["key"] is None else EntityKey(*map(_read_key, found["key"]))),
        _read_time(found["created_at"]),
        None if found["resolved_at"] is None else _read_time(found["resolved_at"]),
        _read_text(found["resolved_by"], 256),
        tuple(
            Written(
                _read_text(it["author"], 256),
                _read_text(it["text"], LONGEST),
                _read_time(it["created_at"]),
                None if it["edited_at"] is None else _read_time(it["edited_at"]),
            )
            for it in found["comments"]
        ),
    )


def add(table: Table, found: Iterable[Thread]) -> None:
    """Store threads that were read, in the caller's transaction."""
    for it in found:
        pk, rk = it.subject.key or ("", "")
        thread = CommentThread.objects.create(
            account_id=table.account_id,
            table=table,
            subject=it.subject.kind,
            partition_key=pk,
            row_key=rk,
            digest=it.subject.digest,
            created_at=it.created_at,
            resolved_at=it.resolved_at,
            resolved_by=it.resolved_by,
        )
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


def _write_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _read_time(text: Any) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError
    return found


def _read_text(text: Any, most: int) -> str:
    if not isinstance(text, str) or storable_text(text, most) != text:
        raise ValueError
    return text


def _read_key(text: Any) -> str:
    return _read_text(text, 2048)
