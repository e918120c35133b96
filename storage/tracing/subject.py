"""Declaration of the subject "tracing": see storage.core.registry."""

from storage.core.subject import Hook, Subject

SUBJECT = Subject(
    name="tracing",
    stands_on=("health",),
    is_optional=True,
    hooks={Hook.TRACER: "storage.tracing.variables.start"},
    documents=("tracing",),
)
