"""What the subject of the request log contributes: see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(name="requests")
