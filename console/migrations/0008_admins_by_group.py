"""Which sign-in provider made a user an admin, so that it can take that back."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0007_squashed_0010_column_widths")]

    operations = [
        migrations.AddField(
            "user", "admin_given_by", models.CharField(blank=True, db_default="", default="", max_length=200)
        ),
    ]
