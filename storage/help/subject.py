"""What the subject of the help pages contributes: see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(name="help")
