"""Comments on entities, tables and saved queries.

They are threads of plain text, with mentions that become notices. A thread is found by its table and the digest of its
subject, so it survives the deletion of an entity and is there again when the entity is restored. It is deleted with its
table or account.
"""
