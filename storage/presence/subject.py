"""Declaration of the subject "presence": see storage.core.registry."""

from storage.core.subject import Hook, Part, Slot, StyleSheet, Subject

SUBJECT = Subject(
    name="presence",
    stands_on=("people",),
    is_optional=True,
    style_sheet=StyleSheet.DATA,
    scripts={
        "data.js": "presence/presence.js",
        "entities/entity.js": "presence/presence.js",
    },
    parts=(
        Part(Slot.TABLE_PEOPLE, 10, "console/presence/_people.html"),
        Part(Slot.ENTITY_PEOPLE, 10, "console/presence/_also_here.html"),
    ),
    hooks={
        Hook.TABLE_EVENTS: "console.presence.streaming.follow_people",
        Hook.PRESENCE_NEWS: "console.presence.board.announce",
        Hook.VISIBILITY_CHANGED: "storage.presence.presence.announce",
        Hook.SERVICE_END: "console.presence.board.close",
    },
    documents=("collaboration",),
    urls=("console.presence.urls",),
)
