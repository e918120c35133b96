"""Webhooks of accounts and of the server; the signing secret is shown once, and stored encrypted."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from storage.accounts import locking, quotas, sealed_keys
from storage.activity import activity
from storage.core.quotas import WEBHOOKS
from storage.core.verbs import Verb
from storage.domain.access.actor import Actor
from storage.domain.refusals import Reason, Refused
from storage.models import Account, Webhook
from storage.notices.formats import guess_format
from storage.notices.kinds import kinds_of, kinds_of_accounts
from storage.notices.sending import read_url, write_secret
from storage.notices.subject import NoticeVerb

_SECRET_LENGTH: Final = 32  # bytes


class WebhookError(Refused):
    """A webhook has an invalid value."""


@dataclass(frozen=True, slots=True)
class WebhookFields:
    """User-defined fields of a webhook."""

    name: str
    url: str
    kinds: Collection[str] = ()  # kinds of notices to send; empty for all
    enabled: bool = True
    format: str = ""  # empty: the one that the host of the URL takes


def for_account(account: Account | None) -> QuerySet[Webhook]:
    """Select the webhooks of an account, or those of the server, by name."""
    return Webhook.objects.filter(account=account).order_by("name")


def find(account: Account | None, pk: int) -> Webhook | None:
    return for_account(account).filter(pk=pk).select_related("account").first()


@transaction.atomic
def create(account: Account | None, fields: WebhookFields, *, by: Actor) -> tuple[str, Webhook]:
    """Create a webhook and return its secret, which cannot be read again; raises WebhookError."""
    if account is not None:
        locking.lock(account)
    most = quotas.limit(WEBHOOKS)
    if for_account(account).count() >= most:
        raise WebhookError(Reason.TOO_MANY_WEBHOOKS, most=most)
    webhook = Webhook(account=account, author=by.name[:150], secret_sealed=b"")
    _set(webhook, account, fields)
    _store(webhook)
    secret = _renew(webhook)
    _record(NoticeVerb.WEBHOOK_CREATE, webhook, by)
    return secret, webhook


@transaction.atomic
def change(webhook: Webhook, fields: WebhookFields, *, by: Actor) -> Webhook:
    """Change the user-defined fields of a webhook; enabling it again resets its failures. Raises WebhookError."""
    locked = _lock(webhook)
    before = _fields(locked)
    _set(locked, locked.account, fields)
    if before == _fields(locked):
        return locked
    if not before["enabled"] or before["url"] != locked.url:
        locked.failures, locked.failed_at = 0, None
    _store(locked)
    changed = [name for name, value in _fields(locked).items() if value != before[name]]
    _record(NoticeVerb.WEBHOOK_CHANGE, locked, by, changed)
    return locked


@transaction.atomic
def renew_secret(webhook: Webhook, *, by: Actor) -> str:
    """Replace the secret immediately and return the new one, which cannot be read again."""
    locked = _lock(webhook)
    secret = _renew(locked)
    _record(NoticeVerb.WEBHOOK_CHANGE, locked, by, ["secret"])
    return secret


@transaction.atomic
def remove(webhook: Webhook, *, by: Actor) -> None:
    found = _lock(webhook)
    _record(NoticeVerb.WEBHOOK_DELETE, found, by)
    found.delete()


def open_secret(webhook: Webhook) -> bytes:
    """Decrypt the signing secret; raises Refused if it was encrypted with another server secret."""
    return sealed_keys.unseal_as(_sealed_for(webhook), webhook.secret_sealed)


def _renew(webhook: Webhook) -> str:
    secret = os.urandom(_SECRET_LENGTH)
    webhook.secret_sealed = sealed_keys.seal(_sealed_for(webhook), secret)
    webhook.save(update_fields=("secret_sealed",))
    return write_secret(secret)


def reseal() -> None:
    sealed_keys.reseal(Webhook.objects.select_related("account"), _sealed_for, "secret_sealed")


def _sealed_for(webhook: Webhook) -> str:
    # no account has such a name
    return f"webhook {webhook.pk}"


def _lock(webhook: Webhook) -> Webhook:
    locked = (
        Webhook.objects.select_for_update(of=("self",))
        .select_related("account")
        .filter(pk=webhook.pk)
        .first()
    )
    if locked is None:
        raise WebhookError(Reason.NO_WEBHOOK, webhook=webhook.name)
    return locked


def check(account: Account | None, fields: WebhookFields) -> None:
    """Raise WebhookError for an invalid address or notice kind."""
    if read_url(fields.url) is None:
        raise WebhookError(Reason.WEBHOOK_URL)
    unknown = sorted(set(fields.kinds) - set(kinds_for(account)))
    if unknown:
        raise WebhookError(Reason.NO_NOTICE_KIND, kind=unknown[0])


def _set(webhook: Webhook, account: Account | None, wanted: WebhookFields) -> None:
    check(account, wanted)
    webhook.name, webhook.url, webhook.enabled = wanted.name, wanted.url, wanted.enabled
    webhook.format = wanted.format or guess_format(wanted.url)
    webhook.kinds = [kind for kind in kinds_for(account) if kind in wanted.kinds]


def kinds_for(account: Account | None) -> list[str]:
    """Return the notice kinds that a webhook can receive; the server's webhooks receive all."""
    kinds = [*kinds_of_accounts(), *([] if account else kinds_of(None))]
    return list(map(str, kinds))


def _store(webhook: Webhook) -> None:
    try:
        with transaction.atomic():
            webhook.save()
    except IntegrityError:
        raise WebhookError(Reason.WEBHOOK_EXISTS, webhook=webhook.name) from None


def _fields(webhook: Webhook) -> dict[str, object]:
    return {name: getattr(webhook, name) for name in ("name", "url", "kinds", "enabled", "format")}


def _record(verb: Verb, webhook: Webhook, by: Actor, changed: Collection[str] = ()) -> None:
    detail = {"webhook": webhook.name, **({"changed": list(changed)} if changed else {})}
    activity.record(verb, by, account=webhook.account, detail=detail)
