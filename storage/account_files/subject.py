"""What the subject of whole accounts contributes: see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(name="account_files")
