"""What people and clients do that is worth remembering: the verbs of the record, and which can be undone."""

from enum import StrEnum


class Verb(StrEnum):
    """What was done; the values are stored, so that they never change."""

    ACCOUNT_CREATE = "account.create"
    ACCOUNT_CHANGE = "account.change"  # label, description, colour, flags, networks
    ACCOUNT_EXPIRE = "account.expire"  # its time is over
    ACCOUNT_DELETE = "account.delete"
    KEY_REVEAL = "key.reveal"
    KEY_COPY = "key.copy"
    KEY_ROTATE = "key.rotate"
    KEY_END = "key.end"  # the grace of one that was replaced
    TABLE_CREATE = "table.create"
    TABLE_CHANGE = "table.change"  # description, tags
    TABLE_DELETE = "table.delete"
    TABLE_RESTORE = "table.restore"
    QUERY_CREATE = "query.create"  # a saved one
    QUERY_CHANGE = "query.change"
    QUERY_DELETE = "query.delete"
    POLICIES_SET = "policies.set"
    SAS_ISSUE = "sas.issue"
    SAS_CHANGE = "sas.change"  # label, purpose, owner
    SAS_BLOCK = "sas.block"
    SAS_UNBLOCK = "sas.unblock"
    PROPERTIES_SET = "properties.set"
    ENTITY_INSERT = "entity.insert"
    ENTITY_CHANGE = "entity.change"
    ENTITY_DELETE = "entity.delete"
    ENTITY_REKEY = "entity.rekey"
    ENTITY_EXPORT = "entity.export"
    SIGN_IN = "user.sign-in"
    SIGN_OUT = "user.sign-out"
    SIGN_IN_FAILED = "user.sign-in-failed"
    USER_INVITE = "user.invite"
    USER_CREATE = "user.create"
    USER_CHANGE = "user.change"
    USER_REMOVE = "user.remove"
    MEMBER_SET = "member.set"
    MEMBER_REMOVE = "member.remove"
    API_TOKEN_ISSUE = "api-token.issue"  # noqa: S105  a verb
    API_TOKEN_REVOKE = "api-token.revoke"  # noqa: S105
    UNDO = "undo"


UNDOABLE: frozenset[Verb] = frozenset(
    {
        Verb.UNDO,
        Verb.ACCOUNT_CHANGE,
        Verb.TABLE_CREATE,
        Verb.TABLE_CHANGE,
        Verb.TABLE_DELETE,
        Verb.TABLE_RESTORE,
        Verb.POLICIES_SET,
        Verb.SAS_CHANGE,
        Verb.SAS_BLOCK,
        Verb.SAS_UNBLOCK,
        Verb.PROPERTIES_SET,
        Verb.ENTITY_INSERT,
        Verb.ENTITY_CHANGE,
        Verb.ENTITY_DELETE,
        Verb.ENTITY_REKEY,
    }
)
