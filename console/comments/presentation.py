"""Comment threads for display: subject, text with links and mentions, and the permitted actions."""

import re
from collections.abc import Iterable, Mapping, Sequence
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
    """Comment for display."""

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
    """Thread for display; ``query`` is the saved query it is about, if any."""

    thread: CommentThread
    reader: User
    query: SavedQuery | None = None

    @property
    def comments(self) -> list[ShownComment]:
        shown: list[Comment] = self.thread.shown  # type: ignore[attr-defined]  # storage.comments.threads
        return [ShownComment(it, self.reader) for it in shown]

    @property
    def earlier(self) -> str:
        """Return the address of earlier comments; empty if there are none."""
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
        """Return the address of the subject's page."""
        return subject_address(self.thread, self.query)

    @classmethod
    def of(cls, found: Iterable[CommentThread], reader: User, query: SavedQuery | None = None) -> list[Self]:
        return [cls(it, reader, query) for it in found]


def entity_tabs(target: EntityTarget) -> list[tuple[str, str, str]]:
    """Return name, label and address of the comments tab of an entity."""
    number = threads.count(target.table, Subject(target.key))
    label = f"{_('Comments')} ({number})" if number else _("Comments")
    return [("comments", label, target.address("comments:entity"))]


def count_open_threads(context: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of open threads for the link beside a table's name."""
    table = context["frame"].table
    return {"open_threads": threads.count_open(table) if table.has_comments else 0}


def mark_entities(table: Table, keys: Iterable[EntityKey]) -> dict[EntityKey, EntityMark]:
    """Return the number of comments by entity, for entities that have any."""
    numbers = threads.count_many(table, [Subject(key) for key in keys])
    return {
        subject.key: EntityMark(
            number, ngettext("%(number)d comment", "%(number)d comments", number) % {"number": number}
        )
        for subject, number in numbers.items()
        if subject.key is not None
    }


def draw_text(text: str) -> SafeString:
    """Escape a text and link its URLs and mentions; CSS keeps its line breaks."""
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
    """Return the address of the page that shows a thread."""
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
    """Return the visible threads of a table or query as a page, like take_newest."""
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
    """Return the shared queries of a table, as private ones have no comments."""
    found = visible_queries(reader, [table.account_id]).filter(table_name=table.folded_name, is_shared=True)
    return list(found)


def mark_seen(request: HttpRequest, shown: Iterable[ShownThread]) -> bool:
    """Mark threads as seen; return whether they contained an unseen mention."""
    return comments.mark_seen(user_of(request), [it.thread for it in shown])


def keep_draft(request: HttpRequest, text: str) -> None:
    """Keep a refused comment in the session for the next rendering of the form."""
    request.session[_DRAFT] = text[:LONGEST]


def form_context(request: HttpRequest, table: Table) -> dict[str, Any]:
    """Return the template context of the comment form."""
    return {
        "text": request.session.pop(_DRAFT, ""),
        "longest": LONGEST,
        "people_address": path_of("comments:people", table.account.name),
        "add_address": path_of("comments:add", table.account.name, table.name),
    }


def table_address(table: Table) -> str:
    return path_of("comments:table", table.account.name, table.name)
