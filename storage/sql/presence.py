"""Statement that stores the tabs of a process and reads all tabs that view the same tables."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from storage.domain.access.presence import PresentTab
from storage.sql.django import fetch

# Expired rows that another process deletes at this moment are skipped: two must not wait for each other.
_BEAT: Final = """
WITH own AS (
    INSERT INTO storage_presence (tab, user_id, table_id, process, entity, seen_at)
    SELECT tab, user_id, table_id, %s, entity, now()
    FROM unnest(%s::uuid[], %s::bigint[], %s::bigint[], %s::text[]) AS sent (tab, user_id, table_id, entity)
    ORDER BY tab, user_id
    ON CONFLICT (tab, user_id) DO UPDATE
    SET seen_at = EXCLUDED.seen_at, process = EXCLUDED.process, table_id = EXCLUDED.table_id,
        entity = CASE WHEN EXCLUDED.tab = ANY (%s::uuid[]) THEN EXCLUDED.entity ELSE storage_presence.entity END
    RETURNING tab, user_id, table_id, entity
), expired AS (
    DELETE FROM storage_presence WHERE id IN (
        SELECT id FROM storage_presence
        WHERE seen_at < now() - make_interval(secs => %s) AND (tab, user_id) NOT IN (SELECT tab, user_id FROM own)
        FOR UPDATE SKIP LOCKED)
)
SELECT found.table_id, found.user_id, users.username, found.entity
FROM (
    SELECT * FROM own
    UNION
    SELECT tab, user_id, table_id, entity FROM storage_presence
    WHERE table_id = ANY (%s::bigint[]) AND process <> %s AND seen_at > now() - make_interval(secs => %s)
        AND (tab, user_id) NOT IN (SELECT tab, user_id FROM own)
) AS found
JOIN {users} AS users ON users.id = found.user_id AND users.is_active AND NOT users.hides_presence
JOIN storage_table AS of_table ON of_table.id = found.table_id
WHERE users.is_admin OR EXISTS (
    SELECT FROM console_membership AS membership
    WHERE membership.user_id = found.user_id AND membership.account_id = of_table.account_id)
ORDER BY users.username, found.entity
"""


def beat(
    process: str,
    tabs: Sequence[tuple[UUID, int, int, str]],
    new: Sequence[UUID],
    users: str,
    lifetime: float,
) -> list[PresentTab]:
    """Store a process's tabs (names, users, tables and entities); return all tabs at the same tables."""
    columns = [list(column) for column in zip(*tabs, strict=True)] or [[], [], [], []]
    tables = sorted(set(columns[2]))
    parameters = (process, *columns, new, lifetime, tables, process, lifetime)
    return [PresentTab(*row) for row in fetch(_BEAT.format(users=users), *parameters)]
