"""An entity as somebody opened it, kept in the form itself: signed, so that nobody makes it up, and compressed."""

from django.core import signing

from storage.domain.entities.entity import EntityKey, StoredEntity, encode_entity_key
from storage.models import Table

SALT = "console.entities.opened"


def write(table: Table, stored: StoredEntity) -> str:
    content = [table.pk, *stored.key, stored.timestamp, stored.content.decode()]
    return signing.dumps(content, salt=SALT, compress=True)


def read(table: Table, token: str) -> StoredEntity | None:
    """None for what is none of ours, or of another table, or from before the server had another secret."""
    try:
        table_id, partition_key, row_key, ticks, content = signing.loads(token, salt=SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    if table_id != table.pk:
        return None
    return StoredEntity(encode_entity_key(EntityKey(partition_key, row_key)), b"%d" % ticks, content.encode())
