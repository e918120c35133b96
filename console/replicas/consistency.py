"""Texts for consistency settings of an account, whose levels differ only with replicas."""

from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext_lazy

from storage.domain.requests.consistency import Consistency

# the promise of each level, by its name
PROMISES: Final = {
    Consistency.STRONG: gettext_lazy("Reads see every acknowledged write. The primary answers them."),
    Consistency.BOUNDED_STALENESS: gettext_lazy(
        "Reads see every write that was acknowledged longer ago than the bound below. A replica within the bound"
        " answers, otherwise the primary."
    ),
    Consistency.SESSION: gettext_lazy(
        "A client that sends back the latest x-ms-session-token sees everything it has written and read. Without"
        " the token, a read can miss even the client’s own writes. The Azure SDKs for tables do not send it by"
        " themselves."
    ),
    Consistency.CONSISTENT_PREFIX: gettext_lazy(
        "A replica answers. Reads see writes in the order in which they were committed, but the latest ones may be"
        " missing. The next read may be answered by another replica and be older."
    ),
    Consistency.EVENTUAL: gettext_lazy(
        "No order is guaranteed. On this server it is the same as Consistent prefix, because replicas apply writes in"
        " order."
    ),
}


def values() -> dict[str, Any]:
    """Return the template context of the settings section."""
    return {
        "promises": PROMISES,
        "has_replicas": bool(settings.READ_SOURCES),
        "replica_limit": settings.DECLARED_OPTIONS["REPLICA_LAG"],
    }
