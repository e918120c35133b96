"""Pages of the comments on an entity, and on a table with its entities."""

from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from console.comments import presentation
from console.comments.presentation import ShownComment, ShownThread
from console.entities import entity_page as pages
from console.models import SavedQuery
from console.queries.saved import get_query, visible_queries
from console.site.access import account_required, table_page, table_required, user_of
from console.site.addresses import address_of
from console.site.log_page import take_newest
from console.site.responses import render_page, render_part, wants_part
from storage.comments import comments, threads
from storage.comments.content import Subject
from storage.comments.subject import CommentNotice
from storage.domain.access.roles import Capability
from storage.domain.values.etag import write_etag
from storage.domain.values.numbers import read_number
from storage.entities import entities
from storage.models import Account, CommentThread, Table
from storage.notices import evaluation
from storage.rest.lookups import or_404

_MOST_PEOPLE: Final = 8  # that are offered to be mentioned


@require_safe
@table_required(Capability.READ)
def of_entity(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the comments on an entity, even a deleted one."""
    target = pages.find_target(request, table)
    stored = entities.get(table, target.key)
    newest, older = take_newest(
        threads.of_subject(table, Subject(target.key)),
        request.GET.get("before", ""),
        presentation.MOST_LISTED,
    )
    if stored is None and not newest:
        return pages.render_missing(request, target)
    shown = ShownThread.of(reversed(newest), user_of(request))
    _mark_seen(request, shown)
    context = {
        "table": table,
        "entity_key": target.key,
        "exists": stored is not None,
        "etag": "" if stored is None else write_etag(stored.timestamp),
        "tabs": [tab for tab in pages.tab_links(target, "comments") if stored is not None or tab[2]],
        "threads": [it for it in shown if it.thread.resolved_at is None],
        "resolved": [it for it in shown if it.thread.resolved_at is not None],
        "older": "" if older is None else target.address("comments:entity", before=str(older)),
        "address": target.address(),
        "table_address": target.table_address,
        "changed_address": target.address("history:changed"),
        "in_drawer": wants_part(request),
        **presentation.form_context(request, table),
    }
    return render_page(request, "console/comments/entity.html", context)


@require_safe
@table_page(Capability.READ)
def of_table(request: HttpRequest, table: Table) -> HttpResponse:
    """Show the open or resolved comments on a table and its entities, or on the saved query ``q``."""
    query = _find_query(request, table)
    is_resolved = request.GET.get("state") == "resolved"
    shown, older = presentation.read_table_threads(request, table, query, is_resolved=is_resolved)
    _mark_seen(request, shown)
    page = "comments:table", table.account.name, table.name
    state = {"q": "" if query is None else query.slug, "state": "resolved" if is_resolved else ""}
    context: dict[str, Any] = {
        "table": table,
        "query": query,
        "threads": shown,
        "older": "" if older is None else address_of(*page, **state, before=older),
        "is_resolved": is_resolved,
        "is_beside_tabs": True,
        **presentation.form_context(request, table),
    }
    return render(request, "console/comments/table.html", context)


@require_safe
@table_page(Capability.READ)
def earlier(request: HttpRequest, table: Table, number: int) -> HttpResponse:
    """Show the comments of a thread before a given one."""
    discussion, before = threads.find(table.account, number), read_number(request.GET.get("before", ""))
    if discussion is None or discussion.table_id != table.pk or before is None:
        raise Http404
    if discussion.query is not None:
        find_query_of(request, discussion)
    comments, has_more = threads.earlier(discussion, before)
    reader = user_of(request)
    context: dict[str, Any] = {
        "table": table,
        "thread": discussion,
        "comments": [ShownComment(it, reader) for it in comments],
        "earlier": presentation.earlier_address(discussion, comments[0]) if has_more else "",
        "back": "table" if request.GET.get("back") == "table" else "",
        **presentation.form_context(request, table),
    }
    return render_part(request, "console/comments/earlier.html", "_comments.html", context)


@require_safe
@account_required(Capability.READ)
def thread(request: HttpRequest, account: Account, number: str) -> HttpResponse:
    """Redirect to the page that shows a thread, as linked from notices."""
    discussion = or_404(threads.find(account, read_number(number) or 0))
    query = find_query_of(request, discussion) if discussion.query is not None else None
    return redirect(f"{presentation.subject_address(discussion, query)}#thread-{discussion.pk}")


@require_safe
@account_required(Capability.READ)
def people(request: HttpRequest, account: Account) -> HttpResponse:
    """Suggest users to mention, by the start of their names."""
    found = comments.mentionable(account, request.GET.get("q", "")[:150], top=_MOST_PEOPLE)
    return render(request, "console/comments/_people.html", {"names": found})


def _find_query(request: HttpRequest, table: Table) -> SavedQuery | None:
    slug = request.GET.get("q", "")
    query = get_query(request, table.account, table.folded_name, slug) if slug else None
    if query is not None and not query.is_shared:
        raise Http404
    return query


def find_query_of(request: HttpRequest, thread: CommentThread) -> SavedQuery:
    """Return the saved query of a thread; raises Http404 if the user may not see it."""
    queries = visible_queries(user_of(request), [thread.account_id]).filter(is_shared=True)
    return get_object_or_404(queries, pk=thread.query or 0)


def _mark_seen(request: HttpRequest, shown: list[ShownThread]) -> None:
    if presentation.mark_seen(request, shown):
        evaluation.evaluate_kind(CommentNotice.MENTION, timezone.now())
