"""Declaration of the subject "comments": see storage.core.registry."""

from typing import Final

from storage.core.notices import Condition, NoticeKind, Severity
from storage.core.subject import Hook, Part, Slot, StyleSheet, Subject, Word
from storage.core.verbs import Act, Group, Undo, Verb
from storage.domain.access.roles import Capability
from storage.domain.translation import mark as _

# its author, or who resolved a thread, can undo it
_UNDO: Final = Undo("storage.comments.comments.undo", Capability.READ)


class CommentVerb(Verb):
    CREATE = Act(
        "comment.create",
        Group.COMMENTS,
        "message-square",
        _("%(who)s wrote %(comment)s in %(table)s"),
        undone=_("Restored the comment."),
        undo=_UNDO,
    )
    CHANGE = Act(
        "comment.change",
        Group.COMMENTS,
        "message-square",
        _("%(who)s changed %(comment)s in %(table)s"),
        undo=_UNDO,
    )
    DELETE = Act(
        "comment.delete",
        Group.COMMENTS,
        "message-square",
        _("%(who)s deleted %(comment)s in %(table)s"),
        undone=_("Deleted the comment."),
        undo=_UNDO,
    )
    # a thread
    RESOLVE = Act(
        "comment.resolve",
        Group.COMMENTS,
        "check",
        _("%(who)s resolved the thread of %(comment)s in %(table)s"),
        undone=_("Resolved the thread again."),
        undo=_UNDO,
    )
    REOPEN = Act(
        "comment.reopen",
        Group.COMMENTS,
        "rotate-ccw",
        _("%(who)s reopened the thread of %(comment)s in %(table)s"),
        undone=_("Reopened the thread."),
        undo=_UNDO,
    )


class CommentNotice(NoticeKind):
    MENTION = Condition(
        "comment.mention",
        _("You were mentioned"),
        _("%(author)s mentioned you in a comment on %(about)s."),
        Severity.INFO,
        "a/{account}/comments/{subject}/",
        "storage.comments.conditions.find_mentions",
        is_personal=True,
    )


SUBJECT = Subject(
    name="comments",
    stands_on=("activity", "accounts", "people", "notices"),
    is_optional=True,
    verbs=CommentVerb,
    notices=CommentNotice,
    api="storage.comments.api",
    style_sheet=StyleSheet.DATA,
    scripts={"entities/entity.js": "comments/mentions.js"},
    key_follower="storage.comments.moves",
    tidying={"comments": "storage.comments.comments.tidy"},
    parts=(
        Part(
            Slot.TABLE_HEAD,
            10,
            "console/comments/_table_link.html",
            "console.comments.presentation.count_open_threads",
        ),
        Part(Slot.QUERY_HEAD, 10, "console/comments/_query_link.html"),
    ),
    hooks={
        Hook.ENTITY_TABS: "console.comments.presentation.entity_tabs",
        Hook.ENTITY_MARKS: "console.comments.presentation.mark_entities",
        Hook.QUERY_HIDDEN: "storage.comments.mentions.forget_query",
        Hook.ACCOUNT_FILE: "storage.comments.files.CommentLines",
    },
    words=(Word("comment", _("a comment"), "comments:thread", "thread"),),
    documents=("collaboration",),
    urls=("console.comments.urls",),
)
