"""Creation, editing, deletion and resolution of comments; each returns to the thread's page."""

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from console.comments import presentation
from console.comments.views.discussions import find_query_of
from console.grid import tokens
from console.queries.saved import get_query
from console.site.access import account_required, actor_of, table_required, user_of
from console.site.refusals import describe_refusal
from console.site.responses import see_other
from console.site.toasts import notify_error, notify_success
from storage.activity.activity import ChangedSince
from storage.comments import comments, threads
from storage.comments.content import Subject
from storage.comments.subject import CommentNotice
from storage.domain.access.roles import Capability
from storage.domain.refusals import Refused
from storage.entities import entities
from storage.models import Account, Activity, Comment, CommentThread, Table
from storage.notices import evaluation
from storage.rest.lookups import or_404


@require_POST
@table_required(Capability.READ)
def add(request: HttpRequest, table: Table) -> HttpResponse:
    """Begin a thread about the entity, saved query or table in the form."""
    subject, back = _read_subject(request, table)
    text, author, by = request.POST.get("text", ""), user_of(request), actor_of(request)

    def act() -> Activity:
        return comments.begin(table, subject, text, author=author, by=by)[1]

    return _do(request, act, _("Commented"), back)


@require_POST
@account_required(Capability.READ)
def reply(request: HttpRequest, account: Account, number: int) -> HttpResponse:
    thread = _find_thread(request, account, number)
    text, author, by = request.POST.get("text", ""), user_of(request), actor_of(request)

    def act() -> Activity:
        return comments.reply(thread, text, author=author, by=by)[1]

    return _do(request, act, _("Commented"), _back(request, thread))


@require_POST
@account_required(Capability.READ)
def resolve(request: HttpRequest, account: Account, number: int) -> HttpResponse:
    """Resolve a thread, or reopen it if ``resolved`` is 0."""
    thread, is_resolved = _find_thread(request, account, number), request.POST.get("resolved", "1") != "0"

    def act() -> Activity | None:
        return comments.resolve(thread, is_resolved=is_resolved, by=actor_of(request))

    text = _("Resolved the thread") if is_resolved else _("Reopened the thread")
    return _do(request, act, text, _back(request, thread))


@require_POST
@account_required(Capability.READ)
def edit(request: HttpRequest, account: Account, number: int) -> HttpResponse:
    comment = _find_own(request, account, number)

    def act() -> Activity | None:
        return comments.edit(comment, request.POST.get("text", ""), by=actor_of(request))

    return _do(request, act, _("Changed the comment"), _back(request, comment.thread))


@require_POST
@account_required(Capability.READ)
def delete(request: HttpRequest, account: Account, number: int) -> HttpResponse:
    comment = _find_own(request, account, number)

    def act() -> Activity:
        return comments.delete(comment, by=actor_of(request))

    return _do(request, act, _("Deleted the comment"), _back(request, comment.thread))


def _do(request: HttpRequest, act: Callable[[], Activity | None], text: str, back: str) -> HttpResponse:
    try:
        done = act()
    except ChangedSince:
        notify_error(request, _("The comment was deleted meanwhile."))
    except Refused as refused:
        notify_error(request, describe_refusal(refused))
        presentation.keep_draft(request, request.POST.get("text", ""))
    else:
        if done is not None:
            notify_success(request, text, undo=done)
        evaluation.evaluate_kind(CommentNotice.MENTION, timezone.now())
    return see_other(back)


def _read_subject(request: HttpRequest, table: Table) -> tuple[Subject, str]:
    """Return the subject of a new thread and its page; raises Http404."""
    slug, token = request.POST.get("q", ""), request.POST.get("key", "")
    if token:
        key = tokens.decode_key(token)
        subject = Subject(key)
        # a comment on what was deleted meanwhile is not lost: the thread is shown where others are already
        if key is None or (
            entities.get(table, key) is None and not threads.of_subject(table, subject).exists()
        ):
            raise Http404
        return subject, presentation.subject_address(_thread_about(table, subject))
    if slug:
        query = get_query(request, table.account, table.folded_name, slug)
        if not query.is_shared:
            raise Http404
        subject = Subject(query=query.pk)
        return subject, presentation.subject_address(_thread_about(table, subject), query)
    return Subject(), presentation.subject_address(_thread_about(table, Subject()))


def _thread_about(table: Table, subject: Subject) -> CommentThread:
    pk, rk = subject.key or ("", "")
    return CommentThread(
        account=table.account,
        table=table,
        subject=subject.kind,
        partition_key=pk,
        row_key=rk,
        query=subject.query,
    )


def _find_thread(request: HttpRequest, account: Account, number: int) -> CommentThread:
    thread = or_404(threads.find(account, number))
    if thread.query is not None:
        find_query_of(request, thread)
    return thread


def _find_own(request: HttpRequest, account: Account, number: int) -> Comment:
    found = threads.find_comment(account, number)
    if found is None or found.author_id != user_of(request).pk:
        raise Http404
    return found


def _back(request: HttpRequest, thread: CommentThread) -> str:
    """Return the page to return to: the table's or the thread's."""
    query = find_query_of(request, thread) if thread.query is not None else None
    if request.POST.get("back") == "table":
        path = presentation.table_address(thread.table)
        return f"{path}#thread-{thread.pk}"
    return presentation.subject_address(thread, query)
