"""What the subject of copies from and to other services contributes: see storage.core.registry."""

from storage.core.subject import Page, Place, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _
from storage.domain.translation import mark_plural as ngettext


class CopyVerb(Verb):
    # from another service
    COPY_IN = Act(
        "entity.copy-in",
        Group.ENTITIES,
        "upload",
        _("%(who)s copied entities from another service"),
        several=ngettext(
            "%(who)s copied %(number)s entity from another service",
            "%(who)s copied %(number)s entities from another service",
        ),
        undone=ngettext("Undid changes to %(number)s entity.", "Undid changes to %(number)s entities."),
        undo=Undo(request="storage.undo.data_undo.request_revert", capability=Capability.MANAGE_TABLES),
    )
    # to another service
    COPY_OUT = Act(
        "entity.copy-out",
        Group.ENTITIES,
        "file-down",
        _("%(who)s copied entities to another service"),
        several=ngettext(
            "%(who)s copied %(number)s entity to another service",
            "%(who)s copied %(number)s entities to another service",
        ),
    )


SUBJECT = Subject(
    name="copies",
    verbs=CopyVerb,
    pages=(
        Page(Place.ACCOUNT_SEARCH, 30, "imports:copy", _("Copy tables"), "copy", Capability.MANAGE_ACCESS),
    ),
    jobs=(
        "storage.copies.copy_jobs.COPY_IN_JOB",
        "storage.copies.copy_jobs.COPY_OUT_JOB",
    ),
    api="storage.copies.api",
)
