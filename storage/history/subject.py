"""What the subject of the history of entities contributes: see storage.core.registry."""

from storage.core.subject import Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _
from storage.domain.translation import mark_plural as ngettext


class HistoryVerb(Verb):
    # recorded changes, undone together
    REVERT = Act(
        "entity.revert",
        Group.ENTITIES,
        "undo-2",
        _("%(who)s undid changes to entities"),
        several=ngettext(
            "%(who)s undid changes to %(number)s entity", "%(who)s undid changes to %(number)s entities"
        ),
        undone=ngettext("Undid changes to %(number)s entity.", "Undid changes to %(number)s entities."),
        undo=Undo(request="storage.operations.undo.undo.request_revert", capability=Capability.MANAGE_TABLES),
    )


SUBJECT = Subject(name="history", verbs=HistoryVerb)
