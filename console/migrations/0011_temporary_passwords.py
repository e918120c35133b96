"""Whether a password was generated for its user, who has to choose one of their own."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0010_presence")]

    operations = [
        migrations.AddField(
            "user", "has_temporary_password", models.BooleanField(default=False, db_default=False)
        ),
    ]
