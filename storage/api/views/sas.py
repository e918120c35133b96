"""Shared access signatures: issuing, listing, blocking them."""

import re
from typing import Any

from django.db import transaction
from django.http import Http404
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from storage.api import idempotency, problems
from storage.api.documentation import IDEMPOTENCY_KEY, operation
from storage.api.paging import Page, cut, respond
from storage.api.problems import Problem, invalid
from storage.api.serializers import sas as serializers
from storage.api.views.base import AccountViews, made
from storage.domain import sas
from storage.domain.access.roles import Capability
from storage.domain.errors import ResourceNotFound
from storage.domain.sas import AccountSas, TableSas
from storage.domain.sas.known import KnownToken, token_state
from storage.operations import sas as sas_operations
from storage.operations.sas import Refusal, SasDescription, SasRefused

_FINGERPRINT = re.compile("[0-9a-f]{64}")
Signed = TableSas | AccountSas


class SasViews(AccountViews):
    capabilities = {
        "index": Capability.MANAGE_ACCESS,
        "create": Capability.MANAGE_ACCESS,
        "retrieve": Capability.MANAGE_ACCESS,
        "block": Capability.MANAGE_ACCESS,
        "unblock": Capability.MANAGE_ACCESS,
    }

    @operation(
        "list_sas",
        "List shared access signatures",
        "Those made here, the newest first, then those made elsewhere that were used.",
        answer=serializers.SasList,
        parameters=[serializers.SasParameters],
    )
    def index(self, request: Request, account: str) -> Response:
        wanted = self.parameters(serializers.SasParameters)
        found = [
            written
            for written in self._written(sas_operations.known(self.account, timezone.now()))
            if written["token_state"] == (wanted["token_state"] or written["token_state"])
            and written["table"].lower() == (wanted["table"].lower() or written["table"].lower())
        ]
        names = [one["fingerprint"] for one in found]
        start = names.index(wanted["cursor"]) + 1 if wanted["cursor"] in names else 0
        page = cut(found[start:], wanted["limit"], lambda one: str(one["fingerprint"]))
        return respond(request, Page(page.items, page.end))

    @operation(
        "issue_sas",
        "Issue a shared access signature",
        "The token is told this once; only the SHA-256 of its signature is kept. The same request with the same"
        " `Idempotency-Key` is answered with the same token, which is signed again for that.",
        body=serializers.NewSas,
        answer=serializers.IssuedSas,
        is_creation=True,
        parameters=[IDEMPOTENCY_KEY],
        problems=[problems.CONFLICT, problems.KEY_REUSED],
        example={"label": "nightly report", "table": "people", "permissions": "r", "ttl": "12h"},
    )
    def create(self, request: Request, account: str) -> Response:
        data = self.body(serializers.NewSas)
        key, digest = idempotency.read_key(request), idempotency.digest_of(request)
        try:
            signed, is_new = idempotency.once(lambda: self._issued(data, key, digest))
        except SasRefused as refused:
            raise _refused(refused) from None
        return made(self._issued_answer(signed), is_new=is_new)

    @transaction.atomic
    def _issued(self, data: dict[str, Any], key: str, digest: str) -> tuple[Signed, bool]:
        now = timezone.now()
        found = idempotency.find(self.token, key, digest, now) if key else None
        if found is not None:
            return self._again(found.fingerprint), False
        token = serializers.token_of(data, now)
        number = int(data["key"].removeprefix("key"))
        description = SasDescription(data["label"], data["purpose"], data["owner"])
        issued = sas_operations.issue(self.account, token, number, description, by=self.by)
        if key:
            idempotency.keep(self.token, key, digest, self.account, issued.fingerprint)
        return issued.token, True

    def _again(self, fingerprint: str) -> Signed:
        signed = sas_operations.sign_again(self.account, fingerprint)
        if signed is None:
            raise Problem(problems.CONFLICT, "The key that signed this token was rotated; issue another.")
        return signed

    def _issued_answer(self, signed: Signed) -> dict[str, Any]:
        text = sas.write(signed)
        where = self.endpoint()
        address = f"{where}/{signed.table}" if isinstance(signed, TableSas) else where
        return {
            **self._one(sas.fingerprint(signed)),
            "token": text,
            "url": f"{address}?{text}",
            "connection_string": f"TableEndpoint={where};SharedAccessSignature={text}",
        }

    @operation("get_sas", "Get a shared access signature", answer=serializers.Sas)
    def retrieve(self, request: Request, account: str, fingerprint: str) -> Response:
        return Response(self._one(fingerprint))

    @operation(
        "block_sas",
        "Block a shared access signature",
        "It is refused from the next request on, by every process. The cloud's service cannot do this.",
        answer=serializers.Sas,
    )
    def block(self, request: Request, account: str, fingerprint: str) -> Response:
        return self._set_blocked(fingerprint, blocked=True)

    @operation("unblock_sas", "Unblock a shared access signature", answer=serializers.Sas)
    def unblock(self, request: Request, account: str, fingerprint: str) -> Response:
        return self._set_blocked(fingerprint, blocked=False)

    def _set_blocked(self, fingerprint: str, *, blocked: bool) -> Response:
        self._one(fingerprint)
        try:
            sas_operations.set_blocked(self.account, fingerprint, blocked=blocked, by=self.by)
        except ResourceNotFound:
            raise Http404 from None
        return Response(self._one(fingerprint))

    def _one(self, fingerprint: str) -> dict[str, Any]:
        if not _FINGERPRINT.fullmatch(fingerprint):
            raise Http404
        found = sas_operations.find(self.account, fingerprint, timezone.now())
        if found is None:
            raise Http404
        return self._written([found])[0]

    def _written(self, found: list[KnownToken]) -> list[dict[str, Any]]:
        now, policies = timezone.now(), sas_operations.policies_of(self.account)
        return [_write(token, token_state(token, policies, now)) for token in found]


def _write(known: KnownToken, standing: str) -> dict[str, Any]:
    return {
        "fingerprint": known.fingerprint,
        "kind": sas_operations.kind_of(known.token),
        "table": known.table,
        "label": known.label,
        "purpose": known.purpose,
        "owner": known.owner,
        "author": known.author,
        "is_registered": known.is_registered,
        "state": str(standing),
        "key": None if known.key is None else f"key{known.key}",
        "parameters": dict(sas.to_parameters(known.token)),
        "created_at": known.created,
        "last_used_at": known.last_used,
        "requests_24h": known.uses,
    }


def _refused(refused: SasRefused) -> Problem:
    match refused.reason:
        case Refusal.NO_TABLE:
            return invalid("There is no such table.", "/table")
        case Refusal.NO_POLICY:
            return invalid("There is no such policy.", "/policy")
    return invalid(refused.detail or "The token would be refused.")
