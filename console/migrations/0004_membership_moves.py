"""Memberships are storage's from here on, where every door finds them; their table stays where it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0003_people")]

    operations = [
        migrations.SeparateDatabaseAndState(state_operations=[migrations.DeleteModel("Membership")]),
        migrations.AlterField(
            model_name="invitation",
            name="role",
            field=models.PositiveSmallIntegerField(default=2),
        ),
    ]
