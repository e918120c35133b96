"""Condition of the notice about failing webhooks."""

from collections.abc import Iterator
from typing import Final

from storage.core.notices import Found, Look
from storage.models import Webhook

_WEBHOOK_FAILURES: Final = 3


def find_failing_webhooks(look: Look) -> Iterator[Found]:
    failing = Webhook.objects.filter(enabled=True, failures__gte=_WEBHOOK_FAILURES).exclude(failed_at=None)
    for webhook in failing.order_by("failed_at"):
        assert webhook.failed_at is not None
        facts = {
            "webhook": webhook.name,
            "failed_at": webhook.failed_at.isoformat(),
            "attempts": webhook.failures,
        }
        yield Found(webhook.account_id, str(webhook.pk), facts)
