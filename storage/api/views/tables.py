"""Tables and their stored access policies."""

from typing import Any

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from storage.access import policies
from storage.activity.activity import ChangedSince
from storage.api.serializers import tables as serializers
from storage.cluster import distribution
from storage.domain.access.roles import Capability
from storage.domain.errors import TableAlreadyExists
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.rest import etags, problems
from storage.rest.answers import page_of
from storage.rest.documentation import IF_MATCH, operation
from storage.rest.paging import Page, take_page
from storage.rest.problems import Problem
from storage.rest.views import AccountScopedViewSet
from storage.tables import table_list, tables


class TableViewSet(AccountScopedViewSet):
    tag = "Tables"
    capabilities = {
        "index": Capability.READ,
        "create": Capability.MANAGE_TABLES,
        "retrieve": Capability.READ,
        "partial_update": Capability.MANAGE_TABLES,
        "destroy": Capability.MANAGE_TABLES,
        "restore": Capability.MANAGE_TABLES,
        "distribute": Capability.OWN,
        "undistribute": Capability.OWN,
    }

    @operation(
        "list_tables",
        "List tables",
        answer=page_of(serializers.TableSerializer),
        query=serializers.TableListParameters,
    )
    def index(self, request: Request, account: str) -> Response:
        wanted = self.read_query()
        return self.answer_page(
            self._deleted(wanted) if wanted["state"] == "deleted" else self._present(wanted)
        )

    def _present(self, wanted: dict[str, Any]) -> Page:
        found = table_list.with_prefix(
            self.account,
            prefix=wanted["name"],
            tag=wanted["tag"],
            after=wanted["cursor"],
            top=wanted["limit"] + 1,
        )
        return take_page(found, wanted["limit"], lambda table: table.folded_name)

    def _deleted(self, wanted: dict[str, Any]) -> Page:
        prefix, tag = wanted["name"].lower(), wanted["tag"]
        found = [
            table
            for table in tables.deleted(self.account)
            if table.folded_name.startswith(prefix) and (not tag or tag in table.tags)
        ]
        found.sort(key=lambda table: table.pk)
        start = wanted["cursor"]
        later = [table for table in found if not start or f"{table.pk:020}" > start]
        return take_page(later[: wanted["limit"] + 1], wanted["limit"], lambda table: f"{table.pk:020}")

    @operation(
        "create_table",
        "Create a table",
        "Repeating the same request answers 200 with the table; a different request with the same name answers 409.",
        body=serializers.NewTableSerializer,
        answer=serializers.TableSerializer,
        is_creation=True,
        problems=[problems.CONFLICT],
        example={"name": "people", "description": "Visitors", "tags": ["demo"]},
    )
    def create(self, request: Request, account: str) -> Response:
        data = self.read_body()
        try:
            return self.answer_created(tables.create(self.account, by=self.by, **data), is_new=True)
        except TableAlreadyExists:
            found = tables.get(self.account, data["name"])
            if {name: getattr(found, name) for name in data} != data:
                raise
            return self.answer_created(found, is_new=False)

    @operation("get_table", "Get a table", answer=serializers.TableSerializer)
    def retrieve(self, request: Request, account: str, table: str) -> Response:
        return self.answer(self.table())

    @operation(
        "update_table",
        "Update the description, tags or throughput of a table",
        body=serializers.TableChangeSerializer,
        answer=serializers.TableSerializer,
        problems=[problems.NO_METHOD],  # accounts of the kind storage limit no throughput
        example={"tags": ["demo", "2026"]},
    )
    def partial_update(self, request: Request, account: str, table: str) -> Response:
        found = self.table()
        data = self.read_body()
        if data:
            tables.change(found, by=self.by, **data)
        return self.answer(found)

    @operation(
        "delete_table",
        "Delete a table",
        "The deletion is effective at once. For seven days the table can be restored.",
        query=serializers.TableDeletionParameters,
        problems=[problems.CONFLICT],
    )
    def destroy(self, request: Request, account: str, table: str) -> Response:
        wanted = self.read_query()
        found = self.table()
        if self.account.protected and wanted["confirm"] != self.account.name:
            detail = "The account is protected; send its name as the parameter confirm."
            raise Problem(problems.CONFLICT, detail)
        tables.delete(self.account, found.name, by=self.by, keep=tables.DELETED_TABLE_RETENTION)
        return Response(status=204)

    @operation(
        "restore_table",
        "Restore a deleted table",
        "Restores the last deleted table of this name with its entities, policies, description and tags.",
        answer=serializers.TableSerializer,
        problems=[problems.CONFLICT],
    )
    def restore(self, request: Request, account: str, table: str) -> Response:
        folded = fold_table_name(table, AccountKind(self.account.kind))
        found = next((one for one in tables.deleted(self.account) if one.folded_name == folded), None)
        if found is None:
            raise Http404
        tables.restore(found, by=self.by)
        return self.answer(self.table())

    @operation(
        "distribute_table",
        "Distribute a table over the nodes of a cluster",
        "Moves the rows to the nodes of the Citus cluster whose coordinator the database is. Reads go on meanwhile;"
        " writes wait, and answer 503 if that takes long. For a very large table, use the command `distribute`.",
        answer=serializers.TableSerializer,
        problems=[problems.CONFLICT],
    )
    def distribute(self, request: Request, account: str, table: str) -> Response:
        found = self.table()
        distribution.distribute(found, by=self.by)
        return self.answer(found)

    @operation(
        "undistribute_table",
        "Bring a distributed table back to the coordinator",
        answer=serializers.TableSerializer,
        problems=[problems.CONFLICT],
    )
    def undistribute(self, request: Request, account: str, table: str) -> Response:
        found = self.table()
        distribution.undistribute(found, by=self.by)
        return self.answer(found)


class PolicyViewSet(AccountScopedViewSet):
    tag = "Policies"
    capabilities = {"retrieve": Capability.READ, "update": Capability.MANAGE_ACCESS}

    @operation(
        "get_policies",
        "Get the stored access policies of a table",
        answer=serializers.PoliciesSerializer,
        has_etag=True,
    )
    def retrieve(self, request: Request, account: str, table: str) -> Response:
        stored = policies.stored(self.table())
        return self.answer_with_etag({"items": stored})

    @operation(
        "set_policies",
        "Set the stored access policies of a table",
        "Replaces all policies of the table. Tokens that reference one are checked against it from the next request"
        " on.",
        body=serializers.PoliciesSerializer,
        answer=serializers.PoliciesSerializer,
        headers=[IF_MATCH],
        problems=[problems.PRECONDITION, problems.NO_METHOD],
        has_etag=True,
        example={
            "items": [
                {"id": "partners", "access_policy": {"expiry": "2027-01-01T00:00:00Z", "permission": "r"}}
            ]
        },
    )
    def update(self, request: Request, account: str, table: str) -> Response:
        found = self.table()
        wanted = self.read_body()
        stored = policies.stored(found)
        seen = stored if etags.check_match(request, self.serialize({"items": stored})) else None
        try:
            policies.replace(found, wanted["items"], by=self.by, seen=seen)
        except ChangedSince:
            raise Problem(problems.PRECONDITION) from None
        return self.answer_with_etag(wanted)
