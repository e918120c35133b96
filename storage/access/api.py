"""Keys, stored access policies and SAS tokens in the management API."""

import re
from typing import Any, Final

from django.db import transaction
from django.http import Http404, HttpResponse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.access import keys, policies, retired_keys, serializers
from storage.access import sas as sas_operations
from storage.access.keys import KeyState
from storage.access.sas import Refusal, SasDescription, SasRefused
from storage.access.serializers import Signed
from storage.accounts import accounts, sealed_keys
from storage.accounts.connection_strings import ConnectionFormat, connection_string
from storage.accounts.connection_strings import write_connection as write_form
from storage.accounts.serializers import KEYS
from storage.accounts.subject import AccountVerb
from storage.activity import activity
from storage.activity.activity import ChangedSince
from storage.domain import sas
from storage.domain.access.roles import Capability
from storage.domain.errors import ResourceNotFound
from storage.domain.sas.known import KnownToken, TokenState, token_state
from storage.people import idempotency_keys
from storage.rest import etags, idempotency, problems
from storage.rest.answers import page_of
from storage.rest.documentation import IDEMPOTENCY_KEY, IF_MATCH, PLAIN_TEXT, operation
from storage.rest.lookups import or_404
from storage.rest.paging import Page, take_page
from storage.rest.problems import Problem, invalid
from storage.rest.routing import ACCOUNT, TABLE, api_path
from storage.rest.views import AccountScopedViewSet


class KeyViewSet(AccountScopedViewSet):
    tag = "Keys"
    capabilities = {
        "index": Capability.MANAGE_ACCESS,
        "rotate": Capability.GRANT,
        "end": Capability.GRANT,
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
        if key not in KEYS:
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
        if key not in KEYS:
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
        parameters = self.read_query()
        number, base = _number(parameters["key"]), self._endpoint_at(parameters["host"])
        key = sealed_keys.encode_key(sealed_keys.keys_of(self.account)[number - 1])
        text = write_form(
            ConnectionFormat(parameters["form"]), connection_string(self.account.name, base, key)
        )
        self._record_reveal(number)
        if request.headers.get("Accept", "").startswith("text/plain"):
            return HttpResponse(text, content_type="text/plain; charset=utf-8")
        return self.answer({**parameters, "endpoint": base, "text": text})

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
        target = self.table()
        body = self.read_body()
        stored = policies.stored(target)
        seen = stored if etags.check_match(request, self.serialize({"items": stored})) else None
        try:
            policies.replace(target, body["items"], by=self.by, seen=seen)
        except ChangedSince:
            raise Problem(problems.PRECONDITION) from None
        return self.answer_with_etag(body)


_FINGERPRINT = re.compile("[0-9a-f]{64}")


class SasViewSet(AccountScopedViewSet):
    tag = "Shared access signatures"
    capabilities = {
        "index": Capability.MANAGE_ACCESS,
        "create": Capability.MANAGE_ACCESS,
        "retrieve": Capability.MANAGE_ACCESS,
        "partial_update": Capability.MANAGE_ACCESS,
        "block": Capability.MANAGE_ACCESS,
        "unblock": Capability.MANAGE_ACCESS,
    }

    @operation(
        "list_sas",
        "List shared access signatures",
        "Returns the registered tokens, newest first, then other tokens that were seen in requests.",
        answer=page_of(serializers.SasSerializer),
        query=serializers.SasListParameters,
    )
    def index(self, request: Request, account: str) -> Response:
        parameters = self.read_query()
        table = parameters["table"].lower()
        tokens = [
            (known, state_)
            for known, state_ in self._with_states(sas_operations.known(self.account, timezone.now()))
            if (not parameters["state"] or state_ == parameters["state"])
            and (not table or known.table.lower() == table)
        ]
        fingerprints = [known.fingerprint for known, _ in tokens]
        start = fingerprints.index(parameters["cursor"]) + 1 if parameters["cursor"] in fingerprints else 0
        return self.answer_page(
            take_page(tokens[start:], parameters["limit"], lambda one: one[0].fingerprint)
        )

    @operation(
        "issue_sas",
        "Issue a shared access signature",
        "The token is only shown in this response; the server keeps the SHA-256 of its signature. Repeating the request"
        " with the same `Idempotency-Key` signs and returns the same token again.",
        body=serializers.NewSasSerializer,
        answer=serializers.IssuedSasSerializer,
        is_creation=True,
        headers=[IDEMPOTENCY_KEY],
        problems=[problems.CONFLICT, problems.KEY_REUSED],
        example={"label": "nightly report", "table": "people", "permissions": "r", "ttl": "12h"},
    )
    def create(self, request: Request, account: str) -> Response:
        data = self.read_body()
        key, digest = idempotency.read_key(request), idempotency.request_digest(request)
        try:
            signed, is_new = idempotency.retry_concurrent(lambda: self._issue(data, key, digest))
        except SasRefused as refused:
            raise _refusal_problem(refused) from None
        return self.answer_created((*self._find(sas.fingerprint(signed)), signed), is_new=is_new)

    @transaction.atomic
    def _issue(self, data: dict[str, Any], key: str, digest: str) -> tuple[Signed, bool]:
        now = timezone.now()
        record = idempotency.find(self.token, key, digest, now) if key else None
        if record is not None:
            return self._sign_again(record.fingerprint), False
        token = serializers.unsigned_token(data, now)
        number = int(data["key"].removeprefix("key"))
        description = SasDescription(data["label"], data["purpose"], data["owner"])
        issued = sas_operations.issue(self.account, token, number, description, by=self.by)
        if key:
            idempotency_keys.save(self.token, key, digest, self.account, issued.fingerprint)
        return issued.token, True

    def _sign_again(self, fingerprint: str) -> Signed:
        signed = sas_operations.sign_again(self.account, fingerprint)
        if signed is None:
            detail = "The key that signed this token was rotated; issue a new token."
            raise Problem(problems.CONFLICT, detail)
        return signed

    @operation("get_sas", "Get a shared access signature", answer=serializers.SasSerializer)
    def retrieve(self, request: Request, account: str, fingerprint: str) -> Response:
        return self.answer(self._find(fingerprint))

    @operation(
        "update_sas",
        "Describe a shared access signature",
        "Sets the label, purpose and owner, which say what the token is for; members that are left out do not change. A"
        " token that was only seen in requests is registered by that.",
        body=serializers.SasChangeSerializer,
        answer=serializers.SasSerializer,
        example={"owner": "reporting team"},
    )
    def partial_update(self, request: Request, account: str, fingerprint: str) -> Response:
        known, _state = self._find(fingerprint)
        former = {name: getattr(known, name) for name in ("label", "purpose", "owner")}
        description = SasDescription(**{**former, **self.read_body()})
        if not description.label:
            raise invalid("A token that is not registered yet needs a label.", "/label")
        sas_operations.describe(self.account, fingerprint, description, by=self.by)
        return self.answer(self._find(fingerprint))

    @operation(
        "block_sas",
        "Block a shared access signature",
        "Every process refuses the token from the next request on. Azure cannot block a single token.",
        answer=serializers.SasSerializer,
    )
    def block(self, request: Request, account: str, fingerprint: str) -> Response:
        return self._set_blocked(fingerprint, blocked=True)

    @operation("unblock_sas", "Unblock a shared access signature", answer=serializers.SasSerializer)
    def unblock(self, request: Request, account: str, fingerprint: str) -> Response:
        return self._set_blocked(fingerprint, blocked=False)

    def _set_blocked(self, fingerprint: str, *, blocked: bool) -> Response:
        self._find(fingerprint)
        try:
            sas_operations.set_blocked(self.account, fingerprint, blocked=blocked, by=self.by)
        except ResourceNotFound:
            raise Http404 from None
        return self.answer(self._find(fingerprint))

    def _find(self, fingerprint: str) -> tuple[KnownToken, TokenState]:
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise Http404
        token = or_404(sas_operations.find(self.account, fingerprint, timezone.now()))
        return self._with_states([token])[0]

    def _with_states(self, found: list[KnownToken]) -> list[tuple[KnownToken, TokenState]]:
        now, policies = timezone.now(), sas_operations.policies_of(self.account)
        return [(known, token_state(known, policies, now)) for known in found]


def _refusal_problem(refused: SasRefused) -> Problem:
    match refused.reason:
        case Refusal.NO_TABLE:
            return invalid("The table does not exist.", "/table")
        case Refusal.NO_POLICY:
            return invalid("The table has no policy with this id.", "/policy")
    return invalid(refused.detail or "The service would refuse this token.")


TOKEN: Final = f"{ACCOUNT}/sas/<str:fingerprint>"
urlpatterns = [
    api_path(f"{ACCOUNT}/connection-string", KeyViewSet, "connection-string", get="connection"),
    api_path(f"{ACCOUNT}/keys", KeyViewSet, "keys", get="index"),
    api_path(f"{ACCOUNT}/keys/<str:key>/rotate", KeyViewSet, "key-rotate", post="rotate"),
    api_path(f"{ACCOUNT}/keys/<str:key>/end", KeyViewSet, "key-end", post="end"),
    api_path(f"{TABLE}/policies", PolicyViewSet, "policies", get="retrieve", put="update"),
    api_path(f"{ACCOUNT}/sas", SasViewSet, "sas-list", get="index", post="create"),
    api_path(TOKEN, SasViewSet, "sas", get="retrieve", patch="partial_update"),
    api_path(f"{TOKEN}/block", SasViewSet, "sas-block", post="block"),
    api_path(f"{TOKEN}/unblock", SasViewSet, "sas-unblock", post="unblock"),
]
