import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename three models and keep their tables: during an upgrade, servers of the previous version still use them."""

    dependencies = [
        ("storage", "0008_squashed_0012_retired_key"),
    ]

    operations = [
        migrations.AlterModelTable(name="issuedtoken", table="storage_issuedtoken"),
        migrations.AlterModelTable(name="blockedtoken", table="storage_blockedtoken"),
        migrations.AlterModelTable(name="keyedrequest", table="storage_keyedrequest"),
        migrations.RenameModel("IssuedToken", "RegisteredSas"),
        migrations.RenameModel("BlockedToken", "BlockedSas"),
        migrations.RenameModel("KeyedRequest", "IdempotencyRecord"),
        migrations.AlterField(
            model_name="blockedsas",
            name="account",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="blocked_sas", to="storage.account"
            ),
        ),
        migrations.AlterField(
            model_name="registeredsas",
            name="account",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="registered_sas",
                to="storage.account",
            ),
        ),
    ]
