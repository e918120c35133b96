"""Nothing any more; what its reverse did is done before the first step back: storage.server.migration."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("storage", "0039_clock")]
