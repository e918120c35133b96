"""Which sign-in provider gave a role, so that it can take the role back."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("storage", "0036_one_record")]

    operations = [
        migrations.AddField(
            "membership", "given_by", models.CharField(blank=True, db_default="", default="", max_length=200)
        ),
    ]
