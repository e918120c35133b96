"""Shared access signatures: listing, issuing and blocking them."""

import re
from typing import Any

from django.db import transaction
from django.http import Http404
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.access import sas as sas_operations
from storage.access.sas import Refusal, SasDescription, SasRefused
from storage.api.serializers import sas as serializers
from storage.api.serializers.sas import Signed
from storage.domain import sas
from storage.domain.access.roles import Capability
from storage.domain.errors import ResourceNotFound
from storage.domain.sas.known import KnownToken, TokenState, token_state
from storage.people import idempotency_keys
from storage.rest import idempotency, problems
from storage.rest.answers import page_of
from storage.rest.documentation import IDEMPOTENCY_KEY, operation
from storage.rest.paging import take_page
from storage.rest.problems import Problem, invalid
from storage.rest.views import AccountScopedViewSet

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
        wanted = self.read_query()
        table = wanted["table"].lower()
        found = [
            (known, state_)
            for known, state_ in self._with_states(sas_operations.known(self.account, timezone.now()))
            if (not wanted["state"] or state_ == wanted["state"])
            and (not table or known.table.lower() == table)
        ]
        fingerprints = [known.fingerprint for known, _ in found]
        start = fingerprints.index(wanted["cursor"]) + 1 if wanted["cursor"] in fingerprints else 0
        return self.answer_page(take_page(found[start:], wanted["limit"], lambda one: one[0].fingerprint))

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
        found = idempotency.find(self.token, key, digest, now) if key else None
        if found is not None:
            return self._sign_again(found.fingerprint), False
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
        wanted = SasDescription(**{**former, **self.read_body()})
        if not wanted.label:
            raise invalid("A token that is not registered yet needs a label.", "/label")
        sas_operations.describe(self.account, fingerprint, wanted, by=self.by)
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
        found = sas_operations.find(self.account, fingerprint, timezone.now())
        if found is None:
            raise Http404
        return self._with_states([found])[0]

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
