"""Accounts and their service properties in the management API."""

import secrets
from itertools import islice
from typing import Any, Final

from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.accounts import account_settings, accounts, removal, serializers, service_properties
from storage.accounts.accounts import NewAccount
from storage.accounts.refusals import AccountExists, AccountHasTables
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.catalog_change import invalidating_catalogs
from storage.domain.access.roles import Capability, Role
from storage.domain.service_properties.properties import ServiceProperties
from storage.jobs import jobs
from storage.models import Account, ApiToken
from storage.people import idempotency_keys, members
from storage.rest import access, etags, idempotency, problems
from storage.rest.answers import page_of
from storage.rest.documentation import IDEMPOTENCY_KEY, IF_MATCH, operation
from storage.rest.fields import read_expiry
from storage.rest.paging import take_page
from storage.rest.problems import Problem
from storage.rest.routing import ACCOUNT, api_path
from storage.rest.views import AccountScopedViewSet, ApiViewSet


class ServicePropertiesViewSet(AccountScopedViewSet):
    tag = "Service properties"
    capabilities = {"retrieve": Capability.READ, "update": Capability.CONFIGURE}

    @operation(
        "get_service_properties",
        "Get the service properties",
        answer=serializers.ServicePropertiesSerializer,
        has_etag=True,
    )
    def retrieve(self, request: Request, account: str) -> Response:
        return self.answer_with_etag(service_properties.for_account(self.account))

    @operation(
        "set_service_properties",
        "Set the service properties",
        "Replaces logging, metrics and all CORS rules. Logging and metrics are only stored.",
        body=serializers.ServicePropertiesSerializer,
        answer=serializers.ServicePropertiesSerializer,
        headers=[IF_MATCH],
        problems=[problems.PRECONDITION, problems.NO_METHOD],
        has_etag=True,
        example={
            "logging": {"write": True, "delete": True, "retention": 7},
            "hour_metrics": {"enabled": True, "include_apis": True, "retention": 7},
            "minute_metrics": {"enabled": False},
            "cors": [
                {
                    "origins": ["http://localhost:5173"],
                    "methods": ["GET"],
                    "allowed_headers": ["*"],
                    "max_age": 60,
                }
            ],
        },
    )
    def update(self, request: Request, account: str) -> Response:
        new_properties: ServiceProperties = self.read_body()["properties"]

        def replace(former: ServiceProperties) -> ServiceProperties:
            etags.check_match(request, self.serialize(former))
            return new_properties

        service_properties.replace(self.account, replace, by=self.by)
        return self.answer_with_etag(new_properties)


_OWN_FIELDS: Final = frozenset({"kind", "label", "description", "colour", "labels"})


_NAME_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"


class AccountListViewSet(ApiViewSet):
    tag = "Accounts"
    capabilities = {"index": Capability.READ, "create": Capability.GRANT}

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
        parameters = self.read_query()
        shown = members.visible_accounts(self.token.user).filter(
            name__gt=parameters["cursor"] or "", name__startswith=parameters["name"]
        )
        if self.token.account_id is not None:
            shown = shown.filter(pk=self.token.account_id)
        matching = islice(
            (it for it in shown.iterator() if _is_wanted(it, parameters)), parameters["limit"] + 1
        )
        return self.answer_page(
            take_page(
                members.with_roles(self.token.user, matching), parameters["limit"], lambda one: one[0].name
            )
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
            return find_made_by_same_request(name, new.request_digest, taken), False

    def _create_unnamed(self, key: str, new: NewAccount) -> tuple[Account, bool]:
        digest = new.request_digest
        record = idempotency.find(self.token, key, digest, timezone.now()) if key else None
        if record is not None:
            return record.account, False
        with invalidating_catalogs():
            name = "a" + "".join(secrets.choice(_NAME_ALPHABET) for _ in range(15))
            account = accounts.add(name, new, by=self.by)
            if key:
                idempotency_keys.save(self.token, key, digest, account)
        return account, True


def find_made_by_same_request(name: str, digest: str, taken: AccountExists) -> Account:
    """Return the account created by the same request; raises ``taken`` if another request created it."""
    account = accounts.find(name)
    if account is None or account.request_digest != digest:
        raise taken
    return account


def _is_wanted(account: Account, parameters: dict[str, Any]) -> bool:
    if parameters["state"] and account.stage.value != parameters["state"]:
        return False
    for text in parameters["label"]:
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
        parameters = self.read_query()
        try:
            if self.is_async:
                deletion = removal.request(self.account, with_tables=parameters["with_tables"])
                return self.answer_job(jobs.start_requested(deletion, by=self.by))
            removal.remove(self.account.name, with_tables=parameters["with_tables"], by=self.by)
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


urlpatterns = [
    api_path("accounts", AccountListViewSet, "accounts", get="index", post="create"),
    api_path(ACCOUNT, AccountViewSet, "account", get="retrieve", patch="partial_update", delete="destroy"),
    api_path(f"{ACCOUNT}/freeze", AccountViewSet, "freeze", post="freeze"),
    api_path(f"{ACCOUNT}/thaw", AccountViewSet, "thaw", post="thaw"),
    api_path(
        f"{ACCOUNT}/service-properties",
        ServicePropertiesViewSet,
        "service-properties",
        get="retrieve",
        put="update",
    ),
]
