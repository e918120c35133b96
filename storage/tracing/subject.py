"""What the subject of traces contributes: see storage.core.registry."""

from storage.core.subject import Hook, Subject

SUBJECT = Subject(
    name="tracing",
    is_optional=True,
    hooks={Hook.TELEMETRY: "storage.runtime.telemetry.variables.start"},
    documents=("tracing",),
)
