"""Declaration of the subject "jobs": see storage.core.registry."""

from storage.core.notices import Condition, NoticeKind, Severity
from storage.core.subject import Page, Place, Subject
from storage.core.verbs import Act, Group, Verb
from storage.domain.translation import mark as _


class JobVerb(Verb):
    CANCEL = Act("job.cancel", Group.SETTINGS, "ban", _("%(who)s cancelled the job %(job)s"))
    PAUSE = Act("job.pause", Group.SETTINGS, "pause", _("%(who)s paused the job %(job)s"))
    RESUME = Act("job.resume", Group.SETTINGS, "play", _("%(who)s resumed the job %(job)s"))


class JobNotice(NoticeKind):
    FAILED = Condition(
        "job.failed",
        _("Job failed"),
        _("The job %(job)s failed. Failed jobs of this kind: %(number)s."),
        Severity.ERROR,
        "jobs/{job}/",
        "storage.jobs.conditions.find_failed",
    )


SUBJECT = Subject(
    name="jobs",
    stands_on=("activity",),
    api="storage.jobs.api",
    verbs=JobVerb,
    notices=JobNotice,
    tidying={"job files": "storage.jobs.files.tidy", "jobs": "storage.jobs.jobs.tidy"},
    pages=(Page(Place.SERVER, 30, "jobs:index", _("Jobs"), "hourglass", letter="J"),),
    urls=("console.jobs.urls",),
)
