"""The Table service's REST protocol over HTTP: requests to domain values, domain values to answers.

A request enters at ``table_service.TableService``, which names the stages it goes through. ``authorization`` verifies
account keys, shared access signatures and bearer tokens; ``entities``, ``tables``, ``batch`` and ``xml_operations``
carry out the operations; ``json_format``, ``atom`` and ``multipart`` read and write bodies; ``errors`` writes refusals.
Nothing here knows SQL or the ORM.
"""
