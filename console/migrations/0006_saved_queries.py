import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0001_squashed_0005_queries")]

    operations = [
        migrations.RemoveConstraint(model_name="savedquery", name="one_query_of_an_address"),
        migrations.AddField(
            model_name="savedquery", name="deleted_at", field=models.DateTimeField(default=None, null=True)
        ),
        migrations.AlterField(
            model_name="savedquery",
            name="owner",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="saved_queries",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddConstraint(
            model_name="savedquery",
            constraint=models.UniqueConstraint(
                fields=("account", "table_name", "slug"),
                condition=models.Q(deleted_at=None),
                name="one_query_of_an_address",
            ),
        ),
    ]
