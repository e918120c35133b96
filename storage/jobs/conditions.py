"""Condition of the notice about failed jobs."""

from collections.abc import Iterator

from django.db.models import Count, Max

from storage.core.notices import Found, Look
from storage.jobs.jobs import ENDED_PREVIEW
from storage.jobs.states import JobStatus
from storage.models import Job


def find_failed(look: Look) -> Iterator[Found]:
    # until the user who started it has seen it
    failed = Job.objects.filter(status=JobStatus.FAILED, seen_at=None, ended_at__lte=look.now).exclude(
        ENDED_PREVIEW
    )
    grouped = failed.values("account_id", "kind").annotate(number=Count("pk"), last=Max("pk"))
    for it in grouped.order_by("account_id", "kind"):
        facts = {"job": it["last"], "job_kind": it["kind"], "number": it["number"]}
        yield Found(it["account_id"], it["kind"], facts, news=str(it["last"]))
