from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("console", "0006_saved_queries")]

    operations = [
        migrations.RenameModel(old_name="StoredState", new_name="SavedUrl"),
        migrations.RenameIndex(
            model_name="savedurl", old_name="stored_states_by_use", new_name="saved_urls_by_use"
        ),
    ]
