"""Whether a branch was made of all tables."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0034_moments")]

    operations = [
        migrations.AddField("branch", "is_whole", models.BooleanField(db_default=True, default=True))
    ]
