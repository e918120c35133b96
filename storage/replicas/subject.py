"""What the subject of replicas of the database contributes: see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(name="replicas")
