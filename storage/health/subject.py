"""Declaration of the subject "health": see storage.core.registry."""

from storage.core.notices import Condition, NoticeKind, Severity
from storage.core.subject import Subject
from storage.domain.translation import mark as _


class HealthNotice(NoticeKind):
    DISK_LOW = Condition(
        "disk.low",
        _("Disk almost full"),
        _("The disk of the data folder has %(free)s MiB left."),
        Severity.WARNING,
        "about/",
        "storage.health.conditions.find_full_disk",
        is_local=True,
        is_of_server=True,
    )


SUBJECT = Subject(name="health", stands_on=("activity",), notices=HealthNotice)
