"""Memberships as the console kept them until now, in the same table."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("storage", "0007_append_only"),
        ("console", "0004_membership_moves"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Membership",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("role", models.PositiveSmallIntegerField(default=2)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "account",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="storage.account",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="memberships",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "db_table": "console_membership",
                        "constraints": [
                            models.UniqueConstraint(fields=("user", "account"), name="one_role_in_an_account")
                        ],
                    },
                )
            ]
        )
    ]
