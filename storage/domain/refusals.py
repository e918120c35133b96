"""Refusals of operations: a reason with the facts for its sentence."""

# ruff: noqa: S105  no token here is a secret

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique

from storage.domain.translation import mark as _


class AnyReason(StrEnum):
    """Base of reasons; a value is an English sentence with facts as ``%(name)s``."""

    def of(self, **facts: object) -> "Refusal":
        return Refusal(self, facts)


@unique
class Reason(AnyReason):
    """Reasons by subject; optional subjects declare their own."""

    # accounts
    ACCOUNT_BUSY = _("The account %(account)s is being created or deleted. Try again when that is done.")
    ACCOUNT_EXPIRED = _("The account %(account)s has expired. Extend its lifetime first.")
    HISTORY_DAYS = _("The history of an account is kept for 0 to %(most)s days.")
    HISTORY_BYTES = _("The history of an account may take %(least)s to %(most)s MiB.")
    UNKNOWN_CONSISTENCY = "The consistency level must be one of %(levels)s."
    UNKNOWN_STRICTNESS = "The strictness must be one of %(values)s."
    STALENESS = _("Reads may be behind by 1 to %(most)s seconds.")
    ACCOUNT_PROTECTED = _("The account %(account)s is protected. Turn off the protection first.")
    ACCOUNT_HAS_TABLES = (
        "The account %(account)s still has tables (%(number)s); use --with-tables to delete them too."
    )
    READ_ONLY_ACCOUNT_HAS_TABLES = _(
        "The account %(account)s is read-only and still has tables (%(number)s)."
    )
    KEY_NOT_BASE64 = "An account key must be base64."
    KEYS_SEALED_OTHERWISE = (
        "The account keys of %(accounts)s in this database were sealed with another secret. Restore that secret as"
        " TABLERO_SECRET or as the file secret in the data folder. If it is lost, replace the keys: account rotate"
        " %(first)s 1, and the same for key 2 and for every other account."
    )
    DECLARATION_MALFORMED = "The account “%(account)s” must be declared as name:key1 or name:key1:key2."
    UNKNOWN_KIND = "The account “%(account)s” has an unknown kind, “%(kind)s”: write storage or cosmos."
    ACCOUNT_NAME = _(
        "“%(account)s” cannot be an account: its name must be 3 to 24 lowercase letters and digits."
    )
    PUBLIC_KEY = (
        "The account %(account)s has the public key of %(development)s, and this server does not listen on loopback"
        " only; use another key, or accept the risk with --allow-development-account."
    )
    NO_ACCOUNT = _("The account %(account)s does not exist.")
    NO_SECRET = "There is no server secret; set TABLERO_SECRET or start the server once."
    ACCOUNT_EXISTS = _("An account named %(account)s already exists.")
    HISTORY_NEEDS_POSTGRESQL_18 = _("Recording history needs PostgreSQL 18 or later.")
    NETWORK_MALFORMED = _(
        "“%(text)s” is not an IP address or network. Write it as 192.0.2.1 or 192.0.2.0/24."
    )
    ACCOUNT_SEALED_OTHERWISE = _(
        "The keys of the account %(account)s were sealed with another secret. Restore that secret as TABLERO_SECRET or"
        " as the file secret in the data folder. If it is lost, rotate both keys of the account."
    )
    NO_USER = "There is no user named %(user)s on this server."
    LAST_OWNER = "%(user)s is the last owner of the account %(account)s; add another owner first."
    ACCOUNT_KIND_IS_FIXED = (
        "The account %(account)s is of the kind %(kind)s, which cannot be changed to %(wanted)s."
    )

    # entities
    CHANGE_TOO_LARGE = _("These entities have more than %(most)s MiB together. Change fewer at once.")

    BULK_EDIT_NUMBER = (
        "The account %(account)s is protected: confirm the number of entities that the edit is about."
    )
    NOT_EDITED = _("Not edited: %(why)s")
    BULK_EDIT_COUNT = _("The query finds %(found)s entities now, not %(number)s. Preview the edit again.")

    # SAS tokens and saved queries
    TOO_MANY_SAS = _("The account %(account)s can have at most %(most)s SAS tokens that have not expired.")
    TOO_MANY_SAVED_QUERIES = _(
        "The account %(account)s can have at most %(most)s saved queries. Delete one first."
    )
    TOO_MANY_OWN_QUERIES = "A user can have at most %(most)s saved queries; delete one first."

    # API tokens
    TOO_MANY_TOKENS = _("A user can have at most %(most)s tokens. Revoke one first.")

    # notices
    NO_NOTICE_KIND = "There is no kind of notice named %(kind)s here."
    NO_NOTICE_THRESHOLD = "Notices of the kind %(kind)s have no threshold."
    NOTICE_THRESHOLD = "The threshold of %(kind)s must be between %(least)s and %(most)s."
    WEBHOOK_URL = _(
        "The URL of a webhook must begin with https:// or http://, with a host and without a user name."
    )
    WEBHOOK_EXISTS = _("A webhook named “%(webhook)s” already exists.")
    TOO_MANY_BRANCHES = _("%(account)s has %(most)s branches already. Delete one first, or ask an admin.")
    TOO_MANY_WEBHOOKS = _("There can be at most %(most)s webhooks. Delete one first.")
    NO_WEBHOOK = _("There is no webhook “%(webhook)s”.")
    MUTES_NOTHING = "Name an account or a kind of notice to mute."
    TOO_MANY_MUTES = "A user can mute at most %(most)s notices and kinds; unmute one first."

    # history, the past and the feed
    NODES_ARE_BUSY = (
        "Other tables are being created or moved on the nodes of the cluster. Please retry your request."
    )
    NODE_IS_DOWN = "A node of the cluster does not answer. Please retry your request."
    NO_HISTORY = _("The account keeps no history.")
    HISTORY_BEGINS = _("Changes are kept since %(since)s.")
    TABLE_HISTORY_BEGINS = _("Changes of %(table)s are kept since %(since)s.")
    FUTURE = _("%(moment)s is in the future.")
    MOMENT_NOT_CLOSED = _(
        "Writes that may belong to %(moment)s have not ended. Try again, or read an earlier time."
    )
    METRICS_RANGE = "The range has to begin before it ends, and in the past."
    METRICS_TOO_OLD = "Metrics are kept for 90 days."
    METRICS_STEP = (
        "A step of %(step)s minutes is too short for this range: counts of minutes are kept for a day, and of 15"
        " minutes for 8 days, and an answer has at most %(points)s periods."
    )
    NO_FEED = "The account keeps no history, so it has no change feed."
    TOKEN_OF_ANOTHER_FEED = "The token belongs to the feed of another account or of other tables."
    TOKEN_OF_ANOTHER_DATABASE = (
        "The token belongs to another database, or to one that was restored. Re-read the entities, then continue with a"
        " new token."
    )
    TOKEN_EXPIRED = (
        "Changes after this token are no longer kept, only those since %(since)s. Re-read the entities, then continue"
        " with a new token."
    )
    TOKEN_AHEAD = (
        "The database was restored to a state before this token. Re-read the entities, then continue with a new"
        " token."
    )

    # comparisons
    NO_MOMENT = _("%(text)s is neither a time in RFC 3339 nor a snapshot of the account %(account)s.")
    ACCOUNT_HISTORY_BEGINS = _("The account %(account)s keeps its history since %(since)s.")
    NO_TABLE = _("The account %(account)s has no table %(table)s.")
    ACCOUNT_HAS_NO_HISTORY = _("The account %(account)s keeps no history.")
    OTHER = "%(text)s"
    NO_TABLE_THEN = _("The account %(account)s has no table %(table)s at %(at)s.")
    NO_TABLE_TO_COMPARE = _("Neither side has a table %(table)s.")
    NOT_IN_SNAPSHOT = _("%(snapshot)s does not include the table %(table)s.")

    # indexes
    INDEX_EXISTS = _("The property %(property)s of %(table)s has an index already.")
    TOO_MANY_INDEXES = _("A table can have %(most)s indexes. Drop one of %(table)s first.")
    INDEX_FAILED = _("The index on %(property)s of the table %(table)s could not be built: %(why)s")
    NO_INDEX = _("The property %(property)s of %(table)s has no index.")

    # the past of accounts
    ACCOUNT_NOT_READ_THEN = _("The account %(account)s cannot be read as of that time: no history is kept.")
    ACCOUNT_READ_SINCE = _(
        "The account %(account)s cannot be read as of that time: changes are kept since %(since)s UTC."
    )
    MASKED_NOT_COPIED = _("The table %(table)s has masking rules, but is not copied.")

    # branches and copies
    NO_TABLE_TO_COPY = _("There is no table %(table)s to copy.")
    TOO_MANY_SNAPSHOTS = _(
        "The account %(account)s has %(number)s snapshots, and may have %(most)s. Delete one first."
    )
    SNAPSHOTS_TOO_LARGE = _(
        "The snapshots of the account %(account)s would take %(size)s MiB, and may take %(most)s MiB. Delete one first."
    )
    SNAPSHOT_NAME = _(
        "“%(snapshot)s” cannot be the name of a snapshot: use up to 64 letters, digits, periods, hyphens and"
        " underscores, and begin with a letter or digit."
    )
    NO_SNAPSHOT = _("The account %(account)s has no snapshot named %(snapshot)s.")

    # snapshots
    NO_TABLE_FOR_SNAPSHOT = _("There is no table %(table)s in the account %(account)s.")
    SNAPSHOT_EXISTS = _("A snapshot named %(snapshot)s already exists.")
    NO_ORIGIN = _("The account %(account)s no longer has the snapshot it began with.")
    SNAPSHOT_OF_SOME_TABLES = _(
        "The snapshot %(snapshot)s includes only some tables, so it does not say which tables are newer."
    )
    ONLY_SOME_RESTORED = _("Restore all tables to delete those that are newer than the snapshot.")
    ONE_TABLE = _("Name the table whose entities you want to restore.")
    NO_TABLE_IN_SNAPSHOT = _("The snapshot %(snapshot)s has no table %(table)s.")

    # applying a comparison
    SIDE_IS_PAST = _("%(side)s is of the past. Only what is live can be changed.")

    # texts that people write
    TOKEN_INVALID = "The token is not valid."
    LIFETIME_MALFORMED = "A lifetime needs a number and m, h, d or w, for example 90m, 8h, 2d or 1w."
    LIFETIME = "A lifetime must be between one minute (1m) and 366 days (366d)."
    TOO_MANY_LABELS = "An account can have at most %(most)s labels."
    LABEL_NAME = "A label name needs 1 to %(most)s letters or digits, with . _ / - between them."
    LABEL_VALUE = "The value of the label %(label)s must be one line of at most %(most)s characters."
    LABEL_TWICE = "The label %(label)s appears twice."
    TIMESTAMP_MASK = _("Timestamp is set by the server and cannot be masked.")
    UNKNOWN_MASK = _("“%(text)s” is not a masking rule. Use one of %(masks)s, or constant:TEXT.")
    MASKING_CONSTANT = _(
        "The constant text can have up to %(most)s ASCII characters without quotation marks and backslashes."
    )
    KEY_MASK = _("%(property)s can only be hashed or kept, because keys must stay different.")
    NO_BRANCH = "The account %(account)s is not a branch."
    MASKING_RULE_MALFORMED = "“%(text)s” is not a masking rule. Write it as customers.Email=email."

    # copies
    COPY_DOES_NOT_FIT = _("Not everything fits into an account of this kind. Nothing was copied.")

    # jobs
    NO_JOB = _("There is no job %(job)s.")
    JOB_ENDED = _("The job %(job)s has ended.")
    JOB_STOPPED = _("The job %(job)s was paused or cancelled before its end.")
    JOB_GOES_ON_LATER = _("The server stops. The job %(job)s goes on when it is back.")
    JOB_ACCESS_LOST = _(
        "The job was stopped because %(user)s, who started it, no longer has the access that it needs."
    )
    JOB_PAUSED = _("The job %(job)s is paused already.")
    JOB_OF_ONE_PROCESS = _(
        "The job %(job)s reads a file of the command that started it, so it cannot be paused or resumed."
    )
    JOB_NOT_RESUMABLE = _("The job %(job)s is not paused, and has neither failed nor been cancelled.")
    JOB_DIES = "The same step was begun %(attempts)s times and did not end: the process died, or the database was busy."
    JOB_FILE_EXPIRED = _("The file %(file)s is no longer kept.")
    JOB_BROKEN = "The server made a mistake (%(why)s), which its log describes."

    # files of accounts
    FILE_NOT_READ = _("%(path)s cannot be read: %(why)s.")
    FILE_NOT_WRITTEN = "It is not possible to write to %(path)s: %(why)s."
    FILE_UNKNOWN = (
        "The file is not an export of an account: it is not compressed with gzip, or its first line is not the header"
        " of one."
    )
    FILE_VERSION = (
        "The file has version %(version)s of the format; this version of Tablero reads version %(known)s."
    )
    FILE_INCOMPLETE = "The file is incomplete: it ends after line %(line)s."
    FILE_DAMAGED = "The file is damaged after line %(line)s: its content cannot be decompressed."
    FILE_CHECKSUM = (
        "The file is damaged: the counts and the checksum in line %(line)s are not those of its content."
    )
    FILE_NOT_JSON = "Line %(line)s of the file is not JSON."
    FILE_LINE = (
        "Line %(line)s of the file does not belong there: an export has tables, each with its entities."
    )
    FILE_FIELD = "Line %(line)s of the file has no valid %(field)s."
    FILE_COMMENTS = (
        "The file has more than %(most)s comments, the most an account can have (TABLERO_COMMENT_LIMIT)."
    )
    FILE_KEY_TWICE = "Line %(line)s of the file has the same keys as the line before."
    FILE_DISORDER = "Line %(line)s of the file has keys that belong before those of the line before."
    # files of rows
    FILE_TOO_LARGE = _("Your uploads may have %(megabytes)s megabytes more until your imports have ended.")
    FILES_BEING_READ = _("Several of your files are being read. Try again in a few seconds.")
    FILES_BUSY = _("The server is reading other files. Try again in a few seconds.")
    TOO_MANY_IMPORTS = _(
        "You have %(most)s imports, checks and copies of files that have not ended. Wait until one of them ends, or"
        " cancel one."
    )
    TOO_MANY_ACCOUNT_IMPORTS = _(
        "The account %(account)s has %(most)s imports, checks and copies of files that have not ended. Wait until one"
        " of them ends."
    )
    FILE_ROWS_EMPTY = _("The file is empty.")
    FILE_ROWS_BINARY = _(
        "The file is not text, and neither Excel nor Parquet nor compressed with gzip or ZIP."
    )
    FILE_ROWS_DAMAGED = _("The file is damaged: its content cannot be decompressed.")
    FILE_ROWS_CUT_OFF = _("The file is incomplete or damaged: it cannot be read after line %(line)s.")
    FILE_ROWS_ZIP_FILES = _("The ZIP file has %(number)s files; import one that has a single file.")
    FILE_ROWS_ENCODING = _(
        "There is no encoding %(encoding)s to read files in. Choose one of: %(encodings)s."
    )
    FILE_ROWS_COLUMNS = _("The file has %(number)s columns. At most %(most)s can be read.")
    FILE_ROWS_COLUMN_TWICE = _("The file has two columns named %(column)s. Rename one of them in the file.")
    FILE_ROWS_LONG_LINE = _("Line %(line)s is longer than any entity; is this a file of rows?")
    FILE_ROWS_ROWLESS = _(
        "There is no row for a long way after line %(line)s: only blank lines, white space, or a quotation mark that is"
        " never closed."
    )
    FILE_ROWS_EXPANDS = _(
        "The compressed file expands to more than %(times)s times its size, which no file of rows does. Import it"
        " without compression."
    )
    FILE_ROWS_ZIP_METHOD = _(
        "The ZIP file has a password, or was not compressed with Deflate. Make it again without a password, with the"
        " usual compression."
    )
    FILE_ROWS_ZIP_DIRECTORY = _("The ZIP file lists too many files: more than %(megabytes)s MB of names.")
    FILE_ROWS_NOT_JSON = _("The file is not JSON at line %(line)s.")
    FILE_ROWS_NO_LIBRARY = _(
        "To read and write Parquet, install the extra parquet: pip install 'tablero-server[parquet]'."
    )
    FILE_ROWS_NOT_PARQUET = _("The file is not a Parquet file that can be read: %(why)s")
    FILE_ROWS_NO_EXCEL = _(
        "To read and write Excel files, install the extra excel: pip install 'tablero-server[excel]'."
    )
    FILE_ROWS_NOT_EXCEL = _("The file is not an Excel file that can be read: %(why)s")
    FILE_ROWS_OLD_EXCEL = _(
        "The file is an Excel file of an old format or with a password. Save it as .xlsx without a password."
    )
    FILE_ROWS_OTHER_DOCUMENT = _(
        "The file is an office document of another format, such as OpenDocument, .xlsb or Strict Open XML. Save it as"
        " an Excel workbook (.xlsx) or as CSV."
    )
    FILE_ROWS_EXCEL_LARGE = _("The Excel file is too large. Save its sheet as CSV, and import that.")
    FILE_ROWS_NO_SHEET = _("The Excel file has no sheet of rows named %(sheet)s.")
    FILE_ROWS_EXCEL_ROWS = _(
        "A sheet of Excel has no room for more than %(most)s entities. Export as CSV, or fewer entities."
    )
    FILE_ROWS_EXCEL_COLUMNS = _(
        "A sheet of Excel has no room for %(number)s columns, only for %(most)s. Export as CSV."
    )
    FILE_ROWS_EXCEL_TEXT = _(
        "%(property)s has a text of more than %(most)s characters, which a cell of Excel cannot hold. Export as CSV or"
        " JSON."
    )
    FILE_ROWS_EXCEL_CHARACTER = _(
        "%(property)s has a text with a character that a cell of Excel cannot hold. Export as CSV or JSON."
    )
    FILE_ROWS_HALF_CHARACTER = (
        "The property %(property)s has a text with half of a surrogate pair, which Parquet cannot hold. Use CSV or"
        " JSON."
    )
    FILE_ROWS_CHANGED = "The properties of the entities have changed during the export. Export again."
    FILE_ROWS_NO_KEY = _(
        "Choose the columns that make up the %(property)s, such as {%(example)s}: the file has no column of this name,"
        " but %(columns)s."
    )
    FILE_ROWS_KEYS_PROPOSED = _(
        "Choose the columns that make up the %(property)s: the file has no column of this name, but %(columns)s."
        " Proposed: PartitionKey %(partition_key)s, RowKey %(row_key)s. %(why)s."
    )
    FILE_MAPPING_TEMPLATE = _(
        "“%(text)s” is not a template: write names of columns in braces, as in {tenant}-{id}."
    )
    FILE_MAPPING_NO_COLUMN = _("The file has no column %(column)s, but %(columns)s.")
    FILE_MAPPING_PROPERTY = _("“%(text)s” cannot be the name of a property.")
    FILE_MAPPING_TWICE = _("Two columns would become the property %(property)s.")
    FILE_MAPPING_MALFORMED = "This is not a mapping: %(why)s"
    TABLE_GONE = "The table %(table)s was deleted during the export. Export the account again."
    NO_ACCESS = _("You have no access to an account named %(account)s.")

    # filters: the values of parameters
    PARAMETER_MISSING = _("Enter a value.")
    PARAMETER_NOT_A_LITERAL = _(
        "This parameter isn't in quotes. Enter a literal such as 30, 30L, true or 'text'."
    )
    # filters: what is wrong with one
    FILTER_TOO_LONG = _("A filter can have at most 100,000 characters.")
    FILTER_TOO_DEEP = _("Parentheses and not can be nested at most %(deepest)s levels deep.")
    FILTER_OPERATOR = _("Unknown operator “%(name)s”. Use eq, ne, gt, ge, lt or le.")
    FILTER_OPERATOR_LIKE = _("Unknown operator “%(name)s”. Did you mean %(instead)s?")
    FILTER_SIGN = _("Filters have operators of their own: eq, ne, gt, ge, lt, le, and, or, not.")
    FILTER_UNSUPPORTED = _("%(name)s isn't supported in filters.")
    FILTER_NULL = _("Properties cannot be compared with null. Use isset().")
    FILTER_QUOTES = _("Write strings in single quotes.")
    FILTER_OPEN_STRING = _("The string has no closing quote.")
    FILTER_OPEN_GROUP = _("A closing parenthesis is missing.")
    FILTER_NOT_OPENED = _("Syntax error: this parenthesis has no opening one.")
    FILTER_PREFIX = _("Write a %(type)s as %(instead)s.")
    FILTER_LETTER_CASE = _("Write %(instead)s in lowercase.")
    FILTER_LITERAL = _("%(name)s is not a valid %(type)s.")
    FILTER_CHARACTER = _("The character “%(name)s” is not allowed here.")
    FILTER_OPERANDS = _("Compare a property with a value, not two properties or two values.")
    FILTER_CONDITION = _("%(name)s is not a condition. Compare a property with it.")
    FILTER_INCOMPLETE = _("Syntax error: the filter ends where a property or value is expected.")
    FILTER_UNEXPECTED = _("Syntax error: “%(name)s” is not expected here. Join conditions with and or or.")
    # filters: what is probably not meant
    FILTER_INT64_SUFFIX = _("Azure rejects %(digits)s without the suffix L.")
    FILTER_UNKNOWN_PROPERTY = _("“%(name)s” wasn't found in any entity.")
    FILTER_NOT_IN_SAMPLE = _("“%(name)s” wasn't found in sampled entities.")
    FILTER_OTHER_TYPE = _("%(name)s is stored as %(types)s, not %(asked)s.")
    # filters: why nothing matches a valid one
    EMPTY_VALUE = _("No %(name)s is %(value)s.")
    EMPTY_CASE = _("No %(name)s is %(value)s. Text is case-sensitive: did you mean %(instead)s?")
    EMPTY_MOST = _("%(name)s is at most %(value)s.")
    EMPTY_LEAST = _("%(name)s is at least %(value)s.")
    EMPTY_CONDITION = _("No entity meets %(condition)s.")
    EMPTY_TOGETHER = _("Each of the conditions is met by some entities, but no entity meets them all.")

    # expressions and operations of a bulk edit; positions count from one
    EXPRESSION_PATTERN_TEXT = _("The pattern must be a text such as 'dd.MM.yyyy' (position %(position)s).")
    PATTERN_APOSTROPHE = _("The text at position %(position)s of the pattern has no closing apostrophe.")
    PATTERN_LETTERS = _(
        "%(letters)s is no part of a time (position %(position)s). Use d, dd, M, MM, yy, yyyy, H, HH, m, mm, s, ss, f"
        " or z, and write other letters in apostrophes."
    )
    PATTERN_TWICE = _("%(letters)s repeats a part of the time (position %(position)s).")
    PATTERN_UNCLEAR = _(
        "%(letters)s follows a part of one or two digits (position %(position)s). Write a character between them."
    )
    PATTERN_DAY = _("The pattern needs the day, the month and the year: d, M and y (position %(position)s).")
    PATTERN_NEEDS = _("In the pattern, %(letters)s needs %(needed)s as well (position %(position)s).")
    EXPRESSION_TOO_LONG = _("The expression is longer than %(most)s characters.")
    EXPRESSION_TOO_DEEP = _("More than %(most)s levels are nested at position %(position)s.")
    EXPRESSION_OPERATOR = _("An operator is expected at position %(position)s.")
    EXPRESSION_OPERATOR_NOT = _("An operator is expected at position %(position)s, not %(token)s.")
    EXPRESSION_CLOSE = _("An operator or a closing parenthesis is expected at position %(position)s.")
    EXPRESSION_CLOSE_NOT = _(
        "An operator or a closing parenthesis is expected at position %(position)s, not %(token)s."
    )
    EXPRESSION_VALUE = _("A value is expected at position %(position)s.")
    EXPRESSION_VALUE_NOT = _("A value is expected at position %(position)s, not %(token)s.")
    EXPRESSION_APOSTROPHE = _("The text at position %(position)s has no closing apostrophe.")
    EXPRESSION_NULL = _("null is not a value (position %(position)s). Remove the property instead.")
    EXPRESSION_NO_FUNCTION = _("There is no function %(function)s (position %(position)s).")
    EXPRESSION_FUNCTION_LIKE = _(
        "There is no function %(function)s (position %(position)s). Did you mean %(similar)s?"
    )
    EXPRESSION_MISUSE = _("%(function)s cannot be used like this (position %(position)s): %(usage)s.")
    EXPRESSION_MISUSE_WITH = _(
        "%(function)s cannot be used with %(types)s (position %(position)s): %(usage)s."
    )
    EDIT_DELETES_TOO = _("Deleted entities cannot be edited too.")
    EDIT_OF_KEYS_TWICE = _("An edit can change the keys only once.")
    EDIT_OF_KEY = "%(property)s is changed by the operation key."
    EDIT_OF_TIMESTAMP = _("Timestamp is set by the server.")
    EDIT_KEY_STRING = _("A key must be a String: use string(…).")
    EDIT_KEY_MISSING = "The operation key needs partition_key, row_key or both."
    EDIT_COPIES_AND_MOVES = _("An edit makes second copies or changes keys, not both.")
    EDIT_COPY_IS_LAST = _("Second copies must be the last operation: those before it change only the copies.")
    EDIT_COPY_SAME = _("A second copy needs another PartitionKey, another RowKey or another table.")
    EDIT_COPIES_FILTER = _(
        "In the same table, left-over copies are found only with a filter that finds the copies."
    )

    # copies from and to other services
    REMOTE_CONNECTION_STRING = _(
        "A connection string consists of NAME=VALUE parts with semicolons between them, and has an AccountName or a"
        " TableEndpoint."
    )
    REMOTE_KEY = _("The AccountKey is not base64. Copy the connection string again.")
    REMOTE_ACCOUNT = _(
        "The name of the account may have only letters, digits, hyphens, periods and underscores. Copy it again."
    )
    REMOTE_URL = _(
        "The URL must begin with https:// or http:// and a host, and cannot have a user or spaces."
    )
    REMOTE_URL_PATH = _("The path of the URL must be the account, and a table if only that is to be copied.")
    REMOTE_NO_CREDENTIALS = _(
        "The key, the SAS or the bearer token is missing. Paste a connection string, or a URL with a SAS."
    )
    REMOTE_REFUSED = _("%(service)s answered %(answer)s to %(operation)s.")
    REMOTE_FORBIDDEN = _(
        "%(service)s answered %(answer)s to %(operation)s. Check that the key is right, or that the SAS or token is"
        " valid and permits this operation."
    )
    REMOTE_PRIVATE = _(
        "%(service)s cannot be resolved, or is a private address, which is blocked. Allow its network in"
        " TABLERO_COPY_NETWORKS, or run tablero copy on the server's machine."
    )
    REMOTE_WITHOUT_TLS = _("%(service)s would be reached without TLS. Use https.")
    REMOTE_UNREACHABLE = _(
        "%(service)s cannot be reached: %(why)s. Check its address, and that it is running."
    )
    REMOTE_CREDENTIALS_GONE = _(
        "The credentials of %(service)s were deleted when the job %(job)s ended. Start the same copy again: it goes on"
        " where this one stopped."
    )
    COPY_TABLES = _("No table matches %(patterns)s.")
    COPY_NAME_TWICE = _("Two tables would become %(table)s.")
    COPY_FILTER_OF_FILE = "A file cannot be filtered; copy it whole, or from a service that runs."
    FILE_ACCOUNTS = "%(path)s has the accounts %(accounts)s; name one of them."
    FILE_NOT_AZURITE = _("%(path)s is not a file of Azurite's table service, or is damaged.")

    # comments and links
    COMMENT_EMPTY = "A comment needs a text."
    COMMENT_TOO_LONG = "A comment can have %(most)s characters."
    TOO_MANY_COMMENTS_AT_ONCE = "A user can write %(most)s comments in a minute; wait a little."
    TOO_MANY_COMMENTS = _("The account %(account)s has %(most)s comments, which is the most it can have.")
    NO_SHORT_LINK = _("Only pages of an account have short links.")
    LINK_HOLDS_SECRET = _(
        "This address contains a token or key, which must not be shared. No link was created."
    )
    LINK_TOO_LONG = _("An address of more than %(most)s characters cannot have a short link.")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Reason with its facts; ``str`` gives the English sentence."""

    reason: AnyReason
    facts: Mapping[str, object]

    def __str__(self) -> str:
        return self.reason.value % self.facts

    def dump(self) -> str:
        """Serialize the refusal to JSON, so that it can be shown later in any language."""
        facts = {name: fact if isinstance(fact, int) else str(fact) for name, fact in self.facts.items()}
        return json.dumps({"reason": self.reason.name, "facts": facts})

    @classmethod
    def load(cls, text: str, reasons: Mapping[str, AnyReason]) -> "Refusal":
        """Parse the JSON from ``dump``; any other text counts as a sentence of an older version."""
        try:
            stored = json.loads(text)
            return cls(reasons[stored["reason"]], stored["facts"])
        except (ValueError, KeyError, TypeError):
            return Reason.OTHER.of(text=text)


class Refused(Exception):
    """An operation is refused; each subject has its subclass."""

    def __init__(self, reason: AnyReason | Refusal, /, **facts: object) -> None:
        self.refusal = reason.of(**facts) if isinstance(reason, AnyReason) else reason
        super().__init__(str(self.refusal))


class Missing(Refused):
    """The object of an operation does not exist."""
