"""Notices, their rules, readers and webhooks; and when keys were rotated, which the activity log forgets."""

from typing import Any, Final

from django.conf import settings
from django.db import migrations, models
from django.db.models import CASCADE, Q

from storage.migrations._operations import create_model

_NULL: Final[dict[str, Any]] = {"null": True, "default": None}
_EMPTY: Final[dict[str, Any]] = {"blank": True, "default": ""}


def _reference(to: str, **options: Any) -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(to, **{"on_delete": CASCADE, "related_name": "+", **options})


def _unique(*fields: str, name: str, **options: Any) -> models.UniqueConstraint:
    return models.UniqueConstraint(fields=fields, name=name, **options)


def note_rotations(apps: Any, schema_editor: Any) -> None:
    """Take the times from the activity log, as far as it is kept."""
    activity, rotation = (apps.get_model("storage", name) for name in ("Activity", "KeyRotation"))
    accounts = set(apps.get_model("storage", "Account").objects.values_list("pk", flat=True))
    found: dict[tuple[int, int], Any] = {}
    for account_id, detail, at in (
        activity.objects.filter(verb="key.rotate").order_by("pk").values_list("account_id", "detail", "at")
    ):
        numbers = (1, 2) if detail.get("declared") else (int(str(detail.get("key", "key0"))[-1:]),)
        found |= {(account_id, number): at for number in numbers if account_id in accounts and number}
    rotation.objects.bulk_create(
        rotation(account_id=account_id, number=number, rotated_at=at)
        for (account_id, number), at in found.items()
    )


class Migration(migrations.Migration):
    dependencies = [
        ("storage", "0046_recorded_requests"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        create_model(
            "KeyRotation",
            account=_reference("storage.account", db_index=False),
            number=models.PositiveSmallIntegerField(),
            rotated_at=models.DateTimeField(),
            constraints=[_unique("account", "number", name="one_rotation_of_a_key")],
        ),
        create_model(
            "Notice",
            kind=models.CharField(max_length=32),
            account=_reference("storage.account", null=True, db_index=False),
            user=_reference(settings.AUTH_USER_MODEL, null=True),
            subject=models.CharField(max_length=128, **_EMPTY),
            severity=models.CharField(max_length=8),
            facts=models.JSONField(default=dict),
            news=models.CharField(max_length=64, **_EMPTY),
            opened_at=models.DateTimeField(),
            news_at=models.DateTimeField(),
            found_at=models.DateTimeField(),
            resolved_at=models.DateTimeField(**_NULL),
            constraints=[
                _unique(
                    "kind",
                    "account",
                    "user",
                    "subject",
                    name="one_open_notice",
                    condition=Q(resolved_at=None),
                    nulls_distinct=False,
                )
            ],
            indexes=[
                models.Index(fields=["account", "-news_at"], name="notices_of_an_account"),
                models.Index(fields=["resolved_at"], name="notices_by_end"),
            ],
        ),
        create_model(
            "NoticeRule",
            account=_reference("storage.account", null=True),
            kind=models.CharField(max_length=32),
            is_on=models.BooleanField(default=True),
            threshold=models.FloatField(**_NULL),
            constraints=[_unique("account", "kind", name="one_rule_of_a_notice", nulls_distinct=False)],
        ),
        create_model(
            "NoticeReader",
            user=models.OneToOneField(
                settings.AUTH_USER_MODEL,
                on_delete=CASCADE,
                primary_key=True,
                serialize=False,
                related_name="+",
            ),
            seen_at=models.DateTimeField(**_NULL),
            address=models.CharField(max_length=254, **_EMPTY),
            confirmed_at=models.DateTimeField(**_NULL),
            code_digest=models.CharField(max_length=64, **_EMPTY),
            code_expires_at=models.DateTimeField(**_NULL),
            code_attempts=models.PositiveSmallIntegerField(default=0),
        ),
        create_model(
            "NoticeMute",
            user=_reference(settings.AUTH_USER_MODEL),
            account=_reference("storage.account", null=True),
            kind=models.CharField(max_length=32, **_EMPTY),
            subject=models.CharField(max_length=128, **_NULL),
            created_at=models.DateTimeField(auto_now_add=True),
            constraints=[
                _unique("user", "account", "kind", "subject", name="one_mute", nulls_distinct=False)
            ],
        ),
        create_model(
            "Webhook",
            account=_reference("storage.account", null=True),
            name=models.CharField(max_length=64),
            url=models.TextField(max_length=2000),
            kinds=models.JSONField(default=list),
            enabled=models.BooleanField(default=True),
            secret_sealed=models.BinaryField(),
            author=models.CharField(max_length=150),
            created_at=models.DateTimeField(auto_now_add=True),
            delivered_at=models.DateTimeField(**_NULL),
            failed_at=models.DateTimeField(**_NULL),
            failures=models.PositiveIntegerField(default=0),
            constraints=[_unique("account", "name", name="one_webhook_of_a_name", nulls_distinct=False)],
        ),
        create_model(
            "NoticeDelivery",
            webhook=_reference("storage.webhook", null=True, related_name="deliveries"),
            user=_reference(settings.AUTH_USER_MODEL, null=True),
            notice=_reference("storage.notice", null=True),
            event=models.CharField(max_length=8),
            message_id=models.UUIDField(unique=True),
            body=models.TextField(**_EMPTY),
            created_at=models.DateTimeField(),
            due_at=models.DateTimeField(null=True),
            attempts=models.PositiveSmallIntegerField(default=0),
            status=models.PositiveSmallIntegerField(**_NULL),
            error=models.CharField(max_length=256, **_EMPTY),
            delivered_at=models.DateTimeField(**_NULL),
            indexes=[
                models.Index(fields=["due_at"], condition=~Q(due_at=None), name="deliveries_to_do"),
                models.Index(fields=["created_at"], name="deliveries_by_age"),
            ],
        ),
        migrations.RunPython(note_rotations, migrations.RunPython.noop),
    ]
