"""What the subject of short links contributes: see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(
    name="links",
    tidying={"links": "storage.links.links.tidy"},
)
