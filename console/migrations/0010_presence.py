"""Whether others see which tables a user has open."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0009_saved_urls_of_an_account")]

    operations = [
        migrations.AddField("user", "hides_presence", models.BooleanField(default=False, db_default=False)),
    ]
