"""What the subject of replicas of the database contributes: see storage.core.registry."""

from storage.core.subject import Page, Place, Subject
from storage.domain.translation import mark as _

SUBJECT = Subject(
    name="replicas",
    api="storage.replicas.api",
    pages=(Page(Place.SERVER, 70, "home:replicas", _("Replicas"), "database", is_for_admins=True),),
)
