"""Contributions of the subject of replicas of the database: see storage.core.registry."""

from storage.core.subject import Examination, Hook, Page, Place, Subject
from storage.domain.translation import mark as _

SUBJECT = Subject(
    name="replicas",
    stands_on=("health",),
    is_optional=True,
    api="storage.replicas.api",
    pages=(Page(Place.SERVER, 70, "replicas:index", _("Replicas"), "database", is_for_admins=True),),
    hooks={
        Hook.READ_ROUTER: "storage.replicas.replicas.make_router",
        Hook.ACCOUNT_WARNINGS: "console.replicas.views.find_warnings",
    },
    examinations=(Examination("replicas", 10, "storage.replicas.examination.examine"),),
    options=("REPLICAS", "REPLICA_LAG"),
    urls=("console.replicas.urls",),
)
