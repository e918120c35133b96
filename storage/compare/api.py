"""Comparison of accounts and tables in the management API, and its application."""

from collections.abc import Generator
from itertools import islice
from typing import Any, Final

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from storage.accounts import quotas
from storage.compare import applying, comparing, serializers, sides
from storage.compare.applying import CannotApply, Selection, Target
from storage.compare.comparing import ComparedTable, Comparison
from storage.compare.side_names import SideName
from storage.compare.sides import Side, SideNotFound
from storage.core.quotas import DOWNLOADS
from storage.domain.access.roles import Capability
from storage.domain.entities.differences import DifferenceKind
from storage.domain.entities.entity import EntityKey
from storage.rest import access, problems
from storage.rest.access import check_scope
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.negotiation import EscapingRenderer
from storage.rest.problems import FieldError, Problem
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.views import AccountScopedViewSet
from storage.runtime.threads import Download, TooManyDownloads
from storage.undo.outcome_jobs import outcome_of

NDJSON: Final = "application/x-ndjson"
_PIECE: Final = 64 * 1024


class DiffViewSet(AccountScopedViewSet):
    renderer_classes = (EscapingRenderer,)
    tag = "Compare"
    capabilities = {"show": Capability.READ, "entities": Capability.READ, "apply": Capability.WRITE}

    @operation(
        "compare",
        "Compare two accounts or tables",
        "Counts the entities that differ, table by table. Each side is live, or as of a time or a snapshot; the token"
        " must have access to the accounts of both.",
        answer=serializers.DiffSerializer,
        query=serializers.DiffParameters,
    )
    def show(self, request: Request, account: str) -> Response:
        comparison = self._compare(self.read_query())
        properties = comparison.service_properties
        return self.answer(
            {
                "left": str(comparison.left.name),
                "right": str(comparison.right.name),
                "read_at": comparison.read_at.token,
                "tables": [_describe(table) for table in comparison.tables],
                "not_compared": list(comparison.not_compared),
                "service_properties": _sides(properties),
            }
        )

    @operation(
        "list_differences",
        "List the entities that differ",
        "In the order of tables and keys, with the properties that differ and their values on both sides. With"
        " `Accept: application/x-ndjson` all of them are answered, one per line, as a patch that can be reviewed.",
        answer=page_of(serializers.DifferenceSerializer),
        query=serializers.DifferenceParameters,
        other_responses={(200, NDJSON): OpenApiTypes.STR},
    )
    def entities(self, request: Request, account: str) -> HttpResponseBase:
        parameters = self.read_query()
        comparison = self._compare(parameters)
        tables = [parameters["table"]] if parameters["table"] else None
        kinds = [DifferenceKind(kind) for kind in parameters["kind"] or DifferenceKind]
        after, limit = parameters["cursor"], parameters["limit"]
        if request.headers.get("Accept", "").startswith(NDJSON):
            lines = comparing.walk(comparison, kinds, tables=tables, after=after)
            pieces = gather(comparing.write_difference(*it) + b"\n" for it in lines)
            is_asgi = isinstance(request._request, ASGIRequest)
            try:
                streamed = Download(pieces, f"user {self.token.user_id}") if is_asgi else pieces
            except TooManyDownloads:
                detail = f"A user can have {quotas.limit(DOWNLOADS)} unfinished downloads; end one first."
                raise Problem(problems.TOO_MANY, detail, headers={"Retry-After": "30"}) from None
            return StreamingHttpResponse(streamed, content_type=NDJSON)
        differences = list(
            islice(comparing.walk(comparison, kinds, tables=tables, after=after, top=limit + 1), limit + 1)
        )
        following = "null"
        if len(differences) > limit:
            table, entity = differences[limit - 1]
            cursor = serializers.encode_after(table.name, entity.key)
            following = f'"{replace_query_param(request.build_absolute_uri(), "cursor", cursor)}"'
        items = b",".join(comparing.write_difference(*it) for it in differences[:limit])
        content = b'{"items":[%b],"next":%b}' % (items, following.encode())
        return HttpResponse(content, content_type="application/json")

    @operation(
        "apply_differences",
        "Make one side equal to the other",
        "Writes what differs to the target, which must be live and of the account of the path. It is one activity that"
        " can be undone. A table that the target lacks is created. Entities whose last change the comparison of"
        " `read_at` had not seen are skipped, as are those that do not fit into an account of the other kind. Creating"
        " or deleting a table needs the role maintainer, and so do policies and service properties, which also need the"
        " scope manage.",
        body=serializers.ApplySerializer,
        answer=serializers.AppliedSerializer,
        problems=[problems.CONFLICT],
        is_job=True,
        example={"left": "shoptest-pr-482", "right": "shoptest", "tables": ["customers"], "dry_run": True},
    )
    def apply(self, request: Request, account: str) -> Response:
        data = self.read_body()
        comparison = self._compare(data)
        target = Target(data["target"])
        chosen: dict[str, list[EntityKey]] = {}
        for it in data["entities"]:
            chosen.setdefault(it["table"], []).append(EntityKey(it["partition_key"], it["row_key"]))
        tables = data["tables"] if data["tables"] is not None or not chosen else list(chosen)
        try:
            comparison.check_tables([*(tables or ()), *chosen])
        except SideNotFound as error:
            raise problems.invalid(str(error), "/tables") from None
        selection = Selection(
            tables,
            chosen,
            [DifferenceKind(kind) for kind in data["kinds"]],
            policies=data["policies"],
            service_properties=data["service_properties"],
        )
        changed = comparison.right if target is Target.RIGHT else comparison.left
        if changed.account != self.account:
            raise problems.invalid(
                f"The target is not of the account {self.account.name} in the path.", "/target"
            )
        for capability in applying.capabilities(comparison, target, selection):
            check_scope(self.token, capability)
            access.find_account(self.token, self.account.name, capability)
        read_at = data["read_at"]
        try:
            if data["dry_run"]:
                return self.answer(
                    applying.apply(comparison, target, selection, by=self.by, read_at=read_at, dry_run=True)
                )
            job_request = applying.request(comparison, target, selection, read_at=read_at)
        except CannotApply as error:
            raise Problem(problems.CONFLICT, str(error)) from None
        return self.answer_by_job(job_request, lambda job: self.answer(outcome_of(job)))

    def _compare(self, wanted: dict[str, Any]) -> Comparison:
        left = self._side("left", wanted["left"])
        right = self._side("right", wanted.get("right", self.account.name))
        return comparing.compare(left, right, with_timestamps=wanted.get("timestamps", False))

    def _side(self, parameter: str, written: str) -> Side:
        name = SideName.read(written)
        assert name is not None
        account, _ = access.find_account(self.token, name.account, Capability.READ)
        try:
            return sides.find(name, account)
        except SideNotFound as error:
            where = {"pointer": f"/{parameter}"} if self.action == "apply" else {"parameter": parameter}
            raise Problem(problems.INVALID, str(error), errors=[FieldError(str(error), **where)]) from None


def _describe(table: ComparedTable) -> dict[str, Any]:
    states = {(True, False): "left", (False, True): "right"}
    return {
        "name": table.name,
        "state": states.get((table.left is not None, table.right is not None), "both"),
        **comparing.count(table)._asdict(),
        "descriptions": _sides(table.descriptions),
        "policies": _sides(table.policies),
    }


def _sides(both: tuple[Any, Any] | None) -> dict[str, Any] | None:
    return None if both is None else {"left": both[0], "right": both[1]}


def gather(lines: Generator[bytes, None, None]) -> Generator[bytes, None, None]:
    """Join lines into pieces of a size worth sending."""
    waiting: list[bytes] = []
    length = 0
    for line in lines:
        waiting.append(line)
        length += len(line)
        if length >= _PIECE:
            yield b"".join(waiting)
            waiting, length = [], 0
    yield b"".join(waiting)


urlpatterns = [
    api_path(f"{ACCOUNT}/diff", DiffViewSet, "diff", get="show"),
    api_path(f"{ACCOUNT}/diff/entities", DiffViewSet, "diff-entities", get="entities"),
    api_path(f"{ACCOUNT}/diff/apply", DiffViewSet, "diff-apply", post="apply"),
]
