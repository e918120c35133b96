"""Accounts: made for a while or for good, found by their labels, frozen, deleted; and how to connect to them."""

import secrets
from typing import Any, Final

from django.http import Http404, HttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.api import idempotency, permissions, problems
from storage.api.documentation import IDEMPOTENCY_KEY, PLAIN_TEXT, operation
from storage.api.paging import Page, cut, respond
from storage.api.problems import Problem
from storage.api.serializers import accounts as serializers
from storage.api.serializers.fields import end_of
from storage.api.views.base import AccountViews, Views, endpoint, made
from storage.domain.access.roles import Capability, Role
from storage.domain.service import lifetimes
from storage.domain.service.activity import Verb
from storage.domain.service.connections import ConnectionFormat, connection_string
from storage.domain.service.connections import write_connection as write_form
from storage.models import Account, ApiToken
from storage.operations import accounts, activity, keys, members
from storage.operations.accounts import AccountExists, AccountHasTables
from storage.operations.catalog_change import invalidating_catalogs

_DESCRIBED: Final = frozenset({"label", "description", "colour", "labels"})
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


class AccountsViews(Views):
    capabilities = {"index": Capability.READ, "create": Capability.OWN}

    def look(self, token: ApiToken, capability: Capability) -> None:
        if self.action == "create":
            permissions.check_server(token)

    @operation(
        "list_accounts",
        "List accounts",
        "Those that the user of the token may see, by name.",
        answer=serializers.Accounts,
        parameters=[serializers.AccountParameters],
    )
    def index(self, request: Request) -> Response:
        wanted = self.parameters(serializers.AccountParameters)
        shown = [
            (account, role)
            for account, role in members.visible_accounts(self.token.user)
            if self.token.account_id in (None, account.pk) and _is_wanted(account, wanted)
        ]
        page = cut(shown[: wanted["limit"] + 1], wanted["limit"], lambda one: one[0].name)
        return respond(request, Page([write(request, *one) for one in page.items], page.end))

    @operation(
        "create_account",
        "Create an account",
        "The same request again answers 200 with the account as it is by then; another one for the same name 409."
        " Without a name, an `Idempotency-Key` tells the same request from another.",
        body=serializers.NewAccount,
        answer=serializers.MadeAccount,
        is_creation=True,
        parameters=[IDEMPOTENCY_KEY],
        problems=[problems.CONFLICT, problems.KEY_REUSED],
        example={"name": "cibranch42", "ttl": "8h", "labels": {"branch": "main"}},
    )
    def create(self, request: Request) -> Response:
        data = self.body(serializers.NewAccount)
        end = end_of(data, timezone.now())
        fields = {name: value for name, value in data.items() if name in _DESCRIBED}
        key, digest = idempotency.read_key(request), idempotency.digest_of(request)
        name = data.get("name")
        fields |= {"expires_at": end, "request_digest": digest}
        account, is_new = (
            self._named(name, fields) if name else idempotency.once(lambda: self._generated(key, fields))
        )
        if not is_new:
            activity.record(Verb.KEY_REVEAL, self.by, account=account, detail={"key": "key1"})
        return made(self._with_string(account), is_new=is_new)

    def _named(self, name: str, fields: dict[str, Any]) -> tuple[Account, bool]:
        try:
            return accounts.add(name, by=self.by, **fields), True
        except AccountExists:
            found = accounts.find(name)
            if found is None or found.request_digest != fields["request_digest"]:
                raise
            return found, False

    def _generated(self, key: str, fields: dict[str, Any]) -> tuple[Account, bool]:
        digest = fields["request_digest"]
        found = idempotency.find(self.token, key, digest, timezone.now()) if key else None
        if found is not None:
            return found.account, False
        with invalidating_catalogs():
            account = accounts.add(_generate_name(), by=self.by, **fields)
            if key:
                idempotency.keep(self.token, key, digest, account)
        return account, True

    def _with_string(self, account: Account) -> dict[str, Any]:
        return {
            **write(self.request, account, Role.OWNER),
            "connection_string": _string(account, 1, endpoint(self.request, account)),
        }


def _is_wanted(account: Account, wanted: dict[str, Any]) -> bool:
    if wanted["cursor"] and account.name <= wanted["cursor"]:
        return False
    if not account.name.startswith(wanted["name"]):
        return False
    if wanted["state"] and _stage(account).value != wanted["state"]:
        return False
    return all(_has_label(account, text) for text in wanted["label"])


def _has_label(account: Account, text: str) -> bool:
    name, separator, value = text.partition("=")
    return name in account.labels and (not separator or account.labels[name] == value)


def _generate_name() -> str:
    return "a" + "".join(secrets.choice(_ALPHABET) for _ in range(15))


class OneAccountViews(AccountViews):
    capabilities = {
        "retrieve": Capability.READ,
        "partial_update": Capability.OWN,
        "destroy": Capability.OWN,
        "freeze": Capability.OWN,
        "thaw": Capability.OWN,
    }

    @operation("get_account", "Get an account", answer=serializers.Account)
    def retrieve(self, request: Request, account: str) -> Response:
        return self._shown()

    @operation(
        "update_account",
        "Change an account",
        "What is not named stays. More time (`ttl`, `expires_at`) thaws an account whose time was over.",
        body=serializers.AccountChange,
        answer=serializers.Account,
        problems=[problems.CONFLICT],
        example={"ttl": "8h", "labels": {"branch": "main"}},
    )
    def partial_update(self, request: Request, account: str) -> Response:
        data = self.body(serializers.AccountChange)
        end = end_of(data, timezone.now())
        fields = {name: value for name, value in data.items() if name != "ttl"}
        if end is not None:
            fields["expires_at"] = end
        if fields:
            accounts.set_fields(self.account.name, fields, by=self.by, seen=self.account)
        return self._shown()

    @operation(
        "delete_account",
        "Delete an account",
        "For good, with its keys and, if `with_tables` says so, its tables. A protected one stays.",
        parameters=[serializers.DeletionParameters],
        problems=[problems.CONFLICT],
    )
    def destroy(self, request: Request, account: str) -> Response:
        wanted = self.parameters(serializers.DeletionParameters)
        try:
            accounts.remove(self.account.name, with_tables=wanted["with_tables"], by=self.by)
        except AccountHasTables:
            raise Problem(problems.CONFLICT, "The account has tables; say with_tables=true.") from None
        return Response(status=204)

    @operation("freeze_account",
        "Freeze an account", "It refuses all requests of applications; nothing is lost.",
               answer=serializers.Account)  # fmt: skip
    def freeze(self, request: Request, account: str) -> Response:
        accounts.change(self.account, by=self.by, enabled=False)
        return self._shown()

    @operation(
        "thaw_account",
        "Thaw an account",
        "One whose time is over is thawed by giving it more.",
        answer=serializers.Account,
        problems=[problems.CONFLICT],
    )
    def thaw(self, request: Request, account: str) -> Response:
        accounts.change(self.account, by=self.by, enabled=True)
        return self._shown()

    def _shown(self) -> Response:
        return Response(write(self.request, self.account, self.role))


class KeysViews(AccountViews):
    capabilities = {
        "index": Capability.MANAGE_ACCESS,
        "rotate": Capability.OWN,
        "connection": Capability.MANAGE_ACCESS,
    }

    @operation(
        "list_keys",
        "List the keys of an account",
        "Recorded, as whenever keys are shown.",
        answer=serializers.Keys,
    )
    def index(self, request: Request, account: str) -> Response:
        for number in (1, 2):
            self._record(number)
        return Response({"items": [self._key(number) for number in (1, 2)]})

    @operation(
        "rotate_key",
        "Rotate a key",
        "Replaces it by a new one. What the old one signed is refused from the next request on, or when its grace is"
        " over.",
        body=serializers.Rotation,
        answer=serializers.Key,
        example={"grace": "8h"},
    )
    def rotate(self, request: Request, account: str, key: str) -> Response:
        if key not in serializers.KEYS:
            raise Http404
        number = int(key.removeprefix("key"))
        grace = self.body(serializers.Rotation).get("grace", accounts.NO_GRACE)
        accounts.rotate(self.account.name, number, by=self.by, grace=grace)
        self.account.refresh_from_db()
        return Response(self._key(number))

    @operation(
        "get_connection_string",
        "Get a connection string",
        "As JSON, or alone as text to who asks for `Accept: text/plain`.",
        answer=serializers.Connection,
        parameters=[serializers.ConnectionParameters],
        also=PLAIN_TEXT,
    )
    def connection(self, request: Request, account: str) -> Response | HttpResponse:
        wanted = self.parameters(serializers.ConnectionParameters)
        form, number = ConnectionFormat(wanted["form"]), int(wanted["key"].removeprefix("key"))
        where = self._endpoint_at(wanted["host"])
        text = write_form(form, _string(self.account, number, where))
        self._record(number)
        if request.headers.get("Accept", "").startswith("text/plain"):
            return HttpResponse(text, content_type="text/plain; charset=utf-8")
        return Response({"form": form, "key": wanted["key"], "endpoint": where, "text": text})

    def _endpoint_at(self, host: str) -> str:
        if not host:
            return self.endpoint()
        base = host if "://" in host else f"{self.request.scheme}://{host}"
        return f"{base.rstrip('/')}/{self.account.name}"

    def _record(self, number: int) -> None:
        activity.record(Verb.KEY_REVEAL, self.by, account=self.account, detail={"key": f"key{number}"})

    def _key(self, number: int) -> dict[str, Any]:
        state = keys.state(self.account, number, timezone.now())
        return {
            "name": state.name,
            "value": accounts.encode_key(accounts.keys_of(self.account)[number - 1]),
            "since": state.since,
            "last_used_at": state.last.last if state.last else None,
            "requests_24h": state.uses,
        }


def write(request: Request, account: Account, role: Role) -> dict[str, Any]:
    is_over = account.frozen_at is not None and not account.protected and not account.read_only
    content: dict[str, Any] = {
        "name": account.name,
        "label": account.label,
        "description": account.description,
        "colour": account.colour,
        "labels": account.labels,
        "state": _stage(account).value,
        "protected": account.protected,
        "read_only": account.read_only,
        "shared_key_access": account.shared_key_access,
        "networks": account.networks,
        "created_at": account.created_at,
        "expires_at": account.expires_at,
        "deleted_at": lifetimes.purge_time(account.frozen_at) if is_over and account.frozen_at else None,
        "endpoint": endpoint(request, account),
        "role": role.name.lower(),
    }
    return content


def _stage(account: Account) -> lifetimes.AccountStage:
    return lifetimes.account_stage(enabled=account.enabled, frozen_at=account.frozen_at)


def _string(account: Account, number: int, where: str) -> str:
    key = accounts.encode_key(accounts.keys_of(account)[number - 1])
    return connection_string(account.name, where, key)
