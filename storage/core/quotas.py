"""Quotas: maximum numbers of objects per account, user or table, and their settings."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Per(StrEnum):
    """Owner per which objects are counted."""

    ACCOUNT = "account"
    USER = "user"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Quota:
    """Quota: the maximum number of objects of a kind, per account, user or table."""

    name: str
    per: Per
    default: int
    most: int  # the largest value that an option may set
    has_setting: bool = False  # accounts may have a lower one of their own

    @property
    def option(self) -> str:
        return f"{self.name.upper()}_LIMIT"

    @property
    def setting(self) -> str:
        return f"{self.name}_limit"


SNAPSHOTS: Final = Quota("snapshot", Per.ACCOUNT, 100, 10_000, has_setting=True)  # that users took
BRANCHES: Final = Quota("branch", Per.ACCOUNT, 20, 10_000)  # that others than admins make
SAVED_QUERIES: Final = Quota("saved_query", Per.ACCOUNT, 1_000, 100_000, has_setting=True)
OWN_SAVED_QUERIES: Final = Quota("user_saved_query", Per.USER, 500, 100_000)  # in all accounts
# addresses that are too long; beyond it those that were not used for the longest are forgotten
SAVED_URLS: Final = Quota("saved_url", Per.ACCOUNT, 10_000, 1_000_000)
# addresses for which a short one stands, likewise
LINKS: Final = Quota("link", Per.ACCOUNT, 10_000, 1_000_000)
COMMENTS: Final = Quota("comment", Per.ACCOUNT, 100_000, 10_000_000)
SAS: Final = Quota("sas", Per.ACCOUNT, 5_000, 100_000, has_setting=True)  # issued, not expired
LABELS: Final = Quota("label", Per.ACCOUNT, 32, 1_000)
API_TOKENS: Final = Quota("api_token", Per.USER, 100, 10_000)  # not revoked
API_REQUESTS: Final = Quota("api_request", Per.USER, 600, 1_000_000)  # requests with a token, per minute
STREAMS: Final = Quota("stream", Per.USER, 20, 1_000)  # streams of a user's session or token, in a process
ACCOUNT_STREAMS: Final = Quota("account_stream", Per.ACCOUNT, 500, 1_000)  # in a process
DOWNLOADS: Final = Quota("download", Per.USER, 8, 64)  # unfinished, in a process
# files that wait for the jobs that read them
UPLOADS: Final = Quota("upload_megabyte", Per.USER, 20_480, 10_000_000)
# jobs that read files of rows or of Azurite: imports, checks and copies of them that have not ended
IMPORTS: Final = Quota("import", Per.USER, 10, 10_000)
ACCOUNT_IMPORTS: Final = Quota("account_import", Per.ACCOUNT, 50, 10_000)
INDEXES: Final = Quota("index", Per.TABLE, 20, 100)  # indexes of properties; each makes writes slower
WEBHOOKS: Final = Quota("webhook", Per.ACCOUNT, 10, 100)  # the server itself has as many

QUOTAS: Final = (
    SNAPSHOTS,
    BRANCHES,
    SAVED_QUERIES,
    OWN_SAVED_QUERIES,
    SAVED_URLS,
    LINKS,
    COMMENTS,
    SAS,
    LABELS,
    API_TOKENS,
    API_REQUESTS,
    STREAMS,
    ACCOUNT_STREAMS,
    DOWNLOADS,
    UPLOADS,
    IMPORTS,
    ACCOUNT_IMPORTS,
    INDEXES,
    WEBHOOKS,
)
