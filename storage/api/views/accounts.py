"""Accounts, their keys and connection strings."""

import secrets
from itertools import islice
from typing import Any, Final

from django.http import Http404, HttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.access import keys, retired_keys
from storage.access.keys import KeyState
from storage.account_files import account_building, account_copies, account_export_jobs
from storage.account_files.account_building import BuiltAccount
from storage.accounts import account_settings, accounts, removal, sealed_keys
from storage.accounts.accounts import NewAccount
from storage.accounts.connection_strings import ConnectionFormat, connection_string
from storage.accounts.connection_strings import write_connection as write_form
from storage.accounts.refusals import AccountExists, AccountHasTables
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.api.serializers import accounts as serializers
from storage.api.serializers.transfer import WHOLE_ACCOUNT, AccountExportSerializer
from storage.api.views.transfer import check_library
from storage.domain.access.roles import Capability, Role
from storage.domain.values.kinds import AccountKind
from storage.jobs import jobs
from storage.models import Account, ApiToken
from storage.people import idempotency_keys, members
from storage.rest import access, idempotency, problems
from storage.rest.answers import page_of
from storage.rest.documentation import IDEMPOTENCY_KEY, PLAIN_TEXT, operation
from storage.rest.fields import read_expiry
from storage.rest.jobs import JobSerializer
from storage.rest.paging import Page, take_page
from storage.rest.problems import Problem
from storage.rest.views import AccountScopedViewSet, ApiViewSet
from storage.tables import tables
from storage.transfer import export_jobs

_OWN_FIELDS: Final = frozenset({"kind", "label", "description", "colour", "labels"})
_NAME_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


class AccountListViewSet(ApiViewSet):
    tag = "Accounts"
    capabilities = {"index": Capability.READ, "create": Capability.OWN}

    def resolve_target(self, token: ApiToken, capability: Capability) -> None:
        if self.action == "create":
            access.check_server(token)

    @operation(
        "list_accounts",
        "List accounts",
        "Returns the accounts that the token's user can see, by name.",
        answer=page_of(serializers.AccountSerializer),
        query=serializers.AccountListParameters,
    )
    def index(self, request: Request) -> Response:
        wanted = self.read_query()
        shown = members.visible_accounts(self.token.user).filter(
            name__gt=wanted["cursor"] or "", name__startswith=wanted["name"]
        )
        if self.token.account_id is not None:
            shown = shown.filter(pk=self.token.account_id)
        found = islice((it for it in shown.iterator() if _is_wanted(it, wanted)), wanted["limit"] + 1)
        return self.answer_page(
            take_page(members.with_roles(self.token.user, found), wanted["limit"], lambda one: one[0].name)
        )

    @operation(
        "create_account",
        "Create an account",
        "Repeating the same request answers 200 with the account as it is now; a different request with the same name"
        " answers 409. Without a name, send an `Idempotency-Key` to make the request repeatable.",
        body=serializers.NewAccountSerializer,
        answer=serializers.CreatedAccountSerializer,
        is_creation=True,
        headers=[IDEMPOTENCY_KEY],
        problems=[problems.CONFLICT, problems.KEY_REUSED],
        example={"name": "cibranch42", "ttl": "8h", "labels": {"branch": "main"}},
    )
    def create(self, request: Request) -> Response:
        data = self.read_body()
        new = NewAccount(
            expires_at=read_expiry(data, timezone.now()),
            request_digest=idempotency.request_digest(request),
            **{name: value for name, value in data.items() if name in _OWN_FIELDS},
        )
        key, name = idempotency.read_key(request), data.get("name")
        account, is_new = (
            self._create_named(name, new)
            if name
            else idempotency.retry_concurrent(lambda: self._create_unnamed(key, new))
        )
        if not is_new:
            activity.record(AccountVerb.KEY_REVEAL, self.by, account=account, detail={"key": "key1"})
        return self.answer_created((account, Role.OWNER), is_new=is_new)

    def _create_named(self, name: str, new: NewAccount) -> tuple[Account, bool]:
        try:
            return accounts.add(name, new, by=self.by), True
        except AccountExists as taken:
            return _made_by_same_request(name, new.request_digest, taken), False

    def _create_unnamed(self, key: str, new: NewAccount) -> tuple[Account, bool]:
        digest = new.request_digest
        found = idempotency.find(self.token, key, digest, timezone.now()) if key else None
        if found is not None:
            return found.account, False
        with invalidating_catalogs():
            name = "a" + "".join(secrets.choice(_NAME_ALPHABET) for _ in range(15))
            account = accounts.add(name, new, by=self.by)
            if key:
                idempotency_keys.save(self.token, key, digest, account)
        return account, True


def _made_by_same_request(name: str, digest: str, taken: AccountExists) -> Account:
    """Return the account that the same request made; raises ``taken`` if another did."""
    found = accounts.find(name)
    if found is None or found.request_digest != digest:
        raise taken
    return found


def _is_wanted(account: Account, wanted: dict[str, Any]) -> bool:
    if wanted["state"] and account.stage.value != wanted["state"]:
        return False
    for text in wanted["label"]:
        name, separator, value = text.partition("=")
        if name not in account.labels or (separator and account.labels[name] != value):
            return False
    return True


class AccountViewSet(AccountScopedViewSet):
    tag = "Accounts"
    capabilities = {
        "retrieve": Capability.READ,
        "partial_update": Capability.OWN,
        "destroy": Capability.OWN,
        "freeze": Capability.OWN,
        "thaw": Capability.OWN,
        "check_copy": Capability.READ,
        "copy": Capability.OWN,
        "export": Capability.READ,
    }

    @operation("get_account", "Get an account", answer=serializers.AccountSerializer)
    def retrieve(self, request: Request, account: str) -> Response:
        return self.answer((self.account, self.role))

    @operation(
        "update_account",
        "Update an account",
        "Members that are left out do not change. A new lifetime (`ttl`, `expires_at`) thaws an expired account.",
        body=serializers.AccountChangeSerializer,
        answer=serializers.AccountSerializer,
        problems=[problems.CONFLICT],
        example={"ttl": "8h", "labels": {"branch": "main"}},
    )
    def partial_update(self, request: Request, account: str) -> Response:
        data = self.read_body()
        end = read_expiry(data, timezone.now())
        fields = {name: value for name, value in data.items() if name != "ttl"}
        if end is not None:
            fields["expires_at"] = end
        if fields:
            account_settings.change(self.account, by=self.by, **fields)
        return self.answer((self.account, self.role))

    @operation(
        "delete_account",
        "Delete an account",
        "Deletes the account permanently with its keys and, if `with_tables` is true, its tables. Protected accounts"
        " cannot be deleted.",
        query=serializers.AccountDeletionParameters,
        problems=[problems.CONFLICT],
        is_job=True,
    )
    def destroy(self, request: Request, account: str) -> Response:
        wanted = self.read_query()
        try:
            if self.is_async:
                deletion = removal.request(self.account, with_tables=wanted["with_tables"])
                return self.answer_job(jobs.start_requested(deletion, by=self.by))
            removal.remove(self.account.name, with_tables=wanted["with_tables"], by=self.by)
        except AccountHasTables:
            detail = "The account has tables; set with_tables=true to delete them too."
            raise Problem(problems.CONFLICT, detail) from None
        return Response(status=204)

    @operation(
        "freeze_account",
        "Freeze an account",
        "The account refuses all requests of applications. Its data is kept.",
        answer=serializers.AccountSerializer,
    )
    def freeze(self, request: Request, account: str) -> Response:
        account_settings.change(self.account, by=self.by, enabled=False)
        return self.answer((self.account, self.role))

    @operation(
        "thaw_account",
        "Thaw an account",
        "To thaw an expired account, give it a new lifetime instead.",
        answer=serializers.AccountSerializer,
        problems=[problems.CONFLICT],
    )
    def thaw(self, request: Request, account: str) -> Response:
        account_settings.change(self.account, by=self.by, enabled=True)
        return self.answer((self.account, self.role))

    @operation(
        "check_copy",
        "Check what a copy of an account would leave out",
        "Reads all entities, which takes about a second per 30,000 of them.",
        query=serializers.CopyCheckParameters,
        answer=serializers.CopyCheckSerializer,
    )
    def check_copy(self, request: Request, account: str) -> Response:
        kind = self.read_query().get("kind") or AccountKind(self.account.kind)
        return self.answer({"items": account_copies.check(self.account, kind)})

    @operation(
        "copy_account",
        "Copy an account",
        "Copies the tables to a new account, of the other kind if you like, and answers when all are there. If"
        " something does not fit, nothing is copied unless `skip` is true; `GET` the same path to see what. Repeating"
        " the same request answers 200 with the account as it is now, 409 while it is being made, and begins again if"
        " the server ended before the copy was complete.",
        body=serializers.CopySerializer,
        answer=serializers.CopiedSerializer,
        is_creation=True,
        is_job=True,
        problems=[problems.CONFLICT],
        example={"name": "planets", "kind": "cosmos"},
    )
    def copy(self, request: Request, account: str) -> Response:
        data = self.read_body()
        access.check_server(self.token)
        kind = data.get("kind") or AccountKind(self.account.kind)
        if self.is_async and not accounts.exists(data["name"]):
            digest = idempotency.request_digest(request)
            wanted = account_copies.request(
                self.account, data["name"], kind, skip=data["skip"], request_digest=digest
            )
            return self.answer_job(jobs.start_requested(wanted, by=self.by))
        copied, is_new = self._copy(data["name"], kind, skip=data["skip"])
        activity.record(AccountVerb.KEY_REVEAL, self.by, account=copied.account, detail={"key": "key1"})
        return self.answer_created(copied, is_new=is_new)

    @operation(
        "export_account",
        "Export an account",
        "A job writes all tables, policies and settings into a file, as of one moment, which it has for a day; `account"
        " import` makes an account of it. Account keys are not in the file, which needs the role maintainer and the"
        " scope manage. In another `format`, it is a ZIP file with a file for each table.",
        body=AccountExportSerializer,
        answer=JobSerializer,
        is_job=True,
        example={"format": "typed.csv", "tables": ["people", "orders"]},
    )
    def export(self, request: Request, account: str) -> Response:
        data = self.read_body()
        format_, names = data["format"], dict.fromkeys(data["tables"])
        if format_ == WHOLE_ACCOUNT:
            access.check_scope(self.token, Capability.MANAGE_ACCESS)
            access.find_account(self.token, account, Capability.MANAGE_ACCESS)
            if names:
                raise problems.invalid("Choose tables for another format.", "/tables")
            return self.answer_job(
                jobs.start_requested(account_export_jobs.request(self.account), by=self.by)
            )
        check_library(format_)
        chosen = [tables.get(self.account, name) for name in names] or list(tables.listed(self.account))
        job = export_jobs.start_zip(
            self.account, chosen, format_, by=self.by, escapes_formulas=data["escape_formulas"]
        )
        return self.answer_job(job)

    def _copy(self, name: str, kind: AccountKind, *, skip: bool) -> tuple[BuiltAccount, bool]:
        digest = idempotency.request_digest(self.request)
        try:
            copied = account_copies.copy(
                self.account, name, kind, skip=skip, by=self.by, request_digest=digest
            )
        except AccountExists as taken:
            return account_building.describe(_made_by_same_request(name, digest, taken)), False
        return copied, True


class KeyViewSet(AccountScopedViewSet):
    tag = "Keys"
    capabilities = {
        "index": Capability.MANAGE_ACCESS,
        "rotate": Capability.OWN,
        "end": Capability.OWN,
        "connection": Capability.MANAGE_ACCESS,
    }

    @operation(
        "list_keys",
        "List the keys of an account",
        "The activity log records that the keys were shown.",
        answer=page_of(serializers.KeySerializer),
    )
    def index(self, request: Request, account: str) -> Response:
        for number in (1, 2):
            self._record_reveal(number)
        return self.answer_page(Page([self._state(number) for number in (1, 2)]))

    @operation(
        "rotate_key",
        "Rotate a key",
        "Replaces a key by a new one. Whatever the old key signed is refused from the next request on, or when the"
        " grace period ends.",
        body=serializers.KeyRotationSerializer,
        answer=serializers.KeySerializer,
        example={"grace": "8h"},
    )
    def rotate(self, request: Request, account: str, key: str) -> Response:
        if key not in serializers.KEYS:
            raise Http404
        grace = self.read_body().get("grace", accounts.NO_GRACE)
        accounts.rotate(self.account.name, _number(key), by=self.by, grace=grace)
        self.account.refresh_from_db()
        return self.answer(self._state(_number(key)))

    @operation(
        "end_key_grace",
        "End the grace period of a replaced key",
        "Whatever the old key signed is refused from the next request on. Without such a key, nothing is changed.",
        answer=serializers.KeySerializer,
    )
    def end(self, request: Request, account: str, key: str) -> Response:
        if key not in serializers.KEYS:
            raise Http404
        retired_keys.end(self.account, _number(key), by=self.by)
        return self.answer(self._state(_number(key)))

    @operation(
        "get_connection_string",
        "Get a connection string",
        "Answers JSON, or the text alone for `Accept: text/plain`.",
        answer=serializers.ConnectionStringSerializer,
        query=serializers.ConnectionStringParameters,
        other_responses=PLAIN_TEXT,
    )
    def connection(self, request: Request, account: str) -> Response | HttpResponse:
        wanted = self.read_query()
        number, base = _number(wanted["key"]), self._endpoint_at(wanted["host"])
        key = sealed_keys.encode_key(sealed_keys.keys_of(self.account)[number - 1])
        text = write_form(ConnectionFormat(wanted["form"]), connection_string(self.account.name, base, key))
        self._record_reveal(number)
        if request.headers.get("Accept", "").startswith("text/plain"):
            return HttpResponse(text, content_type="text/plain; charset=utf-8")
        return self.answer({**wanted, "endpoint": base, "text": text})

    def _endpoint_at(self, host: str) -> str:
        if not host:
            return self.endpoint()
        base = host if "://" in host else f"{self.request.scheme}://{host}"
        return f"{base.rstrip('/')}/{self.account.name}"

    def _record_reveal(self, number: int) -> None:
        activity.record(AccountVerb.KEY_REVEAL, self.by, account=self.account, detail={"key": f"key{number}"})

    def _state(self, number: int) -> KeyState:
        return keys.state(self.account, number, timezone.now())


def _number(key: str) -> int:
    return int(key.removeprefix("key"))
