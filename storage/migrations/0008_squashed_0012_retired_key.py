"""Members, API tokens, idempotency records, shared access signatures and retired keys: as in 0.4.

The number 0011 was never used. The table of memberships has the name of the application that they were in at first.
"""

from django.conf import settings
from django.db import migrations, models

from storage.migrations._operations import Together, create_model, replacing


class Migration(migrations.Migration):
    replaces = replacing(
        "storage", "0008_membership", "0009_tokens", "0010_management_api", "0012_retired_key"
    )

    dependencies = [
        ("storage", "0001_squashed_0007_append_only"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        Together(
            migrations.AddField("account", "expires_at", models.DateTimeField(default=None, null=True)),
            migrations.AddField("account", "labels", models.JSONField(default=dict)),
            migrations.AddField("account", "frozen_at", models.DateTimeField(default=None, null=True)),
            migrations.AddField(
                "account", "request_digest", models.CharField(blank=True, default="", max_length=64)
            ),
            create_model(
                "Membership",
                role=models.PositiveSmallIntegerField(default=2),
                created_at=models.DateTimeField(auto_now_add=True),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="+"),
                user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships"),
                db_table="console_membership",
                constraints=(
                    models.UniqueConstraint(name="one_role_in_an_account", fields=("user", "account")),
                ),
            ),
            create_model(
                "ApiToken",
                name=models.CharField(max_length=64),
                scope=models.CharField(max_length=8),
                digest=models.CharField(max_length=64, unique=True),
                prefix=models.CharField(max_length=16),
                created_at=models.DateTimeField(auto_now_add=True),
                expires_at=models.DateTimeField(null=True, default=None),
                last_used_at=models.DateTimeField(null=True, default=None),
                last_used_from=models.CharField(max_length=64, blank=True, default=""),
                revoked_at=models.DateTimeField(null=True, default=None),
                account=models.ForeignKey("storage.account", models.CASCADE, null=True, related_name="+"),
                user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens"),
                window_requests=models.PositiveIntegerField(default=0),
                window_started_at=models.DateTimeField(null=True, default=None),
            ),
            create_model(
                "BlockedToken",
                fingerprint=models.CharField(max_length=64),
                author=models.CharField(max_length=150),
                blocked_at=models.DateTimeField(auto_now_add=True),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="blocked_tokens"),
                constraints=(
                    models.UniqueConstraint(name="one_blocked_token", fields=("account", "fingerprint")),
                ),
            ),
            create_model(
                "IssuedToken",
                fingerprint=models.CharField(max_length=64),
                kind=models.CharField(max_length=8),
                table_name=models.CharField(max_length=63, blank=True, default=""),
                parameters=models.JSONField(),
                label=models.CharField(max_length=64),
                purpose=models.TextField(max_length=2000, blank=True, default=""),
                owner=models.CharField(max_length=150, blank=True, default=""),
                author=models.CharField(max_length=150),
                created_at=models.DateTimeField(auto_now_add=True),
                expires_at=models.DateTimeField(null=True, default=None),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="issued_tokens"),
                indexes=(models.Index(name="issued_tokens_by_expiry", fields=("expires_at",)),),
                constraints=(
                    models.UniqueConstraint(name="one_issued_token", fields=("account", "fingerprint")),
                ),
            ),
            create_model(
                "KeyedRequest",
                key=models.CharField(max_length=255),
                digest=models.CharField(max_length=64),
                fingerprint=models.CharField(max_length=64, blank=True, default=""),
                created_at=models.DateTimeField(auto_now_add=True),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="+"),
                token=models.ForeignKey("storage.apitoken", models.CASCADE, related_name="+"),
                indexes=(models.Index(name="keyed_requests_by_time", fields=("created_at",)),),
                constraints=(models.UniqueConstraint(name="one_request_of_a_key", fields=("token", "key")),),
            ),
            create_model(
                "RetiredKey",
                number=models.PositiveSmallIntegerField(),
                sealed=models.BinaryField(),
                retired_at=models.DateTimeField(),
                accepted_until=models.DateTimeField(),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="retired_keys"),
            ),
        )
    ]
