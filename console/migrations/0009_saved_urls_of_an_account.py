"""Saved URLs belong to an account, which may have a quota of them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0038_quotas"), ("console", "0008_admins_by_group")]

    operations = [
        migrations.AddField(
            "savedurl",
            "account",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="storage.account",
                db_index=False,
            ),
        ),
        migrations.AddIndex(
            "savedurl", models.Index(fields=("account", "-used_at"), name="saved_urls_of_an_account")
        ),
    ]
