"""Saved queries of a table in the API."""

from dataclasses import replace
from typing import Any

from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from console.api import serializers
from console.models import SavedQuery, User
from console.queries import saved, saved_changes
from console.queries.forms import SavedQueryForm
from console.queries.saved import Definition
from storage.activity.activity import ChangedSince
from storage.domain.access.roles import Capability
from storage.models import Table
from storage.rest import etags, problems
from storage.rest.answers import page_of
from storage.rest.documentation import IF_MATCH, operation
from storage.rest.lookups import or_404
from storage.rest.paging import Page
from storage.rest.problems import FieldError, Problem
from storage.rest.views import AccountScopedViewSet


class QueryViewSet(AccountScopedViewSet):
    tag = "Saved queries"
    capabilities = {
        "index": Capability.READ,
        "retrieve": Capability.READ,
        "create": Capability.WRITE,
        "partial_update": Capability.WRITE,
        "destroy": Capability.WRITE,
    }

    def user(self) -> User:
        found = self.token.user
        assert isinstance(found, User)
        return found

    def query(self) -> SavedQuery:
        table = self.table()
        return or_404(saved.find_query(self.user(), self.account.pk, table.folded_name, self.kwargs["query"]))

    def changeable(self) -> SavedQuery:
        found = self.query()
        if not saved.can_change(self.user(), self.role, found):
            raise Problem(problems.FORBIDDEN, "Only editors can change a query that is shared.")
        return found

    @operation(
        "list_queries",
        "List the saved queries of a table",
        "Those that are shared, and those of the token's user, by name.",
        answer=page_of(serializers.QuerySerializer),
    )
    def index(self, request: Request, account: str, table: str) -> Response:
        return self.answer_page(Page(saved.for_table(self.user(), self.table())))

    @operation(
        "create_query",
        "Save a query",
        "Its owner is the token's user. Names of a table's queries differ.",
        body=serializers.QueryFieldsSerializer,
        answer=serializers.QuerySerializer,
        is_creation=True,
        problems=[problems.CONFLICT],
        example={"name": "Open orders", "filter": "State eq 'open'", "is_shared": True},
    )
    def create(self, request: Request, account: str, table: str) -> Response:
        found = self.table()
        definition = self._read(found, None)
        made = saved_changes.create_query(found, definition, owner=self.user(), by=self.by)
        return self.answer_created(made, is_new=True)

    @operation("get_query", "Get a saved query", answer=serializers.QuerySerializer, has_etag=True)
    def retrieve(self, request: Request, account: str, table: str, query: str) -> Response:
        return self.answer_with_etag(self.query())

    @operation(
        "update_query",
        "Change a saved query",
        "Members that are left out do not change. Only its owner can make it private.",
        body=serializers.QueryChangeSerializer,
        answer=serializers.QuerySerializer,
        headers=[IF_MATCH],
        problems=[problems.PRECONDITION],
        has_etag=True,
        example={"filter": "State eq 'open' and Total gt 100"},
    )
    def partial_update(self, request: Request, account: str, table: str, query: str) -> Response:
        stored = self.changeable()
        seen = saved.revision(stored)
        etags.check_match(request, self.serialize(stored))
        definition = self._read(self.table(), stored)
        if not saved.may_share_as(self.user(), stored, is_shared=definition.is_shared):
            detail = f"Only {stored.owner or 'its owner'} can stop sharing this query."
            raise Problem(problems.FORBIDDEN, detail)
        try:
            changed = saved_changes.change_query(stored, definition, seen=seen, by=self.by)
        except ChangedSince:
            raise Problem(problems.PRECONDITION) from None
        return self.answer_with_etag(changed)

    @operation("delete_query", "Delete a saved query", "It can be restored by undo.")
    def destroy(self, request: Request, account: str, table: str, query: str) -> Response:
        try:
            saved_changes.delete_query(self.changeable(), by=self.by)
        except ChangedSince:
            raise Http404 from None
        return Response(status=204)

    def _read(self, table: Table, query: SavedQuery | None) -> Definition:
        """Validate the body like the console's form and return the query's new definition."""
        data = self.read_body()
        former = Definition("") if query is None else saved_changes.read_definition(query)
        written = {
            "name": former.name,
            "description": former.description,
            "filter": former.content.get("f", ""),
        }
        values: dict[str, Any] = {**written, **{name: data[name] for name in written if name in data}}
        others = [it.name for it in saved.for_table(self.user(), table) if it != query]
        form = SavedQueryForm(values, taken=others)
        if not form.is_valid():
            errors = [FieldError(str(it[0]), f"/{name}") for name, it in form.errors.items()]
            raise Problem(problems.INVALID, errors=errors)
        kept = {name: value for name, value in former.content.items() if name != "f"}
        text = form.cleaned_data["filter"]
        content = {**({"f": text} if text else {}), **data.get("view", kept)}
        return replace(
            former,
            name=form.cleaned_data["name"],
            description=form.cleaned_data["description"],
            content=content,
            is_shared=data.get("is_shared", former.is_shared),
        )
