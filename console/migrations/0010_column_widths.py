from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0009_automatic_time_zone")]

    operations = [
        migrations.AddField(model_name="propertyorder", name="widths", field=models.JSONField(default=dict)),
    ]
