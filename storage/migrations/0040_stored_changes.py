"""Nothing; it was the last migration of the version, whose reverse the last one has now: _stored_changes."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("storage", "0039_clock")]
