"""Moves of comments with entities whose keys change: see storage.history.key_changes."""

from collections.abc import Iterable

from storage.comments.content import Subject, SubjectKind
from storage.domain.entities.entity import EntityKey
from storage.models import CommentThread, Table


def move(table: Table, moved: Iterable[tuple[EntityKey, EntityKey]]) -> set[tuple[EntityKey, EntityKey]]:
    """Move threads to the new keys of entities; return the moves that concerned any."""
    # a job has read its table long ago
    if not Table.objects.filter(pk=table.pk, has_comments=True).exists():
        return set()
    new_keys = {Subject(old).digest: (old, new) for old, new in moved}
    digests = CommentThread.objects.filter(
        table=table, subject=SubjectKind.ENTITY, digest__in=list(new_keys)
    ).values_list("digest", flat=True)
    commented = [new_keys[digest] for digest in sorted({bytes(it) for it in digests})]
    for old, new in commented:
        move_one(table, old, new)
    return set(commented)


def move_one(table: Table, old: EntityKey, new: EntityKey) -> None:
    """Move the threads about an entity to another key."""
    CommentThread.objects.filter(table=table, digest=Subject(old).digest, subject=SubjectKind.ENTITY).update(
        digest=Subject(new).digest, partition_key=new.partition_key, row_key=new.row_key
    )
