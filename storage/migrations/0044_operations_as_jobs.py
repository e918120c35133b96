"""Operations that were killed are ended by jobs, which take over what the table of long operations has of them."""

import uuid
from typing import Any

from django.db import migrations
from django.utils import timezone

_OF_WHOLE_ACCOUNTS = ("branch.create", "account.create", "account.delete")
_OF_ACTOR = ("address", "agent", "request_id")


def end_what_was_killed(apps: Any, schema_editor: Any) -> None:
    """Delete accounts that are incomplete by jobs, and record what other operations had done."""
    job, activity = apps.get_model("storage", "Job"), apps.get_model("storage", "Activity")
    for left in apps.get_model("storage", "LongOperation").objects.select_related("account").order_by("pk"):
        account = left.account
        if left.verb in _OF_WHOLE_ACCOUNTS:
            job.objects.create(
                kind="account.delete",
                account=account,
                actor=left.actor,
                request_id=uuid.uuid4(),
                arguments={
                    "account": account.pk,
                    "name": account.name,
                    "with_tables": True,
                    "over_at": "",
                },
                state={"tables": list(left.detail.get("tables", ()))},
                status="waiting",
                started_at=timezone.now(),
            )
        elif left.detail:
            activity.objects.create(
                at=timezone.now(),
                verb=left.verb,
                account=account,
                account_name=account.name,
                table_id=left.table_id,
                actor_kind=left.actor["kind"],
                actor=left.actor["name"],
                **{name: left.actor.get(name, "") for name in _OF_ACTOR},
                detail={**left.detail, "interrupted": True},
            )


class Migration(migrations.Migration):
    dependencies = [("storage", "0043_jobs")]

    operations = [
        migrations.RunPython(end_what_was_killed, migrations.RunPython.noop),
        migrations.DeleteModel("LongOperation"),
    ]
