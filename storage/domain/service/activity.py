"""The verbs of the activity log, one record each: stored value, subject, and what undoing takes."""

from enum import StrEnum
from typing import Final, Self

from storage.domain.access.roles import Capability

_CATALOG: Final = True  # undoing changes what every process caches of the account


class Verb(StrEnum):
    """What was done, as ``subject.action``. The values are stored, so they never change.

    ``undo_capability`` is what a member needs in the account to undo it, None where no member can; ``changes_catalog``
    says whether every process has to learn of the undoing.
    """

    undo_capability: Capability | None
    changes_catalog: bool

    def __new__(
        cls, value: str, undo_capability: Capability | None = None, changes_catalog: bool = False
    ) -> Self:
        verb = str.__new__(cls, value)
        verb._value_ = value
        verb.undo_capability = undo_capability
        verb.changes_catalog = changes_catalog
        return verb

    @property
    def subject(self) -> str:
        """What it was done to: account, table, entity, sas, …"""
        return self.partition(".")[0]

    ACCOUNT_CREATE = "account.create"
    ACCOUNT_CHANGE = "account.change", Capability.OWN, _CATALOG  # label, description, color, flags, networks
    ACCOUNT_EXPIRE = "account.expire"  # frozen at the end of its lifetime
    ACCOUNT_DELETE = "account.delete"
    KEY_REVEAL = "key.reveal"
    KEY_COPY = "key.copy"
    KEY_ROTATE = "key.rotate"
    KEY_END = "key.end"  # a replaced key is no longer accepted
    TABLE_CREATE = "table.create", Capability.MANAGE_TABLES, _CATALOG
    TABLE_CHANGE = "table.change", Capability.MANAGE_TABLES  # description, tags
    TABLE_DELETE = "table.delete", Capability.MANAGE_TABLES
    TABLE_RESTORE = "table.restore", Capability.MANAGE_TABLES, _CATALOG
    TABLE_DISTRIBUTE = "table.distribute"  # over the nodes of a cluster
    TABLE_UNDISTRIBUTE = "table.undistribute"
    INDEX_ADD = "index.add", Capability.MANAGE_TABLES  # of a property
    INDEX_DROP = "index.drop", Capability.MANAGE_TABLES
    INDEX_KEEP = "index.keep", Capability.MANAGE_TABLES  # that the server has made
    QUERY_CREATE = "query.create", Capability.WRITE  # a saved query
    QUERY_CHANGE = "query.change", Capability.WRITE
    QUERY_DELETE = "query.delete", Capability.WRITE
    COMMENT_CREATE = "comment.create", Capability.READ  # its author, or who resolved a thread, can undo it
    COMMENT_CHANGE = "comment.change", Capability.READ
    COMMENT_DELETE = "comment.delete", Capability.READ
    COMMENT_RESOLVE = "comment.resolve", Capability.READ  # a thread
    COMMENT_REOPEN = "comment.reopen", Capability.READ
    POLICIES_SET = "policies.set", Capability.MANAGE_ACCESS, _CATALOG
    SAS_ISSUE = "sas.issue"
    SAS_CHANGE = "sas.change", Capability.MANAGE_ACCESS  # label, purpose, owner
    SAS_BLOCK = "sas.block", Capability.MANAGE_ACCESS, _CATALOG
    SAS_UNBLOCK = "sas.unblock", Capability.MANAGE_ACCESS, _CATALOG
    PROPERTIES_SET = "properties.set", Capability.MANAGE_ACCESS, _CATALOG
    ENTITY_INSERT = "entity.insert", Capability.MANAGE_TABLES
    ENTITY_CHANGE = "entity.change", Capability.MANAGE_TABLES
    ENTITY_DELETE = "entity.delete", Capability.MANAGE_TABLES
    ENTITY_REKEY = "entity.rekey", Capability.MANAGE_TABLES
    ENTITY_REVERT = "entity.revert", Capability.MANAGE_TABLES  # recorded changes, undone together
    ENTITY_APPLY = "entity.apply", Capability.MANAGE_TABLES  # a comparison, to make a side equal to the other
    ENTITY_BULK_EDIT = "entity.bulk-edit", Capability.MANAGE_TABLES  # of all that a query finds
    ENTITY_IMPORT = "entity.import", Capability.MANAGE_TABLES
    ENTITY_COPY_IN = "entity.copy-in", Capability.MANAGE_TABLES  # from another service
    ENTITY_COPY_OUT = "entity.copy-out"  # to another service
    ENTITY_EXPORT = "entity.export"
    SIGN_IN = "user.sign-in"
    SIGN_OUT = "user.sign-out"
    SIGN_IN_FAILED = "user.sign-in-failed"
    USER_INVITE = "user.invite"
    USER_CREATE = "user.create"
    USER_CHANGE = "user.change"  # only an admin can undo it
    USER_REMOVE = "user.remove"
    MEMBER_SET = "member.set", Capability.OWN
    MEMBER_REMOVE = "member.remove", Capability.OWN
    API_TOKEN_ISSUE = "api-token.issue"  # noqa: S105  a verb
    API_TOKEN_REVOKE = "api-token.revoke"  # noqa: S105
    SNAPSHOT_TAKE = "snapshot.take"
    SNAPSHOT_CHANGE = "snapshot.change"  # name, expiry
    SNAPSHOT_DELETE = "snapshot.delete"
    SNAPSHOT_SCHEDULE = "snapshot.schedule"
    SNAPSHOT_RESTORE = "snapshot.restore", Capability.MANAGE_TABLES, _CATALOG
    BRANCH_CREATE = "branch.create"
    JOB_CANCEL = "job.cancel"
    JOB_PAUSE = "job.pause"
    JOB_RESUME = "job.resume"
    WEBHOOK_CREATE = "webhook.create"
    WEBHOOK_CHANGE = "webhook.change"
    WEBHOOK_DELETE = "webhook.delete"
    NOTICE_RULE = "notice.rule"  # whether there are notices of a kind, and from when on
    DEPLOYMENT_MARK = "deployment.mark"  # of a client, for metrics
    UNDO = "undo"
