"""Tables and their property indexes in the management API."""

from typing import Any

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from storage.domain.access.roles import Capability
from storage.domain.errors import TableAlreadyExists
from storage.domain.values.kinds import AccountKind
from storage.domain.values.names import fold_table_name
from storage.models import Table
from storage.rest import problems
from storage.rest.answers import page_of
from storage.rest.documentation import operation
from storage.rest.lookups import or_404
from storage.rest.paging import Page, take_page
from storage.rest.problems import Problem
from storage.rest.routing import ACCOUNT, TABLE, api_path
from storage.rest.views import AccountScopedViewSet
from storage.tables import indexes, renaming, serializers, table_copies, table_list, tables
from storage.tables.indexes import IndexDetails, IndexExists, IndexMissing
from storage.tables.subject import TableVerb


class TableViewSet(AccountScopedViewSet):
    tag = "Tables"
    capabilities = {
        "index": Capability.READ,
        "create": Capability.MANAGE_TABLES,
        "retrieve": Capability.READ,
        "partial_update": Capability.MANAGE_TABLES,
        "destroy": Capability.MANAGE_TABLES,
        "restore": Capability.MANAGE_TABLES,
        "rename": Capability.MANAGE_TABLES,
        "copy": Capability.MANAGE_TABLES,
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

    def _present(self, parameters: dict[str, Any]) -> Page:
        matching = table_list.with_prefix(
            self.account,
            prefix=parameters["name"],
            tag=parameters["tag"],
            after=parameters["cursor"],
            top=parameters["limit"] + 1,
        )
        return take_page(matching, parameters["limit"], lambda table: table.folded_name)

    def _deleted(self, parameters: dict[str, Any]) -> Page:
        prefix, tag = parameters["name"].lower(), parameters["tag"]
        matching = [
            table
            for table in tables.deleted(self.account)
            if table.folded_name.startswith(prefix) and (not tag or tag in table.tags)
        ]
        matching.sort(key=lambda table: table.pk)
        start = parameters["cursor"]
        later = [table for table in matching if not start or f"{table.pk:020}" > start]
        return take_page(
            later[: parameters["limit"] + 1], parameters["limit"], lambda table: f"{table.pk:020}"
        )

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
            table = tables.get(self.account, data["name"])
            if {name: getattr(table, name) for name in data} != data:
                raise
            return self.answer_created(table, is_new=False)

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
        target = self.table()
        data = self.read_body()
        if data:
            tables.change(target, by=self.by, **data)
        return self.answer(target)

    @operation(
        "delete_table",
        "Delete a table",
        "The deletion is effective at once. For seven days the table can be restored.",
        query=serializers.TableDeletionParameters,
        problems=[problems.CONFLICT],
    )
    def destroy(self, request: Request, account: str, table: str) -> Response:
        parameters = self.read_query()
        target = self.table()
        if self.account.protected and parameters["confirm"] != self.account.name:
            detail = "The account is protected; send its name as the parameter confirm."
            raise Problem(problems.CONFLICT, detail)
        tables.delete(self.account, target.name, by=self.by, keep=tables.DELETED_TABLE_RETENTION)
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
        target = or_404(
            next((one for one in tables.deleted(self.account) if one.folded_name == folded), None)
        )
        tables.restore(target, by=self.by)
        return self.answer(self.table())

    @operation(
        "rename_table",
        "Rename a table",
        "Effective at once. Entities, policies, history and comments stay with the table; SAS tokens and clients of the"
        " old name no longer find it.",
        body=serializers.NewNameSerializer,
        answer=serializers.TableSerializer,
        problems=[problems.CONFLICT],
        example={"name": "visitors"},
    )
    def rename(self, request: Request, account: str, table: str) -> Response:
        target = self.table()
        renaming.rename(target, self.read_body()["name"], by=self.by)
        return self.answer(target)

    @operation(
        "copy_table",
        "Copy a table under another name",
        "The copy has the entities with their Timestamps, the policies, the description and the tags.",
        body=serializers.NewNameSerializer,
        answer=serializers.TableSerializer,
        problems=[problems.CONFLICT],
        is_job=True,
        example={"name": "people2026"},
    )
    def copy(self, request: Request, account: str, table: str) -> Response:
        name = self.read_body()["name"]
        wanted = table_copies.request(self.table(), name)
        return self.answer_by_job(wanted, lambda job: self.answer(tables.get(self.account, name)))


class IndexViewSet(AccountScopedViewSet):
    tag = "Indexes"
    capabilities = {
        "index": Capability.READ,
        "create": Capability.MANAGE_TABLES,
        "retrieve": Capability.READ,
        "destroy": Capability.MANAGE_TABLES,
    }

    @operation(
        "list_indexes", "List the property indexes of a table", answer=page_of(serializers.IndexSerializer)
    )
    def index(self, request: Request, account: str, table: str) -> Response:
        return self.answer_page(Page(indexes.describe(self.table())))

    @operation(
        "create_index",
        "Index a property",
        "Queries with a range of the property no longer read the whole table, nor does sorting by it. The index is made"
        " in the background; read it until its state is `ready`. If the property has an index, the answer is 200, and"
        " one that the server has added is kept: it no longer drops it.",
        body=serializers.NewIndexSerializer,
        answer=serializers.IndexSerializer,
        is_creation=True,
        problems=[problems.CONFLICT],
        example={"property": "Score"},
    )
    def create(self, request: Request, account: str, table: str) -> Response:
        target, name = self.table(), self.read_body()["property"]
        try:
            done = indexes.add(target, name, by=self.by)
        except IndexExists:
            return self.answer_created(_find(target, name), is_new=False)
        return self.answer_created(_find(target, name), is_new=done.verb == TableVerb.INDEX_ADD)

    @operation("get_index", "Get the index of a property", answer=serializers.IndexSerializer)
    def retrieve(self, request: Request, account: str, table: str, property: str) -> Response:  # noqa: A002
        return self.answer(_find(self.table(), property))

    @operation(
        "delete_index",
        "Drop the index of a property",
        "Queries no longer use it; its space is freed in the background. The server does not add it again by itself.",
    )
    def destroy(self, request: Request, account: str, table: str, property: str) -> Response:  # noqa: A002
        try:
            indexes.drop(self.table(), property, by=self.by)
        except IndexMissing:
            raise Http404 from None
        return Response(status=204)


def _find(table: Table, name: str) -> IndexDetails:
    return or_404(next((details for details in indexes.describe(table) if details.index.name == name), None))


urlpatterns = [
    api_path(f"{ACCOUNT}/tables", TableViewSet, "tables", get="index", post="create"),
    api_path(TABLE, TableViewSet, "table", get="retrieve", patch="partial_update", delete="destroy"),
    api_path(f"{TABLE}/restore", TableViewSet, "table-restore", post="restore"),
    api_path(f"{TABLE}/rename", TableViewSet, "table-rename", post="rename"),
    api_path(f"{TABLE}/copy", TableViewSet, "table-copy", post="copy"),
    api_path(f"{TABLE}/indexes", IndexViewSet, "indexes", get="index", post="create"),
    api_path(f"{TABLE}/indexes/<str:property>", IndexViewSet, "index", get="retrieve", delete="destroy"),
]
