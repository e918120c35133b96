"""Comments on entities, tables and saved queries, and the mentions in them."""

from typing import Any, Final

from django.conf import settings
from django.db import migrations, models
from django.db.models import CASCADE, SET_NULL, Q

from storage.migrations._operations import create_model

_NULL: Final[dict[str, Any]] = {"null": True, "default": None}
_EMPTY: Final[dict[str, Any]] = {"blank": True, "default": ""}


class Migration(migrations.Migration):
    dependencies = [
        ("storage", "0048_metrics"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField("table", "has_comments", models.BooleanField(default=False, db_default=False)),
        create_model(
            "CommentThread",
            account=models.ForeignKey("storage.account", on_delete=CASCADE, db_index=False, related_name="+"),
            table=models.ForeignKey(
                "storage.table", on_delete=CASCADE, db_constraint=False, db_index=False, related_name="+"
            ),
            subject=models.CharField(max_length=8),
            partition_key=models.TextField(**_EMPTY),
            row_key=models.TextField(**_EMPTY),
            query=models.BigIntegerField(**_NULL),
            digest=models.BinaryField(max_length=16),
            created_at=models.DateTimeField(),
            resolved_at=models.DateTimeField(**_NULL),
            resolved_by=models.CharField(max_length=256, **_EMPTY),
            indexes=[
                models.Index(fields=["table", "digest"], name="threads_of_a_subject"),
                models.Index(fields=["account", "-id"], name="threads_of_an_account"),
            ],
        ),
        create_model(
            "Comment",
            thread=models.ForeignKey("storage.commentthread", on_delete=CASCADE, related_name="comments"),
            author=models.ForeignKey(
                settings.AUTH_USER_MODEL, on_delete=SET_NULL, null=True, db_index=False, related_name="+"
            ),
            author_name=models.CharField(max_length=256),
            text=models.TextField(max_length=4000),
            former_text=models.TextField(**_NULL),
            created_at=models.DateTimeField(),
            edited_at=models.DateTimeField(**_NULL),
            deleted_at=models.DateTimeField(**_NULL),
            indexes=[
                models.Index(fields=["author", "created_at"], name="comments_of_a_user"),
                models.Index(fields=["deleted_at"], condition=~Q(deleted_at=None), name="deleted_comments"),
            ],
        ),
        create_model(
            "CommentMention",
            comment=models.ForeignKey("storage.comment", on_delete=CASCADE, related_name="mentions"),
            user=models.ForeignKey(
                settings.AUTH_USER_MODEL, on_delete=CASCADE, db_index=False, related_name="+"
            ),
            seen_at=models.DateTimeField(**_NULL),
            indexes=[models.Index(fields=["user"], condition=Q(seen_at=None), name="mentions_not_seen")],
            constraints=[models.UniqueConstraint(fields=("comment", "user"), name="one_mention_of_a_user")],
        ),
    ]
