"""Comment threads for display: subject, text with links and mentions, and the permitted actions."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

from django.http import HttpRequest
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.entities.entity_page import EntityTarget
from console.grid.markup import EntityMark
from console.models import SavedQuery, User
from console.queries.saved import visible_queries
from console.site.access import user_of
from console.site.addresses import address_of, path_of
from console.site.log_page import take_newest
from storage.comments import comments, threads
from storage.comments.content import LONGEST, Subject, SubjectKind, split_mentions
from storage.domain.entities.entity import EntityKey
from storage.models import Comment, CommentThread, Table

_DRAFT: Final = "comment"  # in the session
MOST_LISTED: Final = 100  # threads on a page
# an address ends before the mark that ends its sentence
_LINK: Final = re.compile(r"https?://[^\s<>\"']*[^\s<>\"'.,;:!?)\]]", re.IGNORECASE)


@dataclass(frozen=True)
class ShownComment:
    """A comment for a reader."""

    comment: Comment
    reader: User

    @property
    def is_own(self) -> bool:
        return self.comment.author_id == self.reader.pk

    @cached_property
    def text(self) -> SafeString:
        return draw_text(self.comment.text)


@dataclass(frozen=True)
class ShownThread:
    """A thread for a reader; ``query`` is the saved query that it is about."""

    thread: CommentThread
    reader: User
    query: SavedQuery | None = None

    @property
    def comments(self) -> list[ShownComment]:
        shown: list[Comment] = self.thread.shown  # type: ignore[attr-defined]  # storage.comments.threads
        return [ShownComment(it, self.reader) for it in shown]

    @property
    def earlier(self) -> str:
        """The address of the comments before these; empty if there are none."""
        if not threads.count_earlier(self.thread):
            return ""
        return earlier_address(self.thread, self.comments[0].comment)

    @property
    def is_about_entity(self) -> bool:
        return self.thread.subject == SubjectKind.ENTITY

    @property
    def key(self) -> tuple[str, str]:
        return self.thread.partition_key, self.thread.row_key

    @property
    def address(self) -> str:
        """The page of its subject."""
        return subject_address(self.thread, self.query)

    @classmethod
    def of(cls, found: Iterable[CommentThread], reader: User, query: SavedQuery | None = None) -> list[Self]:
        return [cls(it, reader, query) for it in found]


def entity_tabs(target: EntityTarget) -> list[tuple[str, str, str]]:
    """Return the name, the label and the address of the tab beside an entity."""
    number = threads.count(target.table, Subject(target.key))
    label = f"{_('Comments')} ({number})" if number else _("Comments")
    return [("comments", label, target.address("comments:entity"))]


def mark_entities(table: Table, keys: Iterable[EntityKey]) -> dict[EntityKey, EntityMark]:
    """Return the number of comments of each entity that has some."""
    numbers = threads.count_many(table, [Subject(key) for key in keys])
    return {
        subject.key: EntityMark(
            number, ngettext("%(number)d comment", "%(number)d comments", number) % {"number": number}
        )
        for subject, number in numbers.items()
        if subject.key is not None
    }


def draw_text(text: str) -> SafeString:
    """Escape a text and mark its addresses and mentions; its line breaks are kept by a style."""
    drawn, end = [], 0
    for link in _LINK.finditer(text):
        drawn.append(_draw_plain(text[end : link.start()]))
        drawn.append(format_html('<a href="{0}" rel="nofollow noopener noreferrer">{0}</a>', link.group()))
        end = link.end()
    drawn.append(_draw_plain(text[end:]))
    return mark_safe("".join(drawn))  # noqa: S308  each part was escaped


def _draw_plain(text: str) -> str:
    return "".join(
        format_html('<b class="mention">{}</b>', piece) if is_mention else conditional_escape(piece)
        for piece, is_mention in split_mentions(text)
    )


def subject_address(thread: CommentThread, query: SavedQuery | None = None) -> str:
    """Return the page where a thread is shown."""
    subject = threads.subject_of(thread)
    if subject.key is not None:
        return EntityTarget(thread.table, subject.key).address("comments:entity")
    slug = "" if query is None else query.slug
    return address_of("comments:table", thread.account.name, thread.table.name, q=slug)


def earlier_address(thread: CommentThread, before: Comment) -> str:
    path = path_of("comments:earlier", thread.account.name, thread.table.name, str(thread.pk))
    return f"{path}?before={before.pk}"


# the comments of a table


def read_table_threads(
    request: HttpRequest, table: Table, query: SavedQuery | None, *, is_resolved: bool
) -> tuple[list[ShownThread], int | None]:
    """Return the threads of a table that a reader may see, or of a query, as take_newest does."""
    reader = user_of(request)
    queries = {it.pk: it for it in shared_queries(reader, table)} if query is None else {query.pk: query}
    selected = threads.of_table(table).filter(resolved_at__isnull=not is_resolved)
    if query is None:
        selected = selected.exclude(subject=SubjectKind.QUERY) | selected.filter(query__in=list(queries))
    else:
        selected = selected.filter(query=query.pk)
    page, older = take_newest(selected, request.GET.get("before", ""), MOST_LISTED)
    return [ShownThread(it, reader, queries.get(it.query or 0)) for it in page], older


def shared_queries(reader: User, table: Table) -> Sequence[SavedQuery]:
    """Return the queries whose comments a reader may see: what is private is not talked about."""
    found = visible_queries(reader, [table.account_id]).filter(table_name=table.folded_name, is_shared=True)
    return list(found)


def mark_seen(request: HttpRequest, shown: Iterable[ShownThread]) -> bool:
    """Note that the reader has seen threads; return whether a mention was among them."""
    return comments.mark_seen(user_of(request), [it.thread for it in shown])


def keep_draft(request: HttpRequest, text: str) -> None:
    """Keep a text that was refused for the form that is shown next."""
    request.session[_DRAFT] = text[:LONGEST]


def form_context(request: HttpRequest, table: Table) -> dict[str, Any]:
    """Return what the form of a comment needs."""
    return {
        "text": request.session.pop(_DRAFT, ""),
        "longest": LONGEST,
        "people_address": path_of("comments:people", table.account.name),
        "add_address": path_of("comments:add", table.account.name, table.name),
    }


def table_address(table: Table) -> str:
    return path_of("comments:table", table.account.name, table.name)
