"""Tables, and their stored access policies."""

from typing import Any

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from storage.api import etags, problems
from storage.api.documentation import IF_MATCH, operation
from storage.api.paging import Page, cut, respond
from storage.api.problems import Problem
from storage.api.serializers import tables as serializers
from storage.api.views.base import AccountViews, made
from storage.domain.access.roles import Capability
from storage.domain.errors import TableAlreadyExists
from storage.models import Table
from storage.operations import policies, table_list, tables
from storage.operations.activity import ChangedSince
from storage.operations.tables import DELETED_TABLE_RETENTION


class TablesViews(AccountViews):
    capabilities = {
        "index": Capability.READ,
        "create": Capability.MANAGE_TABLES,
        "retrieve": Capability.READ,
        "partial_update": Capability.MANAGE_TABLES,
        "destroy": Capability.MANAGE_TABLES,
        "restore": Capability.MANAGE_TABLES,
    }

    @operation(
        "list_tables", "List tables", answer=serializers.Tables, parameters=[serializers.TableParameters]
    )
    def index(self, request: Request, account: str) -> Response:
        wanted = self.parameters(serializers.TableParameters)
        found = self._deleted(wanted) if wanted["state"] == "deleted" else self._present(wanted)
        return respond(request, Page([self._write(table) for table in found.items], found.end))

    def _present(self, wanted: dict[str, Any]) -> Page:
        listed = table_list.with_prefix(
            self.account.pk,
            prefix=wanted["name"],
            tag=wanted["tag"],
            after=wanted["cursor"],
            top=wanted["limit"] + 1,
        )
        return cut(listed, wanted["limit"], lambda table: table.folded_name)

    def _deleted(self, wanted: dict[str, Any]) -> Page:
        found = [table for table in tables.deleted(self.account.pk) if _is_wanted(table, wanted)]
        found.sort(key=lambda table: table.pk)
        start = wanted["cursor"]
        later = [table for table in found if not start or f"{table.pk:020}" > start]
        return cut(later[: wanted["limit"] + 1], wanted["limit"], lambda table: f"{table.pk:020}")

    @operation(
        "create_table",
        "Create a table",
        "The same request again answers 200 with the table; another one for the same name 409.",
        body=serializers.NewTable,
        answer=serializers.Table,
        is_creation=True,
        problems=[problems.CONFLICT],
        example={"name": "people", "description": "Who came", "tags": ["demo"]},
    )
    def create(self, request: Request, account: str) -> Response:
        data = self.body(serializers.NewTable)
        try:
            table = tables.create(self.account.pk, by=self.by, **data)
        except TableAlreadyExists:
            found = tables.get(self.account.pk, data["name"])
            if {name: getattr(found, name) for name in data} != data:
                raise
            return made(self._write(found), is_new=False)
        return made(self._write(table), is_new=True)

    @operation("get_table", "Get a table", answer=serializers.Table)
    def retrieve(self, request: Request, account: str, table: str) -> Response:
        return Response(self._write(self.table()))

    @operation(
        "update_table",
        "Change the notes on a table",
        body=serializers.TableChange,
        answer=serializers.Table,
        example={"tags": ["demo", "2026"]},
    )
    def partial_update(self, request: Request, account: str, table: str) -> Response:
        found = self.table()
        data = self.body(serializers.TableChange)
        if data:
            tables.change(found, by=self.by, **data)
        return Response(self._write(found))

    @operation(
        "delete_table",
        "Delete a table",
        "At once for everybody; for seven days it can be brought back.",
        parameters=[serializers.TableDeletionParameters],
        problems=[problems.CONFLICT],
    )
    def destroy(self, request: Request, account: str, table: str) -> Response:
        wanted = self.parameters(serializers.TableDeletionParameters)
        found = self.table()
        if self.account.protected and wanted["confirm"] != self.account.name:
            raise Problem(problems.CONFLICT, "The account is protected; say its name as confirm.")
        tables.delete(self.account.pk, found.name, by=self.by, keep=DELETED_TABLE_RETENTION)
        return Response(status=204)

    @operation(
        "restore_table",
        "Bring back a deleted table",
        "The last one of this name, with its entities, policies and notes.",
        answer=serializers.Table,
        problems=[problems.CONFLICT],
    )
    def restore(self, request: Request, account: str, table: str) -> Response:
        folded = table.lower()
        kept = tables.deleted(self.account.pk)
        found = next((one for one in kept if one.folded_name == folded), None)
        if found is None:
            raise Http404
        tables.restore(found.pk, by=self.by)
        return Response(self._write(self.table()))

    def _write(self, table: Table) -> dict[str, Any]:
        return {
            "name": table.name,
            "description": table.description,
            "tags": table.tags,
            "created_at": table.created_at,
            "deleted_at": table.deleted_at,
            "kept_until": table.kept_until,
            "url": f"{self.endpoint()}/{table.name}",
        }


def _is_wanted(table: Table, wanted: dict[str, Any]) -> bool:
    has_tag = not wanted["tag"] or wanted["tag"] in table.tags
    return has_tag and table.folded_name.startswith(wanted["name"].lower())


class PoliciesViews(AccountViews):
    capabilities = {"retrieve": Capability.READ, "update": Capability.MANAGE_ACCESS}

    @operation(
        "get_policies",
        "Get the stored access policies of a table",
        answer=serializers.Policies,
        has_etag=True,
    )
    def retrieve(self, request: Request, account: str, table: str) -> Response:
        stored = policies.stored(self.account.pk, self.table().folded_name)
        return _answer(serializers.write_policies(stored))

    @operation(
        "set_policies",
        "Set the stored access policies of a table",
        "All of them, in the place of those there were. They count from the next request on, for every token that"
        " names one.",
        body=serializers.Policies,
        answer=serializers.Policies,
        parameters=[IF_MATCH],
        problems=[problems.PRECONDITION],
        has_etag=True,
        example={
            "items": [
                {"id": "partners", "access_policy": {"expiry": "2027-01-01T00:00:00Z", "permission": "r"}}
            ]
        },
    )
    def update(self, request: Request, account: str, table: str) -> Response:
        folded = self.table().folded_name
        wanted = self.body(serializers.Policies)["items"]
        stored = policies.stored(self.account.pk, folded)
        seen = stored if etags.check(request, serializers.write_policies(stored)) else None
        try:
            policies.replace(self.account.pk, folded, wanted, by=self.by, seen=seen)
        except ChangedSince:
            raise Problem(problems.PRECONDITION) from None
        return _answer(serializers.write_policies(wanted))


def _answer(items: list[dict[str, Any]]) -> Response:
    return Response({"items": items}, headers={"ETag": etags.of(items)})
