"""What the subject of declared accounts contributes: see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(name="manifest", api="storage.manifest.api")
