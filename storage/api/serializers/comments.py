"""Comments: threads of an entity or a table, and what is written in them."""

from typing import Any

from rest_framework import serializers

from storage.api.paging import PageParameters
from storage.api.serializers.fields import (
    InstantField,
    StrictBooleanField,
    StrictCharField,
    StrictSerializer,
)
from storage.domain.service.comments import LONGEST, SubjectKind
from storage.models import Comment, CommentThread


class ThreadParameters(PageParameters):
    table = serializers.CharField(default="", max_length=63, help_text="Only in this table, in any case.")
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
    comments = CommentSerializer(many=True, source="shown", help_text="The oldest first.")

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


def with_comments(thread: CommentThread, comments: list[Comment]) -> CommentThread:
    """Return a thread as the serializer reads it."""
    thread.shown = comments  # type: ignore[attr-defined]
    return thread
