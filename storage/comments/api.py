"""Comments on the tables and entities of an account."""

from collections.abc import Callable, Mapping
from typing import ClassVar, TypeVar

from django.http import Http404
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.activity.activity import ChangedSince
from storage.comments import comments, serializers, threads
from storage.comments.comments import CommentRefused
from storage.comments.content import Subject, SubjectKind
from storage.comments.subject import CommentNotice
from storage.domain.access.roles import Capability
from storage.domain.entities.entity import EntityKey
from storage.domain.refusals import Reason
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.entities import entities
from storage.models import ApiToken, Comment, CommentThread
from storage.notices import evaluation
from storage.rest import access, problems
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.paging import PageParameters, take_page
from storage.rest.problems import FieldError, Problem, invalid
from storage.rest.routing import ACCOUNT, TABLE, api_path
from storage.rest.views import AccountScopedViewSet

T = TypeVar("T")
_WRITES = frozenset({"create", "reply", "resolve", "edit", "destroy"})


class CommentViewSet(AccountScopedViewSet):
    """Comments in the API; viewers may comment, but not with a read-only token."""

    tag = "Comments"
    capabilities: ClassVar[Mapping[str, Capability]] = dict.fromkeys(
        ("index", "retrieve", "replies", *_WRITES), Capability.READ
    )

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        if self.action in _WRITES:
            access.check_scope(token, Capability.WRITE)
        super().resolve_target(token, capability)

    @operation(
        "list_comments",
        "List threads of comments",
        "Those about tables and entities, the newest first. Threads about saved queries are in the console only.",
        answer=page_of(serializers.ThreadSerializer),
        query=serializers.ThreadParameters,
    )
    def index(self, request: Request, account: str) -> Response:
        parameters = self.read_query()
        matching = threads.of_account(self.account)
        if parameters["table"]:
            folded = fold_table_name(parameters["table"], AccountKind(self.account.kind))
            matching = matching.filter(table__folded_name=folded)
        if parameters["state"] != "all":
            matching = matching.filter(resolved_at__isnull=parameters["state"] == "open")
        return self.answer_newest(matching)

    @operation(
        "create_comment",
        "Comment on a table or an entity",
        "Begins a thread about the table or, with `partition_key` and `row_key`, about an entity.",
        body=serializers.NewThreadSerializer,
        answer=serializers.ThreadSerializer,
        is_creation=True,
        problems=[problems.NOT_FOUND, problems.CONFLICT, problems.TOO_MANY],
        example={"text": "@ada is this price right?", "partition_key": "books", "row_key": "0815"},
    )
    def create(self, request: Request, account: str, table: str) -> Response:
        body, target = self.read_body(), self.table()
        subject = Subject(self._read_key(body))
        if subject.key is not None and entities.get(target, subject.key) is None:
            raise Problem(problems.NOT_FOUND, "There is no entity with this key.")
        made = self._write(
            lambda: comments.begin(target, subject, body["text"], author=self.token.user, by=self.by)
        )[0]
        return self.answer_created(serializers.with_first(made.thread, made), is_new=True)

    @operation("get_comments", "Get a thread of comments", answer=serializers.ThreadSerializer)
    def retrieve(self, request: Request, account: str, thread: int) -> Response:
        return self.answer(self._find(thread))

    @operation(
        "list_replies",
        "List the comments of a thread",
        "All of them, the oldest first.",
        answer=page_of(serializers.CommentSerializer),
        query=PageParameters,
    )
    def replies(self, request: Request, account: str, thread: int) -> Response:
        parameters, shown = self.read_query(), threads.comments_of(self._find(thread))
        after = self.read_number_cursor(parameters["cursor"])
        if after is not None:
            shown = shown.filter(pk__gt=after)
        rows = list(shown[: parameters["limit"] + 1])
        return self.answer_page(take_page(rows, parameters["limit"], lambda it: str(it.pk)))

    @operation(
        "reply_to_comments",
        "Reply in a thread",
        "A thread that was resolved is open again.",
        body=serializers.TextSerializer,
        answer=serializers.CommentSerializer,
        is_creation=True,
        problems=[problems.CONFLICT, problems.TOO_MANY],
        example={"text": "Yes, it is."},
    )
    def reply(self, request: Request, account: str, thread: int) -> Response:
        found, text = self._find(thread), self.read_body()["text"]
        made = self._write(lambda: comments.reply(found, text, author=self.token.user, by=self.by))[0]
        return self.answer_created(made, is_new=True)

    @operation(
        "resolve_comments",
        "Resolve or reopen a thread",
        body=serializers.ResolutionSerializer,
        answer=serializers.ThreadSerializer,
        example={"resolved": True},
    )
    def resolve(self, request: Request, account: str, thread: int) -> Response:
        found, is_resolved = self._find(thread), self.read_body()["resolved"]
        self._write(lambda: comments.resolve(found, is_resolved=is_resolved, by=self.by))
        return self.answer(self._find(thread))

    @operation(
        "edit_comment",
        "Change a comment",
        "Only its author can.",
        body=serializers.TextSerializer,
        answer=serializers.CommentSerializer,
        problems=[problems.TOO_MANY],
        example={"text": "Yes, it is, since May."},
    )
    def edit(self, request: Request, account: str, thread: int, comment: int) -> Response:
        found, text = self._find_own(thread, comment), self.read_body()["text"]
        self._write(lambda: comments.edit(found, text, by=self.by))
        return self.answer(self._find_own(thread, comment))

    @operation("delete_comment", "Delete a comment", "Only its author can.")
    def destroy(self, request: Request, account: str, thread: int, comment: int) -> Response:
        found = self._find_own(thread, comment)
        self._write(lambda: comments.delete(found, by=self.by))
        return Response(status=204)

    def _read_key(self, body: Mapping[str, str]) -> EntityKey | None:
        missing = {"partition_key", "row_key"} - body.keys()
        if len(missing) == 1:
            detail = "An entity has both keys."
            raise Problem(problems.INVALID, errors=[FieldError(detail, f"/{missing.pop()}")])
        return None if missing else EntityKey(body["partition_key"], body["row_key"])

    def _write(self, act: Callable[[], T]) -> T:
        try:
            done = act()
        except ChangedSince:
            raise Http404 from None
        except CommentRefused as refused:
            raise _problem(refused) from None
        evaluation.evaluate_kind(CommentNotice.MENTION, timezone.now())
        return done

    def _find(self, pk: int) -> CommentThread:
        found = threads.find(self.account, pk)
        if found is None or found.subject == SubjectKind.QUERY:
            raise Http404
        return found

    def _find_own(self, thread: int, pk: int) -> Comment:
        self._find(thread)
        comment = threads.find_comment(self.account, pk)
        if comment is None or comment.thread_id != thread:
            raise Http404
        if comment.author_id != self.token.user.pk:
            raise Problem(problems.FORBIDDEN, "Only its author can change or delete a comment.")
        return comment


def _problem(refused: CommentRefused) -> Problem:
    match refused.refusal.reason:
        case Reason.TOO_MANY_COMMENTS_AT_ONCE:
            return Problem(problems.TOO_MANY, str(refused), headers={"Retry-After": "60"})
        case Reason.TOO_MANY_COMMENTS:
            return Problem(problems.CONFLICT, str(refused))
    return invalid(str(refused), "/text")


urlpatterns = [
    api_path(f"{ACCOUNT}/comments", CommentViewSet, "comments", get="index"),
    api_path(f"{TABLE}/comments", CommentViewSet, "table-comments", post="create"),
    api_path(f"{ACCOUNT}/comments/<int:thread>", CommentViewSet, "thread", get="retrieve", patch="resolve"),
    api_path(
        f"{ACCOUNT}/comments/<int:thread>/replies",
        CommentViewSet,
        "replies",
        get="replies",
        post="reply",
    ),
    api_path(
        f"{ACCOUNT}/comments/<int:thread>/replies/<int:comment>",
        CommentViewSet,
        "reply",
        patch="edit",
        delete="destroy",
    ),
]
