"""File descriptor limits, as each client connection needs one."""

import resource
from functools import cache
from typing import Final

from storage.server.refusal import Refusal

LEAST: Final = 256  # descriptors of a process
RESERVED: Final = 128  # for files, and for connections to the databases; about 80 are used
_MOST: Final = 1 << 20  # where the limit of the user is infinite, the system has one nevertheless


def raise_limit() -> None:
    """Raise the file descriptor limit as far as possible; raises Refusal if it stays too low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MOST if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < limit:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        except (OSError, ValueError):  # macOS allows less than it says
            pass
    allowed = _limit()
    if allowed < LEAST:
        raise Refusal(
            f"This process may open {allowed} files, and a server needs at least {LEAST}. Raise the hard limit: with"
            " LimitNOFILE in a systemd unit, --ulimit nofile of a container, or ulimit -Hn in the shell that starts it."
        )


@cache
def most_connections() -> int:
    """Return the maximum number of client connections of a process."""
    return _limit() - RESERVED


def _limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else soft
