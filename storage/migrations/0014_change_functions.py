from django.db import migrations


class Migration(migrations.Migration):
    """It gave every table the function for change sets of its time; 0034_moments gives it today's."""

    dependencies = [("storage", "0013_rename_models")]
