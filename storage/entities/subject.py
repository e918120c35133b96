"""Declaration of the subject "entities": see storage.core.registry."""

from storage.core.subject import Page, Place, StyleSheet, Subject
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _
from storage.domain.translation import mark_plural as ngettext


class EntityVerb(Verb):
    INSERT = Act(
        "entity.insert",
        Group.ENTITIES,
        "circle-plus",
        _("%(who)s inserted %(entity)s into %(table)s"),
        several=ngettext(
            "%(who)s inserted %(number)s entity into %(table)s",
            "%(who)s inserted %(number)s entities into %(table)s",
        ),
        undone=ngettext(
            "Restored %(number)s entity in %(table)s.", "Restored %(number)s entities in %(table)s."
        ),
        undo=Undo("storage.entities.undo.undo_entities", Capability.MANAGE_TABLES),
        has_entities=True,
    )
    CHANGE = Act(
        "entity.change",
        Group.ENTITIES,
        "pencil",
        _("%(who)s changed %(entity)s in %(table)s"),
        several=ngettext(
            "%(who)s changed %(number)s entity in %(table)s",
            "%(who)s changed %(number)s entities in %(table)s",
        ),
        undone=ngettext(
            "Reverted %(number)s entity in %(table)s.", "Reverted %(number)s entities in %(table)s."
        ),
        undo=Undo("storage.entities.undo.undo_entities", Capability.MANAGE_TABLES),
        has_entities=True,
    )
    DELETE = Act(
        "entity.delete",
        Group.ENTITIES,
        "trash-2",
        _("%(who)s deleted %(entity)s from %(table)s"),
        several=ngettext(
            "%(who)s deleted %(number)s entity from %(table)s",
            "%(who)s deleted %(number)s entities from %(table)s",
        ),
        undone=ngettext(
            "Deleted %(number)s entity from %(table)s.", "Deleted %(number)s entities from %(table)s."
        ),
        undo=Undo("storage.entities.undo.undo_entities", Capability.MANAGE_TABLES),
        has_entities=True,
    )
    REKEY = Act(
        "entity.rekey",
        Group.ENTITIES,
        "arrow-left-right",
        _("%(who)s changed the key of an entity in %(table)s to %(entity)s"),
        undone=_("Restored the previous key of the entity in %(table)s."),
        undo=Undo("storage.entities.undo.undo_entities", Capability.MANAGE_TABLES),
        has_entities=True,
    )


SUBJECT = Subject(
    name="entities",
    stands_on=("activity", "accounts", "metrics", "tables", "history"),
    verbs=EntityVerb,
    daily=("console.grid.saved_urls.tidy",),
    pages=(
        Page(Place.TABLE, 10, "entities:index", _("Entities"), "table-2"),
        Page(Place.TABLE_SEARCH, 20, "entities:new", _("Add entity"), "plus", Capability.WRITE),
        Page(Place.TABLE_SEARCH, 30, "transfer:start", _("Paste rows"), "clipboard-paste", Capability.WRITE),
    ),
    style_sheet=StyleSheet.DATA,
    urls=("console.entities.urls",),
)
