"""Deliveries to webhooks and e-mail addresses, stored with their content, then sent and retried."""

import logging
import random
import smtplib
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from email.utils import parseaddr
from typing import Final

from django.apps import apps
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.module_loading import import_string

from storage.domain.refusals import Refused
from storage.models import Notice, NoticeDelivery, Webhook
from storage.notices import presentation, readers, webhooks
from storage.notices.formats import WebhookFormat, write_body
from storage.notices.kinds import RETENTION_DAYS, NoticeEvent
from storage.notices.sending import Answer, Message, send
from storage.sql.background import try_job_lock

logger = logging.getLogger(__name__)

# from one attempt to the next, with up to a fifth more, so that those that failed together do not come together again
RETRIES: Final = (
    timedelta(seconds=10),
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=6),
    timedelta(hours=12),
)
_AT_ONCE: Final = 4  # requests to webhooks
_ROUND: Final = 8  # deliveries, after which the next ones are looked for
_ROUND_OF_ONE: Final = (
    2  # deliveries to one webhook in a round, so that a slow one does not hold up the others
)
_LOOKED_AT: Final = 500
_KEPT: Final = 200  # deliveries of a webhook that are shown
_LOCK: Final = "deliveries"


def announce(notice: Notice, event: NoticeEvent, now: datetime) -> None:
    """Queue the deliveries of a notice event, in the caller's transaction."""
    if notice.user_id is None:
        receivers = Webhook.objects.filter(Q(account=None) | Q(account=notice.account_id), enabled=True)
        for webhook in receivers:
            if not webhook.kinds or notice.kind in webhook.kinds:
                _create(webhook, event, now, notice=notice)
    if event is not NoticeEvent.RESOLVED and settings.SMTP is not None:
        NoticeDelivery.objects.bulk_create(
            NoticeDelivery(
                user_id=user_id,
                notice=notice,
                event=event,
                message_id=uuid.uuid4(),
                created_at=now,
                due_at=now,
            )
            for user_id in readers.to_mail(notice)
        )


def test(webhook: Webhook, now: datetime) -> NoticeDelivery:
    """Send a test to a webhook at once and return the delivery; it is not retried."""
    delivery = _create(webhook, NoticeEvent.TEST, now)
    _record(delivery, send(_message(delivery)), now)
    return delivery


def _create(
    webhook: Webhook, event: NoticeEvent, now: datetime, *, notice: Notice | None = None
) -> NoticeDelivery:
    message_id = uuid.uuid4()
    return NoticeDelivery.objects.create(
        webhook=webhook,
        notice=notice,
        event=event,
        message_id=message_id,
        body=write_body(webhook.format, event, now, None if notice is None else presentation.view(notice)),
        created_at=now,
        due_at=None if event is NoticeEvent.TEST else now,
    )


# sending


def deliver(now: Callable[[], datetime] = timezone.now) -> bool:
    """Send due deliveries, unless another process does; return whether any was sent."""
    if not _due(now()).exists():
        return False
    sent = False
    with try_job_lock(_LOCK) as is_alone:
        while is_alone and (deliveries := _next_round(now())):
            _deliver_some(deliveries, now)
            sent = True
    return sent


def _due(now: datetime) -> QuerySet[NoticeDelivery]:
    return NoticeDelivery.objects.filter(due_at__lte=now)


def _next_round(now: datetime) -> list[NoticeDelivery]:
    """Return the deliveries to send next; all due ones of a user go into a single e-mail."""
    due = _due(now).select_related("webhook", "webhook__account", "notice", "notice__account")
    counted: defaultdict[tuple[int | None, int | None], int] = defaultdict(int)
    deliveries = []
    for delivery in due.order_by("due_at", "pk")[:_LOOKED_AT]:
        counted[delivery.webhook_id, delivery.user_id] += 1
        is_mail = delivery.user_id is not None
        if is_mail or (
            counted[delivery.webhook_id, None] <= _ROUND_OF_ONE and sum(counted.values()) <= _ROUND
        ):
            deliveries.append(delivery)
    return deliveries


def _deliver_some(deliveries: Iterable[NoticeDelivery], now: Callable[[], datetime]) -> None:
    mails: defaultdict[int, list[NoticeDelivery]] = defaultdict(list)
    to_webhooks = []
    for delivery in deliveries:
        if delivery.user_id is not None:
            mails[delivery.user_id].append(delivery)
        elif _is_wanted(delivery):
            to_webhooks.append(delivery)
        else:
            _end(delivery, "the webhook is off")
    # the threads only send: they have no connection to the database
    with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="webhook") as threads:
        answers = threads.map(send, map(_message, to_webhooks))
        for delivery, answer in zip(to_webhooks, answers, strict=True):
            _record(delivery, answer, now())
    for user_id, several in mails.items():
        _mail(user_id, several, now())


def _is_wanted(delivery: NoticeDelivery) -> bool:
    return delivery.webhook is not None and delivery.webhook.enabled


def _message(delivery: NoticeDelivery) -> Message:
    webhook = delivery.webhook
    assert webhook is not None
    try:
        secret = webhooks.open_secret(webhook)
    except Refused:
        secret = b""  # sealed with another secret of the server: it cannot be signed
    is_signed = webhook.format not in (WebhookFormat.SLACK, WebhookFormat.TEAMS)
    return Message(webhook.url, secret, str(delivery.message_id), delivery.body.encode(), is_signed)


@transaction.atomic
def _record(delivery: NoticeDelivery, answer: Answer, now: datetime) -> None:
    """Record an attempt to deliver to a webhook, and schedule the next one."""
    assert delivery.webhook is not None
    # answers of the former address say nothing about the present one
    webhook = Webhook.objects.filter(pk=delivery.webhook.pk, url=delivery.webhook.url)
    is_test = delivery.event == NoticeEvent.TEST
    delivery.attempts += 1
    delivery.status, delivery.error = answer.status, answer.error[:256]
    if not answer.error:
        delivery.due_at, delivery.delivered_at = None, now
        webhook.update(failures=0, failed_at=None, delivered_at=now)
    else:
        delivery.due_at = None if is_test else _next_attempt(delivery.attempts, now)
        if not is_test:
            webhook.update(failures=F("failures") + 1, failed_at=Coalesce("failed_at", now))
    if answer.is_gone:
        delivery.due_at = None
        webhook.update(enabled=False)
    _save(delivery, "attempts", "status", "error", "due_at", "delivered_at")


def _save(delivery: NoticeDelivery, *names: str) -> None:
    """Save the result of a delivery, unless its webhook or user was deleted meanwhile."""
    NoticeDelivery.objects.filter(pk=delivery.pk).update(**{name: getattr(delivery, name) for name in names})


def _next_attempt(attempts: int, now: datetime) -> datetime | None:
    if attempts > len(RETRIES):
        return None
    return now + RETRIES[attempts - 1] * random.uniform(1.0, 1.2)  # noqa: S311


def _end(delivery: NoticeDelivery, error: str) -> None:
    delivery.due_at, delivery.error = None, error
    _save(delivery, "due_at", "error")


def _mail(user_id: int, several: list[NoticeDelivery], now: datetime) -> None:
    """Send one e-mail about several notices, except those resolved or muted meanwhile."""
    person = apps.get_model(settings.AUTH_USER_MODEL)._default_manager.filter(pk=user_id).first()
    if person is None:
        return
    address = readers.confirmed_address(user_id)
    about = {it.notice_id for it in several if it.notice_id}
    notices = list(readers.current(person).filter(pk__in=about))
    if not address or not notices:
        for delivery in several:
            _end(delivery, "")
        return
    subject, body = import_string(settings.NOTICE_MAIL)(person, notices)
    error = send_mail(address, subject, body, message_id=str(several[0].message_id))
    for delivery in several:
        delivery.attempts += 1
        delivery.error = error[:256]
        delivery.due_at = _next_attempt(delivery.attempts, now) if error else None
        delivery.delivered_at = None if error else now
        _save(delivery, "attempts", "error", "due_at", "delivered_at")


def send_mail(address: str, subject: str, body: str, *, message_id: str = "") -> str:
    """Send an e-mail; return the error, or an empty string."""
    headers = {"Auto-Submitted": "auto-generated"}
    if message_id:
        _name, sender = parseaddr(settings.DEFAULT_FROM_EMAIL)  # there may be a name before the address
        headers["Message-ID"] = f"<{message_id}@{sender.rpartition('@')[2]}>"
    try:
        EmailMessage(subject, body, to=[address], headers=headers).send()
    except (OSError, smtplib.SMTPException, ValueError) as error:
        logger.warning("An e-mail could not be sent: %s", error)
        return str(error) or type(error).__name__
    return ""


# reading and keeping


def for_webhook(webhook: Webhook) -> list[NoticeDelivery]:
    """Return the latest deliveries of a webhook, newest first."""
    found = NoticeDelivery.objects.filter(webhook=webhook).select_related("notice", "notice__account")
    return list(found.order_by("-pk")[:_KEPT])


def tidy(now: datetime) -> None:
    NoticeDelivery.objects.filter(due_at=None, created_at__lt=now - timedelta(days=RETENTION_DAYS)).delete()
