"""Declaration of the subject "design": see storage.core.registry."""

from storage.core.subject import Subject

SUBJECT = Subject(
    name="design",
    stands_on=("entities", "metrics", "tables"),
    is_optional=True,
    urls=("console.design.urls",),
)
