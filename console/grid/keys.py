"""The key of an entity as one word: the value of a check box, a parameter of an address."""

import base64
import binascii
import json

from storage.domain.entities.entity import EntityKey
from storage.domain.errors import StorageError
from storage.domain.values.names import check_key


def write_key(key: EntityKey) -> str:
    text = json.dumps(key, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_key(token: str) -> EntityKey | None:
    """None for what is none of ours."""
    try:
        found = json.loads(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))
        partition_key, row_key = found
        for key in (partition_key, row_key):
            check_key("key", key)
        return EntityKey(partition_key, row_key)
    except (ValueError, TypeError, binascii.Error, RecursionError, StorageError):
        return None
