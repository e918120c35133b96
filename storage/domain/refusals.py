"""Why an operation is refused: a reason with the facts that fill its words.

The management API, commands and the log use the English sentence of the reason; the console has its own words, in
the language of its reader. A StorageError, which the Table service answers with, may have a reason for the console.
"""

# ruff: noqa: S105  no token here is a secret

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Reasons by subject; each value is the sentence in English, with the names of its facts."""

    # accounts
    ACCOUNT_BUSY = "The account {account} is being made or deleted. Try again when that is done."
    ACCOUNT_EXPIRED = "The account {account} has expired; extend its lifetime first."
    NO_COORDINATOR_FOR_NEW_TABLES = "Tables can be distributed only in the database of a Citus coordinator."
    HISTORY_DAYS = "The history of an account is kept for 0 to {most} days."
    HISTORY_BYTES = "The history of an account may take {least} MiB or more."
    UNKNOWN_CONSISTENCY = "The consistency level must be one of {levels}."
    STALENESS = "Reads may be behind by 1 to {most} seconds."
    ACCOUNT_PROTECTED = "The account {account} is protected; turn off the protection first."
    ACCOUNT_HAS_TABLES = (
        "The account {account} still has tables ({number}); use --with-tables to delete them too."
    )
    READ_ONLY_ACCOUNT_HAS_TABLES = "The account {account} is read-only and still has tables ({number})."
    KEY_NOT_BASE64 = "An account key must be base64."
    KEYS_SEALED_OTHERWISE = (
        "The account keys of {accounts} in this database were sealed with another secret. Restore that secret"
        " as TABLERO_SECRET or as the file secret in the data folder. If it is lost, replace the keys: "
        "account rotate {first} 1, and the same for key 2 and for every other account."
    )
    DECLARATION_MALFORMED = "The account {account!r} must be declared as name:key1 or name:key1:key2."
    UNKNOWN_KIND = "The account {account!r} has an unknown kind, {kind!r}: write storage or cosmos."
    ACCOUNT_NAME = "{account!r} cannot be an account: its name must be 3 to 24 lower-case letters and digits."
    PUBLIC_KEY = (
        "The account {account} has the public key of {development}, and this server does not listen on "
        "loopback only; use another key, or accept the risk with --allow-development-account."
    )
    NO_ACCOUNT = "The account {account} does not exist."
    NO_SECRET = "There is no server secret; set TABLERO_SECRET or start the server once."
    ACCOUNT_EXISTS = "An account named {account} already exists."
    HISTORY_NEEDS_POSTGRESQL_18 = "Recording history needs PostgreSQL 18 or later."
    NETWORK_MALFORMED = "{text!r} is not an IP address or network; write it as 192.0.2.1 or 192.0.2.0/24."
    ACCOUNT_SEALED_OTHERWISE = (
        "The keys of the account {account} were sealed with another secret. Restore that secret as "
        "TABLERO_SECRET or as the file secret in the data folder; if it is lost, rotate both keys of the "
        "account."
    )
    NO_USER = "There is no user named {user} on this server."
    LAST_OWNER = "{user} is the last owner of the account {account}; add another owner first."
    ACCOUNT_KIND_IS_FIXED = (
        "The account {account} is of the kind {kind}, which cannot be changed to {wanted}."
    )

    # entities
    CHANGE_TOO_LARGE = "These entities have more than {most} MiB together. Change fewer at once."

    BULK_EDIT_NUMBER = (
        "The account {account} is protected: confirm the number of entities that the edit is about."
    )
    NOT_EDITED = "Not edited: {why}"
    BULK_EDIT_COUNT = "The query finds {found} entities now, not {number}. Preview the edit again."

    # SAS tokens and saved queries
    TOO_MANY_SAS = "The account {account} can have at most {most} SAS tokens that have not expired."
    TOO_MANY_SAVED_QUERIES = "The account {account} can have at most {most} saved queries; delete one first."
    TOO_MANY_OWN_QUERIES = "A user can have at most {most} saved queries; delete one first."

    # API tokens
    TOO_MANY_TOKENS = "A user can have at most {most} tokens; revoke one first."

    # notices
    NO_NOTICE_KIND = "There is no kind of notice named {kind} here."
    NOTICE_THRESHOLD = "The threshold of {kind} must be between {least} and {most}."
    WEBHOOK_URL = (
        "The URL of a webhook must begin with https:// or http://, with a host and without a user name."
    )
    WEBHOOK_EXISTS = "A webhook named {webhook} already exists."
    TOO_MANY_WEBHOOKS = "There can be at most {most} webhooks; delete one first."
    NO_WEBHOOK = "There is no webhook {webhook}."
    MUTES_NOTHING = "Name an account or a kind of notice to mute."
    TOO_MANY_MUTES = "A user can mute at most {most} notices and kinds; unmute one first."

    # history, the past and the feed
    DISTRIBUTED_HAS_NO_IMAGES = (
        "The table {table} is distributed over several nodes. Changes of its entities can be undone one by "
        "one, but not together, nor restored or compared."
    )
    NODES_ARE_BUSY = (
        "Other tables are being created or moved on the nodes of the cluster. Please retry your request."
    )
    NODE_IS_DOWN = "A node of the cluster does not answer. Please retry your request."
    SYSTEM_TABLE_HAS_NO_HISTORY = "System tables have no history."
    NO_HISTORY = "The account keeps no history."
    HISTORY_BEGINS = "Changes are kept since {since}."
    DISTRIBUTED_HAS_NO_PAST = "{table} is distributed over several nodes, which have no past in common."
    TABLE_HISTORY_BEGINS = "Changes of {table} are kept since {since}."
    FUTURE = "{moment} is in the future."
    MOMENT_NOT_CLOSED = (
        "Writes that may belong to {moment} have not ended. Try again, or read an earlier time."
    )
    METRICS_RANGE = "The range has to begin before it ends, and in the past."
    METRICS_TOO_OLD = "Metrics are kept for 90 days."
    METRICS_STEP = (
        "A step of {step} minutes is too short for this range: counts of minutes are kept for a day, and of 15 minutes"
        " for 8 days, and an answer has at most {points} periods."
    )
    NO_FEED = "The account keeps no history, so it has no change feed."
    TOKEN_OF_ANOTHER_FEED = "The token belongs to the feed of another account or of other tables."
    TOKEN_OF_ANOTHER_DATABASE = (
        "The token belongs to another database, or to one that was restored. Re-read the entities, then "
        "continue with a new token."
    )
    TOKEN_EXPIRED = (
        "Changes after this token are no longer kept, only those since {since}. Re-read the entities, then "
        "continue with a new token."
    )
    TOKEN_AHEAD = (
        "The database was restored to a state before this token. Re-read the entities, then continue with a "
        "new token."
    )
    DISTRIBUTED_HAS_NO_FEED = (
        "The table {table} is distributed over several nodes and has no change feed. Read the feed of the "
        "other tables by their names."
    )

    # comparisons
    NO_MOMENT = "{text} is neither a time in RFC 3339 nor a snapshot of the account {account}."
    ACCOUNT_HISTORY_BEGINS = "The account {account} keeps its history since {since}."
    NO_TABLE = "The account {account} has no table {table}."
    DISTRIBUTED_NOT_COMPARED = (
        "The table {table} is distributed over several nodes and cannot be compared. Name the tables to "
        "compare."
    )
    ACCOUNT_HAS_NO_HISTORY = "The account {account} keeps no history."
    OTHER = "{text}"
    NO_TABLE_THEN = "The account {account} has no table {table} at {at}."
    NO_TABLE_TO_COMPARE = "Neither side has a table {table}."
    NOT_IN_SNAPSHOT = "{snapshot} was made with only some tables, without {table}."

    # indexes
    INDEX_EXISTS = "The property {property} of {table} has an index already."
    TOO_MANY_INDEXES = "A table can have {most} indexes; drop one of {table} first."
    INDEX_FAILED = "The index of {property} of the table {table} could not be made: {why}"
    NO_INDEX = "The property {property} of {table} has no index."

    # distribution
    NO_COORDINATOR = "The database is not the coordinator of a Citus cluster."
    NOT_DISTRIBUTED = "The table {table} is not distributed."
    ROWS_ARE_MOVED = "The rows of the table {table} are being moved."
    DISTRIBUTED_ALREADY = "The table {table} is distributed already."
    SYSTEM_TABLE_NOT_DISTRIBUTED = "Tables of the server itself are not distributed."
    NO_COORDINATOR_YET = (
        "The database is not the coordinator of a Citus cluster: see docs/cluster.md for what it needs."
    )
    INDEX_IN_THE_MAKING = (
        "An index of {table} is being made, or its rows are being moved. Try again when that is done."
    )
    SNAPSHOT_JUST_TAKEN = "A snapshot of {table} was just taken. Try again."
    LONG_KEYS_NOT_DISTRIBUTED = (
        "The table {table} has entities whose keys take more than 2,600 bytes, which can be on one node only."
    )
    ACCOUNT_NOT_READ_THEN = "The account {account} cannot be read as of that time: no history is kept."
    ACCOUNT_READ_SINCE = (
        "The account {account} cannot be read as of that time: changes are kept since {since} UTC."
    )
    MASKED_NOT_COPIED = "The table {table} has masking rules, but is not copied."

    # branches and copies
    DISTRIBUTED_NOT_COPIED = (
        "The table {table} is distributed over several nodes, which have no moment in common. Name the tables"
        " to copy."
    )
    NO_TABLE_TO_COPY = "There is no table {table} to copy."
    TOO_MANY_SNAPSHOTS = (
        "The account {account} has {number} snapshots, and may have {most}; delete one first."
    )
    SNAPSHOTS_TOO_LARGE = (
        "The snapshots of the account {account} would take {size} MiB, and may take {most} MiB; delete one "
        "first."
    )
    SNAPSHOT_NAME = (
        "{snapshot!r} cannot be the name of a snapshot: use up to 64 letters, digits, periods, hyphens and "
        "underscores, and begin with a letter or digit."
    )
    NO_SNAPSHOT = "The account {account} has no snapshot named {snapshot}."

    # snapshots
    NO_TABLE_FOR_SNAPSHOT = "There is no table {table} in the account {account}."
    SNAPSHOT_EXISTS = "A snapshot named {snapshot} already exists."
    DISTRIBUTED_NOT_IN_SNAPSHOT = (
        "The table {table} is distributed over several nodes, which have no moment in common. Take a snapshot"
        " of the other tables."
    )
    NO_ORIGIN = "The account {account} no longer has the snapshot it began with."
    SNAPSHOT_OF_SOME_TABLES = (
        "The snapshot {snapshot} includes only some tables, so it does not say which tables are newer."
    )
    ONLY_SOME_RESTORED = "Restore all tables to delete those that are newer than the snapshot."
    ONE_TABLE = "Name the one table whose entities to restore."
    NO_TABLE_IN_SNAPSHOT = "The snapshot {snapshot} has no table {table}."

    # applying a comparison
    SIDE_IS_PAST = "{side} is of the past. Only what is live can be changed."

    # texts that people write
    TOKEN_INVALID = "The token is not valid."
    LIFETIME_MALFORMED = "A lifetime needs a number and m, h, d or w, for example 90m, 8h, 2d or 1w."
    LIFETIME = "A lifetime must be between one minute (1m) and 366 days (366d)."
    TOO_MANY_LABELS = "An account can have at most {most} labels."
    LABEL_NAME = "A label name needs 1 to {most} letters or digits, with . _ / - between them."
    LABEL_VALUE = "The value of the label {label} must be one line of at most {most} characters."
    LABEL_TWICE = "The label {label} appears twice."
    TIMESTAMP_MASK = "Timestamp is set by the server and cannot be masked."
    UNKNOWN_MASK = "{text!r} is not a masking rule; use one of {masks}, or constant:TEXT."
    MASKING_CONSTANT = (
        "The constant text can have up to {most} ASCII characters without quotation marks and backslashes."
    )
    KEY_MASK = "{property} can only be hashed or kept, because keys must stay different."
    NO_BRANCH = "The account {account} is not a branch."
    MASKING_RULE_MALFORMED = "{text!r} is not a masking rule; write it as customers.Email=email."

    # distribution that failed, with the cause that PostgreSQL gives
    DISTRIBUTION_FAILED = "The table {table} could not be distributed: {why}"
    GATHERING_FAILED = "The table {table} could not be brought back: {why}"
    LOCK_FAILED = "The table {table} could not be locked: {why}"
    COPY_DOES_NOT_FIT = "Not everything fits into an account of this kind; nothing was copied."

    # jobs
    NO_JOB = "There is no job {job}."
    JOB_ENDED = "The job {job} has ended."
    JOB_STOPPED = "The job {job} was paused or cancelled before its end."
    JOB_GOES_ON_LATER = "The server stops. The job {job} goes on when it is back."
    JOB_ACCESS_LOST = (
        "The job was stopped because {user}, who started it, no longer has the access that it needs."
    )
    JOB_PAUSED = "The job {job} is paused already."
    JOB_OF_ONE_PROCESS = (
        "The job {job} reads a file of the command that started it, so it cannot be paused or resumed."
    )
    JOB_NOT_RESUMABLE = "The job {job} is not paused, and has neither failed nor been cancelled."
    JOB_DIES = "The same step was begun {attempts} times and did not end: the process died, or the database was busy."
    JOB_FILE_EXPIRED = "The file {file} is no longer kept."
    JOB_BROKEN = "The server made a mistake ({why}), which its log describes."

    # files of accounts
    FILE_NOT_READ = "{path} cannot be read: {why}."
    FILE_NOT_WRITTEN = "It is not possible to write to {path}: {why}."
    FILE_UNKNOWN = (
        "The file is not an export of an account: it is not compressed with gzip, or its first line is not the"
        " header of one."
    )
    FILE_VERSION = (
        "The file has version {version} of the format; this version of Tablero reads version {known}."
    )
    FILE_INCOMPLETE = "The file is incomplete: it ends after line {line}."
    FILE_DAMAGED = "The file is damaged after line {line}: its content cannot be decompressed."
    FILE_CHECKSUM = (
        "The file is damaged: the counts and the checksum in line {line} are not those of its content."
    )
    FILE_NOT_JSON = "Line {line} of the file is not JSON."
    FILE_LINE = "Line {line} of the file does not belong there: an export has tables, each with its entities."
    FILE_FIELD = "Line {line} of the file has no valid {field}."
    FILE_COMMENTS = (
        "The file has more than {most} comments, the most an account can have (TABLERO_COMMENT_LIMIT)."
    )
    FILE_KEY_TWICE = "Line {line} of the file has the same keys as the line before."
    FILE_DISORDER = "Line {line} of the file has keys that belong before those of the line before."
    # files of rows
    FILE_TOO_LARGE = "Your uploads may have {megabytes} megabytes more until your imports have ended."
    FILES_BEING_READ = "Several of your files are being read. Try again in a few seconds."
    FILES_BUSY = "The server is reading other files. Try again in a few seconds."
    TOO_MANY_IMPORTS = (
        "You have {most} imports, checks and copies of files that have not ended. Wait until one of them ends, or"
        " cancel one."
    )
    TOO_MANY_ACCOUNT_IMPORTS = (
        "The account {account} has {most} imports, checks and copies of files that have not ended. Wait until one of"
        " them ends."
    )
    FILE_ROWS_EMPTY = "The file is empty."
    FILE_ROWS_BINARY = "The file is not text, and neither Parquet nor compressed with gzip or ZIP."
    FILE_ROWS_DAMAGED = "The file is damaged: its content cannot be decompressed."
    FILE_ROWS_CUT_OFF = "The file is incomplete or damaged: it cannot be read after line {line}."
    FILE_ROWS_ZIP_FILES = "The ZIP file has {number} files; import one that has a single file."
    FILE_ROWS_ENCODING = "There is no encoding {encoding} to read files in. Choose one of: {encodings}."
    FILE_ROWS_COLUMNS = "The file has {number} columns, more than an entity can have: {most} properties."
    FILE_ROWS_COLUMN_TWICE = "The file has two columns named {column}."
    FILE_ROWS_LONG_LINE = "Line {line} is longer than any entity; is this a file of rows?"
    FILE_ROWS_ROWLESS = (
        "There is no row for a long way after line {line}: only blank lines, white space, or a quotation mark that is"
        " never closed."
    )
    FILE_ROWS_EXPANDS = (
        "The compressed file expands to more than {times} times its size, which no file of rows does. Import it"
        " without compression."
    )
    FILE_ROWS_ZIP_METHOD = (
        "The ZIP file has a password, or was not compressed with Deflate. Make it again without a password, with the"
        " usual compression."
    )
    FILE_ROWS_ZIP_DIRECTORY = "The ZIP file lists too many files: more than {megabytes} MB of names."
    FILE_ROWS_NOT_JSON = "The file is not JSON at line {line}."
    FILE_ROWS_NO_LIBRARY = (
        "To read and write Parquet, install the extra parquet: pip install 'tablero-server[parquet]'."
    )
    FILE_ROWS_NOT_PARQUET = "The file is not a Parquet file that can be read: {why}"
    FILE_ROWS_HALF_CHARACTER = (
        "The property {property} has a text with half of a surrogate pair, which Parquet cannot hold. Use CSV or"
        " JSON."
    )
    FILE_ROWS_CHANGED = "The properties of the entities have changed during the export. Export again."
    FILE_ROWS_NO_KEY = (
        "Choose the columns that make up the {property}, such as {{{example}}}: the file has no column of this name,"
        " but {columns}."
    )
    FILE_ROWS_KEYS_PROPOSED = (
        "Choose the columns that make up the {property}: the file has no column of this name, but {columns}."
        " Proposed: PartitionKey {partition_key}, RowKey {row_key}. {why}."
    )
    FILE_MAPPING_TEMPLATE = (
        "{text!r} is not a template: write names of columns in braces, as in {{tenant}}-{{id}}."
    )
    FILE_MAPPING_NO_COLUMN = "The file has no column {column}, but {columns}."
    FILE_MAPPING_PROPERTY = "{text!r} cannot be the name of a property."
    FILE_MAPPING_TWICE = "Two columns would become the property {property}."
    FILE_MAPPING_MALFORMED = "This is not a mapping: {why}"
    TABLE_GONE = "The table {table} was deleted during the export. Export the account again."
    NO_ACCESS = "You have no access to an account named {account}."

    # expressions and operations of a bulk edit; positions count from one
    EXPRESSION_TOO_LONG = "The expression is longer than {most} characters."
    EXPRESSION_TOO_DEEP = "More than {most} levels are nested at position {position}."
    EXPRESSION_OPERATOR = "An operator is expected at position {position}."
    EXPRESSION_OPERATOR_NOT = "An operator is expected at position {position}, not {token}."
    EXPRESSION_CLOSE = "An operator or ) is expected at position {position}."
    EXPRESSION_CLOSE_NOT = "An operator or ) is expected at position {position}, not {token}."
    EXPRESSION_VALUE = "A value is expected at position {position}."
    EXPRESSION_VALUE_NOT = "A value is expected at position {position}, not {token}."
    EXPRESSION_APOSTROPHE = "A text without its closing apostrophe begins at position {position}."
    EXPRESSION_NULL = "null is no value: remove the property instead, at position {position}."
    EXPRESSION_NO_FUNCTION = "There is no function {function} at position {position}."
    EXPRESSION_FUNCTION_LIKE = (
        "There is no function {function} at position {position}. Did you mean {similar}?"
    )
    EXPRESSION_MISUSE = "{function} at position {position} cannot be used: {usage}."
    EXPRESSION_MISUSE_WITH = "{function} at position {position} cannot be used with {types}: {usage}."
    EDIT_DELETES_TOO = "What is deleted cannot be edited too."
    EDIT_OF_KEYS_TWICE = "An edit can change the keys once."
    EDIT_OF_KEY = "{property} is changed by the operation key."
    EDIT_OF_TIMESTAMP = "Timestamp is set by the server."
    EDIT_KEY_STRING = "A key is a String: use string(…)."
    EDIT_KEY_MISSING = "The operation key needs partition_key, row_key or both."

    # copies from and to other services
    REMOTE_CONNECTION_STRING = (
        "A connection string consists of NAME=VALUE parts with semicolons between them, and has an AccountName or a"
        " TableEndpoint."
    )
    REMOTE_KEY = "The AccountKey is not base64. Copy the connection string again."
    REMOTE_ACCOUNT = (
        "The name of the account may have only letters, digits, hyphens, periods and underscores. Copy it"
        " again."
    )
    REMOTE_URL = "The URL must begin with https:// or http:// and a host, and cannot have a user or spaces."
    REMOTE_URL_PATH = "The path of the URL must be the account, and a table if only that is to be copied."
    REMOTE_NO_CREDENTIALS = (
        "The key, the SAS or the bearer token is missing. Paste a connection string, or a URL with a SAS."
    )
    REMOTE_REFUSED = "{service} answered {answer} to {operation}."
    REMOTE_FORBIDDEN = (
        "{service} answered {answer} to {operation}. Check that the key is right, or that the SAS or token is valid and"
        " permits this operation."
    )
    REMOTE_PRIVATE = (
        "{service} cannot be resolved, or is in a private network. Name the network in TABLERO_COPY_NETWORKS, or use"
        " the command copy, which connects anywhere."
    )
    REMOTE_WITHOUT_TLS = "{service} would be reached without TLS. Use https."
    REMOTE_UNREACHABLE = "{service} cannot be reached: {why}. Check its address, and that it is running."
    REMOTE_CREDENTIALS_GONE = (
        "The credentials of {service} were deleted when the job {job} ended. Start the same copy again: it goes on"
        " where this one stopped."
    )
    COPY_TABLES = "No table matches {patterns}."
    COPY_NAME_TWICE = "Two tables would become {table}."
    COPY_FILTER_OF_FILE = "A file cannot be filtered; copy it whole, or from a service that runs."
    FILE_ACCOUNTS = "{path} has the accounts {accounts}; name one of them."
    FILE_NOT_AZURITE = "{path} is not a file of Azurite's table service, or is damaged."

    # comments and links
    COMMENT_EMPTY = "A comment needs a text."
    COMMENT_TOO_LONG = "A comment can have {most} characters."
    TOO_MANY_COMMENTS_AT_ONCE = "A user can write {most} comments in a minute; wait a little."
    TOO_MANY_COMMENTS = "The account {account} has {most} comments, which is the most it can have."
    NO_SHORT_LINK = "Only pages of an account have short links."
    LINK_HOLDS_SECRET = "This address holds a token or key, which must not be passed on. No link was made."
    LINK_TOO_LONG = "An address of more than {most} characters cannot have a short link."

    def of(self, **facts: object) -> "Refusal":
        return Refusal(self, facts)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason and its facts; ``str`` is the sentence in English."""

    reason: Reason
    facts: Mapping[str, object]

    def __str__(self) -> str:
        return self.reason.value.format(**self.facts)

    def dump(self) -> str:
        """Write the refusal as JSON, to be shown later and in the words of any door."""
        facts = {name: fact if isinstance(fact, int) else str(fact) for name, fact in self.facts.items()}
        return json.dumps({"reason": self.reason.name, "facts": facts})

    @classmethod
    def load(cls, text: str) -> "Refusal":
        """Read what ``dump`` wrote; any other text is a sentence that an older version stored."""
        try:
            found = json.loads(text)
            return cls(Reason[found["reason"]], found["facts"])
        except (ValueError, KeyError, TypeError):
            return Reason.OTHER.of(text=text)


class Refused(Exception):
    """An operation is refused, for a reason and its facts or as another was; each subject has its subclass."""

    def __init__(self, reason: Reason | Refusal, /, **facts: object) -> None:
        self.refusal = reason.of(**facts) if isinstance(reason, Reason) else reason
        super().__init__(str(self.refusal))
