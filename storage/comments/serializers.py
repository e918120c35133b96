"""Serializers of comments: threads about an entity or a table, and their comments."""

from typing import Any

from rest_framework import serializers

from storage.comments import threads
from storage.comments.content import LONGEST, SubjectKind
from storage.comments.threads import SHOWN
from storage.domain.values.names import TABLE_NAME_LIMIT
from storage.models import Comment, CommentThread
from storage.rest.fields import (
    InstantField,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
)
from storage.rest.paging import PageParameters


class ThreadParameters(PageParameters):
    table = serializers.CharField(
        default="", max_length=TABLE_NAME_LIMIT, help_text="Only in this table, in any case."
    )
    state = serializers.ChoiceField(choices=["open", "resolved", "all"], default="open")


class CommentSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    author = serializers.CharField(source="author_name")
    text = serializers.CharField(help_text="Plain text; `@name` mentions a user.")
    created_at = InstantField()
    edited_at = InstantField(allow_null=True)


class ThreadSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    table = serializers.CharField(source="table.name")
    partition_key = serializers.SerializerMethodField(help_text="Null for a thread about the table.")
    row_key = serializers.SerializerMethodField(help_text="Null for a thread about the table.")
    created_at = InstantField()
    resolved_at = InstantField(allow_null=True)
    resolved_by = serializers.CharField(help_text="Empty if it is open.")
    comments = CommentSerializer(
        many=True, source="shown", help_text=f"The latest {SHOWN}, the oldest of them first."
    )
    comment_count = serializers.SerializerMethodField(
        help_text="Of all comments; `GET …/replies` lists those that are not among `comments`."
    )

    def get_comment_count(self, thread: CommentThread) -> int:
        return len(thread.shown) + threads.count_earlier(thread)  # type: ignore[attr-defined]

    def get_partition_key(self, thread: CommentThread) -> str | None:
        return thread.partition_key if thread.subject == SubjectKind.ENTITY else None

    def get_row_key(self, thread: CommentThread) -> str | None:
        return thread.row_key if thread.subject == SubjectKind.ENTITY else None


class TextSerializer(StrictSerializer):
    text = StrictCharField(
        max_length=LONGEST, trim_whitespace=False, help_text="Plain text; `@name` mentions a user."
    )


class NewThreadSerializer(TextSerializer):
    partition_key = StrictCharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="Of an entity; without it, about the table.",
    )
    row_key = StrictCharField(required=False, allow_blank=True, trim_whitespace=False)


class ResolutionSerializer(StrictSerializer):
    resolved = StrictBooleanField()


def with_first(thread: CommentThread, comment: Comment) -> CommentThread:
    """Prepare a new thread with its first comment for the serializer."""
    comment.total = 1  # type: ignore[attr-defined]
    thread.shown = [comment]  # type: ignore[attr-defined]
    return thread
