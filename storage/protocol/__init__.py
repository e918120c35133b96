"""The Table service's REST protocol over HTTP: requests to domain values, domain values to answers.

A request enters at ``table_service.TableService``, which names the stages it goes through; ``progress`` observes them
from outside. ``authorization`` verifies account keys, shared access signatures and bearer tokens; ``entities``,
``tables``, ``batch`` and ``xml_operations`` carry out the operations; ``json_format``, ``atom`` and ``multipart`` read
and write bodies; ``errors`` writes refusals. Nothing here knows SQL or the ORM.

To add an operation:

1. Write its wire cases in tests/wire; they are the specification.
2. Name it in ``Operation`` and say what it requires, in storage.domain.access.
3. Resolve its method and path in storage.domain.requests.routes.
4. Write its statement in storage.sql, or for a rare operation a function with a transaction and an activity record.
5. Read the request and write the answer in the module of its noun here.
6. List it in docs/compatibility.md.
"""
