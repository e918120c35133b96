"""What the console says when an operation is refused, in the language of the reader."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.site.toasts import notify_error
from storage.domain.errors import StorageError
from storage.domain.refusals import Reason, Refused

TEXTS: Final[Mapping[Reason, Promise | str]] = {
    Reason.ACCOUNT_BUSY: _(
        "The account %(account)s is being created or deleted. Try again when that is done."
    ),
    Reason.ACCOUNT_EXPIRED: _("The account %(account)s has expired. Extend its expiration first."),
    Reason.NO_COORDINATOR_FOR_NEW_TABLES: _(
        "Tables can be distributed only in the database of a Citus coordinator."
    ),
    Reason.HISTORY_DAYS: _("The history of an account is kept for 0 to %(most)s days."),
    Reason.HISTORY_BYTES: _("The history of an account may take %(least)s MiB or more."),
    Reason.STALENESS: _("Reads may be behind by 1 to %(most)s seconds."),
    Reason.ACCOUNT_PROTECTED: _("The account %(account)s is protected. Turn off the protection first."),
    Reason.READ_ONLY_ACCOUNT_HAS_TABLES: _(
        "The account %(account)s is read-only and still has tables (%(number)s)."
    ),
    Reason.ACCOUNT_NAME: _(
        "“%(account)s” cannot be an account: its name must be 3 to 24 lowercase letters and digits."
    ),
    Reason.NO_ACCOUNT: _("The account %(account)s does not exist."),
    Reason.ACCOUNT_EXISTS: _("An account named %(account)s already exists."),
    Reason.HISTORY_NEEDS_POSTGRESQL_18: _("Recording history needs PostgreSQL 18 or later."),
    Reason.NETWORK_MALFORMED: _(
        "“%(text)s” is not an IP address or network. Write it as 192.0.2.1 or 192.0.2.0/24."
    ),
    Reason.ACCOUNT_SEALED_OTHERWISE: _(
        "The keys of the account %(account)s were sealed with another secret. Restore that secret as "
        "TABLERO_SECRET or as the file secret in the data folder. If it is lost, rotate both keys of the "
        "account."
    ),
    Reason.BULK_EDIT_NUMBER: _(
        "The account %(account)s is protected. Type the number of entities that the query finds."
    ),
    Reason.BULK_EDIT_COUNT: _(
        "The query finds %(found)s entities now, not %(number)s. Preview the edit again."
    ),
    Reason.NOT_EDITED: _("Not edited: %(why)s"),
    Reason.CHANGE_TOO_LARGE: _("These entities have more than %(most)s MiB together. Change fewer at once."),
    Reason.TOO_MANY_SAS: _(
        "The account %(account)s can have at most %(most)s SAS tokens that have not expired."
    ),
    Reason.TOO_MANY_SAVED_QUERIES: _(
        "The account %(account)s can have at most %(most)s saved queries. Delete one first."
    ),
    Reason.TOO_MANY_OWN_QUERIES: _("You can have at most %(most)s saved queries. Delete one first."),
    Reason.TOO_MANY_TOKENS: _("A user can have at most %(most)s tokens. Revoke one first."),
    Reason.DISTRIBUTED_HAS_NO_IMAGES: _(
        "The table %(table)s is distributed over several nodes. Changes of its entities can be undone one by "
        "one, but not together, nor restored or compared."
    ),
    Reason.SYSTEM_TABLE_HAS_NO_HISTORY: _("System tables have no history."),
    Reason.NO_HISTORY: _("The account keeps no history."),
    Reason.HISTORY_BEGINS: _("Changes are kept since %(since)s."),
    Reason.DISTRIBUTED_HAS_NO_PAST: _(
        "%(table)s is distributed over several nodes, which have no past in common."
    ),
    Reason.TABLE_HISTORY_BEGINS: _("Changes of %(table)s are kept since %(since)s."),
    Reason.FUTURE: _("%(moment)s is in the future."),
    Reason.MOMENT_NOT_CLOSED: _(
        "Writes that may belong to %(moment)s have not ended. Try again, or read an earlier time."
    ),
    Reason.NO_MOMENT: _("%(text)s is neither a time in RFC 3339 nor a snapshot of the account %(account)s."),
    Reason.ACCOUNT_HISTORY_BEGINS: _("The account %(account)s keeps its history since %(since)s."),
    Reason.NO_TABLE: _("The account %(account)s has no table %(table)s."),
    Reason.DISTRIBUTED_NOT_COMPARED: _(
        "The table %(table)s is distributed over several nodes and cannot be compared. Name the tables to "
        "compare."
    ),
    Reason.ACCOUNT_HAS_NO_HISTORY: _("The account %(account)s keeps no history."),
    Reason.NO_TABLE_THEN: _("The account %(account)s has no table %(table)s at %(at)s."),
    Reason.NO_TABLE_TO_COMPARE: _("Neither side has a table %(table)s."),
    Reason.NOT_IN_SNAPSHOT: _("%(snapshot)s does not include the table %(table)s."),
    Reason.INDEX_EXISTS: _("%(property)s of %(table)s has an index already."),
    Reason.INDEX_FAILED: _("The index on %(property)s of the table %(table)s could not be built: %(why)s"),
    Reason.TOO_MANY_INDEXES: _("A table can have %(most)s indexes. Drop one of %(table)s first."),
    Reason.NO_INDEX: _("%(property)s of %(table)s has no index."),
    Reason.NO_COORDINATOR: _("The database is not the coordinator of a Citus cluster."),
    Reason.NODES_ARE_BUSY: _(
        "Other tables are being created or moved on the nodes of the cluster. Try again in a moment."
    ),
    Reason.NODE_IS_DOWN: _("A node of the cluster does not answer. Try again in a moment."),
    Reason.NOT_DISTRIBUTED: _("The table %(table)s is not distributed."),
    Reason.ROWS_ARE_MOVED: _("The rows of the table %(table)s are being moved."),
    Reason.DISTRIBUTED_ALREADY: _("The table %(table)s is distributed already."),
    Reason.SYSTEM_TABLE_NOT_DISTRIBUTED: _("Tables of the server itself are not distributed."),
    Reason.NO_COORDINATOR_YET: _(
        "The database is not the coordinator of a Citus cluster: see docs/cluster.md for what it needs."
    ),
    Reason.INDEX_IN_THE_MAKING: _(
        "An index of %(table)s is being built, or its rows are being moved. Try again when that is done."
    ),
    Reason.SNAPSHOT_JUST_TAKEN: _("A snapshot of %(table)s was just taken. Try again."),
    Reason.LONG_KEYS_NOT_DISTRIBUTED: _(
        "The table %(table)s has entities whose keys take more than 2,600 bytes, which can be on one node "
        "only."
    ),
    Reason.ACCOUNT_NOT_READ_THEN: _(
        "The account %(account)s cannot be read as of that time: no history is kept."
    ),
    Reason.ACCOUNT_READ_SINCE: _(
        "The account %(account)s cannot be read as of that time: changes are kept since %(since)s UTC."
    ),
    Reason.MASKED_NOT_COPIED: _("The table %(table)s has masking rules, but is not copied."),
    Reason.DISTRIBUTED_NOT_COPIED: _(
        "The table %(table)s is distributed over several nodes, which have no moment in common. Name the "
        "tables to copy."
    ),
    Reason.NO_TABLE_TO_COPY: _("There is no table %(table)s to copy."),
    Reason.TOO_MANY_SNAPSHOTS: _(
        "The account %(account)s has %(number)s snapshots, and may have %(most)s. Delete one first."
    ),
    Reason.SNAPSHOTS_TOO_LARGE: _(
        "The snapshots of the account %(account)s would take %(size)s MiB, and may take %(most)s MiB. Delete "
        "one first."
    ),
    Reason.SNAPSHOT_NAME: _(
        "“%(snapshot)s” cannot be the name of a snapshot: use up to 64 letters, digits, periods, hyphens and "
        "underscores, and begin with a letter or digit."
    ),
    Reason.NO_SNAPSHOT: _("The account %(account)s has no snapshot named %(snapshot)s."),
    Reason.NO_TABLE_FOR_SNAPSHOT: _("There is no table %(table)s in the account %(account)s."),
    Reason.SNAPSHOT_EXISTS: _("A snapshot named %(snapshot)s already exists."),
    Reason.DISTRIBUTED_NOT_IN_SNAPSHOT: _(
        "The table %(table)s is distributed over several nodes, which have no moment in common. Take a "
        "snapshot of the other tables."
    ),
    Reason.NO_ORIGIN: _("The account %(account)s no longer has the snapshot it began with."),
    Reason.SNAPSHOT_OF_SOME_TABLES: _(
        "The snapshot %(snapshot)s includes only some tables, so it does not say which tables are newer."
    ),
    Reason.ONLY_SOME_RESTORED: _("Restore all tables to delete those that are newer than the snapshot."),
    Reason.ONE_TABLE: _("Name the table whose entities you want to restore."),
    Reason.NO_TABLE_IN_SNAPSHOT: _("The snapshot %(snapshot)s has no table %(table)s."),
    Reason.SIDE_IS_PAST: _("%(side)s is of the past. Only what is live can be changed."),
    Reason.TIMESTAMP_MASK: _("Timestamp is set by the server and cannot be masked."),
    Reason.UNKNOWN_MASK: _("“%(text)s” is not a masking rule. Use one of %(masks)s, or constant:TEXT."),
    Reason.MASKING_CONSTANT: _(
        "The constant text can have up to %(most)s ASCII characters without quotation marks and backslashes."
    ),
    Reason.KEY_MASK: _("%(property)s can only be hashed or kept, because keys must stay different."),
    Reason.DISTRIBUTION_FAILED: _("The table %(table)s could not be distributed: %(why)s"),
    Reason.GATHERING_FAILED: _("The table %(table)s could not be brought back: %(why)s"),
    Reason.LOCK_FAILED: _("The table %(table)s could not be locked: %(why)s"),
    Reason.COPY_DOES_NOT_FIT: _("Not everything fits into an account of this kind. Nothing was copied."),
    Reason.NO_ACCESS: _("You have no access to an account named %(account)s."),
    Reason.OTHER: "%(text)s",
    Reason.REMOTE_CONNECTION_STRING: _(
        "A connection string consists of NAME=VALUE parts with semicolons between them, and has an AccountName or a"
        " TableEndpoint."
    ),
    Reason.REMOTE_ACCOUNT: _(
        "The name of the account may have only letters, digits, hyphens, periods and underscores. Copy it again."
    ),
    Reason.REMOTE_KEY: _("The AccountKey is not base64. Copy the connection string again."),
    Reason.REMOTE_URL: _(
        "The URL must begin with https:// or http:// and a host, and cannot have a user or spaces."
    ),
    Reason.REMOTE_URL_PATH: _(
        "The path of the URL must be the account, and a table if only that is to be copied."
    ),
    Reason.REMOTE_NO_CREDENTIALS: _(
        "The key, the SAS or the bearer token is missing. Paste a connection string, or a URL with a SAS."
    ),
    Reason.REMOTE_REFUSED: _("%(service)s answered %(answer)s to %(operation)s."),
    Reason.REMOTE_FORBIDDEN: _(
        "%(service)s answered %(answer)s to %(operation)s. Check that the key is right, or that the SAS or token is"
        " valid and permits this operation."
    ),
    Reason.REMOTE_PRIVATE: _(
        "%(service)s cannot be resolved, or is in a private network. Name the network in TABLERO_COPY_NETWORKS, or use"
        " the command copy, which connects anywhere."
    ),
    Reason.REMOTE_WITHOUT_TLS: _("%(service)s would be reached without TLS. Use https."),
    Reason.FILE_NOT_AZURITE: _("%(path)s is not a file of Azurite's table service, or is damaged."),
    Reason.REMOTE_UNREACHABLE: _(
        "%(service)s cannot be reached: %(why)s. Check its address, and that it is running."
    ),
    Reason.REMOTE_CREDENTIALS_GONE: _(
        "The credentials of %(service)s were deleted when the job %(job)s ended. Start the same copy again: it goes on"
        " where this one stopped."
    ),
    Reason.COPY_TABLES: _("No table matches %(patterns)s."),
    Reason.COPY_NAME_TWICE: _("Two tables would become %(table)s."),
    Reason.NO_JOB: _("There is no job %(job)s."),
    Reason.JOB_ENDED: _("The job %(job)s has ended."),
    Reason.JOB_STOPPED: _("The job %(job)s was paused or cancelled before its end."),
    Reason.JOB_GOES_ON_LATER: _("The server stops. The job %(job)s goes on when it is back."),
    Reason.JOB_ACCESS_LOST: _(
        "The job was stopped because %(user)s, who started it, no longer has the access that it needs."
    ),
    Reason.JOB_PAUSED: _("The job %(job)s is paused already."),
    Reason.JOB_OF_ONE_PROCESS: _(
        "The job %(job)s reads a file of the command that started it, so it cannot be paused or resumed."
    ),
    Reason.JOB_NOT_RESUMABLE: _("The job %(job)s is not paused, and has neither failed nor been cancelled."),
    Reason.JOB_DIES: _(
        "The same step was begun %(attempts)s times and did not end: the process died, or the database was "
        "busy. Resume the job to try again."
    ),
    Reason.JOB_FILE_EXPIRED: _("The file %(file)s is no longer kept."),
    Reason.FILE_NOT_READ: _("%(path)s cannot be read: %(why)s."),
    Reason.FILE_TOO_LARGE: _(
        "Your uploads may have %(megabytes)s megabytes more until your imports have ended."
    ),
    Reason.FILES_BEING_READ: _("Several of your files are being read. Try again in a few seconds."),
    Reason.FILES_BUSY: _("The server is reading other files. Try again in a few seconds."),
    Reason.TOO_MANY_IMPORTS: _(
        "You have %(most)s imports, checks and copies of files that have not ended. Wait until one of them ends, or"
        " cancel one."
    ),
    Reason.TOO_MANY_ACCOUNT_IMPORTS: _(
        "The account %(account)s has %(most)s imports, checks and copies of files that have not ended. Wait until one"
        " of them ends."
    ),
    Reason.FILE_ROWS_EMPTY: _("The file is empty."),
    Reason.FILE_ROWS_BINARY: _("The file is not text, and neither Parquet nor compressed with gzip or ZIP."),
    Reason.FILE_ROWS_DAMAGED: _("The file is damaged: its content cannot be decompressed."),
    Reason.FILE_ROWS_CUT_OFF: _("The file is incomplete or damaged: it cannot be read after line %(line)s."),
    Reason.FILE_ROWS_ZIP_FILES: _("The ZIP file has %(number)s files; import one that has a single file."),
    Reason.FILE_ROWS_ENCODING: _(
        "There is no encoding %(encoding)s to read files in. Choose one of: %(encodings)s."
    ),
    Reason.FILE_ROWS_COLUMNS: _(
        "The file has %(number)s columns, more than an entity can have: %(most)s properties."
    ),
    Reason.FILE_ROWS_COLUMN_TWICE: _("The file has two columns named %(column)s."),
    Reason.FILE_ROWS_LONG_LINE: _("Line %(line)s is longer than any entity; is this a file of rows?"),
    Reason.FILE_ROWS_ROWLESS: _(
        "There is no row for a long way after line %(line)s: only blank lines, white space, or a quotation mark that is"
        " never closed."
    ),
    Reason.FILE_ROWS_EXPANDS: _(
        "The compressed file expands to more than %(times)s times its size, which no file of rows does. Import it"
        " without compression."
    ),
    Reason.FILE_ROWS_ZIP_METHOD: _(
        "The ZIP file has a password, or was not compressed with Deflate. Make it again without a password, with the"
        " usual compression."
    ),
    Reason.FILE_ROWS_ZIP_DIRECTORY: _(
        "The ZIP file lists too many files: more than %(megabytes)s MB of names."
    ),
    Reason.FILE_ROWS_NOT_JSON: _("The file is not JSON at line %(line)s."),
    Reason.FILE_ROWS_NO_LIBRARY: _(
        "To read and write Parquet, install the extra parquet: pip install 'tablero-server[parquet]'."
    ),
    Reason.FILE_ROWS_NOT_PARQUET: _("The file is not a Parquet file that can be read: %(why)s"),
    Reason.FILE_ROWS_NO_KEY: _(
        "Choose the columns that make up the %(property)s, such as {%(example)s}: the file has no column of this "
        "name, but %(columns)s."
    ),
    Reason.FILE_ROWS_KEYS_PROPOSED: _(
        "Choose the columns that make up the %(property)s: the file has no column of this name, but %(columns)s."
        " Proposed: PartitionKey %(partition_key)s, RowKey %(row_key)s. %(why)s."
    ),
    Reason.FILE_MAPPING_TEMPLATE: _(
        "“%(text)s” is not a template: write names of columns in braces, as in {tenant}-{id}."
    ),
    Reason.FILE_MAPPING_NO_COLUMN: _("The file has no column %(column)s, but %(columns)s."),
    Reason.FILE_MAPPING_PROPERTY: _("“%(text)s” cannot be the name of a property."),
    Reason.FILE_MAPPING_TWICE: _("Two columns would become the property %(property)s."),
    Reason.WEBHOOK_URL: _(
        "The URL of a webhook must begin with https:// or http://, with a host and without a user name."
    ),
    Reason.COMMENT_EMPTY: _("Enter a comment."),
    Reason.COMMENT_TOO_LONG: _("Use at most %(most)s characters."),
    Reason.TOO_MANY_COMMENTS_AT_ONCE: _("You can write %(most)s comments per minute. Wait a moment."),
    Reason.TOO_MANY_COMMENTS: _(
        "The account %(account)s has %(most)s comments, which is the most it can have."
    ),
    Reason.NO_SHORT_LINK: _("Only pages of an account have short links."),
    Reason.LINK_HOLDS_SECRET: _(
        "This address contains a token or key, which must not be shared. No link was created."
    ),
    Reason.LINK_TOO_LONG: _("An address of more than %(most)s characters cannot have a short link."),
    Reason.WEBHOOK_EXISTS: _("A webhook named “%(webhook)s” already exists."),
    Reason.TOO_MANY_WEBHOOKS: _("There can be at most %(most)s webhooks. Delete one first."),
    Reason.NO_WEBHOOK: _("There is no webhook “%(webhook)s”."),
    Reason.TOO_MANY_MUTES: _("You can mute at most %(most)s notices and kinds. Unmute one first."),
    Reason.JOB_BROKEN: _(
        "An internal error occurred (%(why)s). The log of the server has the details. Resume the job to try again."
    ),
    Reason.EXPRESSION_TOO_LONG: _("The expression is longer than %(most)s characters."),
    Reason.EXPRESSION_TOO_DEEP: _("More than %(most)s levels are nested at position %(position)s."),
    Reason.EXPRESSION_OPERATOR: _("An operator is expected at position %(position)s."),
    Reason.EXPRESSION_OPERATOR_NOT: _("An operator is expected at position %(position)s, not %(token)s."),
    Reason.EXPRESSION_CLOSE: _("An operator or a closing parenthesis is expected at position %(position)s."),
    Reason.EXPRESSION_CLOSE_NOT: _(
        "An operator or a closing parenthesis is expected at position %(position)s, not %(token)s."
    ),
    Reason.EXPRESSION_VALUE: _("A value is expected at position %(position)s."),
    Reason.EXPRESSION_VALUE_NOT: _("A value is expected at position %(position)s, not %(token)s."),
    Reason.EXPRESSION_APOSTROPHE: _("The text at position %(position)s has no closing apostrophe."),
    Reason.EXPRESSION_NULL: _("null is not a value (position %(position)s). Remove the property instead."),
    Reason.EXPRESSION_NO_FUNCTION: _("There is no function %(function)s (position %(position)s)."),
    Reason.EXPRESSION_FUNCTION_LIKE: _(
        "There is no function %(function)s (position %(position)s). Did you mean %(similar)s?"
    ),
    Reason.EXPRESSION_MISUSE: _("%(function)s cannot be used like this (position %(position)s): %(usage)s."),
    Reason.EXPRESSION_MISUSE_WITH: _(
        "%(function)s cannot be used with %(types)s (position %(position)s): %(usage)s."
    ),
    Reason.EDIT_DELETES_TOO: _("Deleted entities cannot be edited too."),
    Reason.EDIT_OF_KEYS_TWICE: _("An edit can change the keys only once."),
    Reason.EDIT_OF_KEY: _("%(property)s is part of the key. Use the operation “Change keys”."),
    Reason.EDIT_OF_TIMESTAMP: _("Timestamp is set by the server."),
    Reason.EDIT_KEY_STRING: _("A key must be a String: use string(…)."),
    Reason.EDIT_KEY_MISSING: _("Enter a PartitionKey, a RowKey or both."),
}


def describe_refusal(error: Refused | StorageError) -> str:
    """Return the sentence of a refusal; an error of the Table service without a reason keeps its own."""
    refusal = error.refusal
    text = TEXTS.get(refusal.reason)
    return str(refusal) if text is None else str(text) % refusal.facts


@contextmanager
def notify_refusals(request: HttpRequest) -> Iterator[None]:
    """Show the refusal of an operation as an error; the rest of the block is left out."""
    try:
        yield
    except (Refused, StorageError) as error:
        notify_error(request, describe_refusal(error))
