"""Users, invitations, layouts, and saved and recent queries, as in 0.4; the table of the cache."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.validators import RegexValidator
from django.db import migrations, models

from storage.migrations._operations import Together, create_model, replacing


def create_cache_table(apps: Any, schema_editor: Any) -> None:
    call_command("createcachetable", database=schema_editor.connection.alias, verbosity=0)


class Migration(migrations.Migration):
    initial = True
    replaces = replacing(
        "console", "0001_initial", "0002_cache", "0003_people", "0004_membership_moves", "0005_queries"
    )

    dependencies = [("storage", "0001_squashed_0007_append_only")]

    operations = [
        Together(
            create_model(
                "User",
                password=models.CharField(verbose_name="password", max_length=128),
                last_login=models.DateTimeField(verbose_name="last login", blank=True, null=True),
                username=models.CharField(
                    verbose_name="user name",
                    max_length=150,
                    unique=True,
                    validators=[
                        RegexValidator(
                            "^[A-Za-z0-9._@+-]+\\Z", "Use only the letters a to z, digits and . _ @ + -"
                        )
                    ],
                ),
                is_admin=models.BooleanField(default=False),
                is_active=models.BooleanField(default=True),
                created_at=models.DateTimeField(auto_now_add=True),
                language=models.CharField(max_length=16, blank=True, default=""),
                time_zone=models.CharField(max_length=64, default="UTC"),
                theme=models.CharField(max_length=16, default="system"),
                density=models.CharField(max_length=16, default="default"),
                edit_mode=models.CharField(max_length=8, default="direct"),
                shortcuts=models.BooleanField(default=True),
            ),
            create_model(
                "Setup",
                token_hashes=models.JSONField(default=list),
                done_at=models.DateTimeField(null=True, default=None),
            ),
            create_model(
                "Invitation",
                token_hash=models.CharField(max_length=64, unique=True),
                note=models.CharField(max_length=150, blank=True, default=""),
                is_admin=models.BooleanField(default=False),
                role=models.PositiveSmallIntegerField(default=2),
                created_at=models.DateTimeField(auto_now_add=True),
                expires_at=models.DateTimeField(),
                used_at=models.DateTimeField(null=True, default=None),
                account=models.ForeignKey("storage.account", models.CASCADE, null=True, related_name="+"),
                invited_by=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+"),
                user=models.ForeignKey(
                    settings.AUTH_USER_MODEL, models.SET_NULL, null=True, default=None, related_name="+"
                ),
            ),
            create_model(
                "Bookmark",
                is_starred=models.BooleanField(default=False),
                opened_at=models.DateTimeField(null=True, default=None),
                table=models.ForeignKey(
                    "storage.table", models.CASCADE, related_name="+", db_constraint=False
                ),
                user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="bookmarks"),
                constraints=(
                    models.UniqueConstraint(name="one_bookmark_of_a_table", fields=("user", "table")),
                ),
            ),
            create_model(
                "ColumnLayout",
                name=models.CharField(max_length=64),
                tables=models.CharField(max_length=64),
                columns=models.JSONField(default=list),
                updated_at=models.DateTimeField(auto_now=True),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="+"),
                user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+"),
                constraints=(
                    models.UniqueConstraint(
                        name="one_layout_of_a_name",
                        fields=("account", "user", "name", "tables"),
                        nulls_distinct=False,
                    ),
                ),
            ),
            create_model(
                "SavedQuery",
                table_name=models.CharField(max_length=63),
                slug=models.CharField(max_length=64),
                name=models.CharField(max_length=64),
                description=models.TextField(max_length=2000, blank=True, default=""),
                content=models.JSONField(),
                is_shared=models.BooleanField(default=False),
                created_at=models.DateTimeField(auto_now_add=True),
                updated_at=models.DateTimeField(auto_now=True),
                account=models.ForeignKey("storage.account", models.CASCADE, related_name="+"),
                owner=models.ForeignKey(
                    settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_queries"
                ),
                constraints=(
                    models.UniqueConstraint(
                        name="one_query_of_an_address", fields=("account", "table_name", "slug")
                    ),
                ),
            ),
            create_model(
                "SavedQueryVersion",
                number=models.PositiveIntegerField(),
                content=models.JSONField(),
                author=models.CharField(max_length=150),
                saved_at=models.DateTimeField(auto_now_add=True),
                query=models.ForeignKey("console.savedquery", models.CASCADE, related_name="versions"),
                constraints=(
                    models.UniqueConstraint(name="one_version_of_a_number", fields=("query", "number")),
                ),
            ),
            create_model(
                "StoredState",
                key=models.CharField(primary_key=True, max_length=24, serialize=False),
                state=models.TextField(),
                created_at=models.DateTimeField(auto_now_add=True),
                used_at=models.DateTimeField(),
                indexes=(models.Index(name="stored_states_by_use", fields=("used_at",)),),
            ),
            create_model(
                "RecentQuery",
                digest=models.BinaryField(max_length=16),
                text=models.TextField(),
                used_at=models.DateTimeField(),
                table=models.ForeignKey(
                    "storage.table", models.CASCADE, related_name="+", db_constraint=False
                ),
                user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+"),
                indexes=(models.Index(name="recent_queries_of_a_user", fields=("user", "-used_at")),),
                constraints=(
                    models.UniqueConstraint(name="one_recent_query", fields=("user", "table", "digest")),
                ),
            ),
        ),
        # attempts to sign in are counted in it
        migrations.RunPython(create_cache_table, migrations.RunPython.noop),
    ]
