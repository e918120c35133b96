"""Request log as a file, with the API's field names."""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

from storage.models import RecordedRequest
from storage.requests import explanations

FIELDS: Final[Mapping[str, Callable[[RecordedRequest], Any]]] = {
    "id": attrgetter("pk"),
    "at": lambda request: request.at.isoformat(),
    "request_id": lambda request: str(request.request_id),
    "client_request_id": attrgetter("client_request_id"),
    "outcome": attrgetter("outcome"),
    "status": attrgetter("status"),
    "code": attrgetter("error"),
    "operation": attrgetter("operation"),
    "method": attrgetter("method"),
    "table": attrgetter("table_name"),
    "path": attrgetter("path"),
    "options": attrgetter("options"),
    "seconds": attrgetter("seconds"),
    "ingress": attrgetter("ingress"),
    "egress": attrgetter("egress"),
    "authentication": attrgetter("authentication"),
    "credential": attrgetter("credential"),
    "credential_name": explanations.credential_name,
    "address": attrgetter("address"),
    "agent": attrgetter("agent"),
    "version": attrgetter("version"),
    "access_path": attrgetter("access_path"),
    "index_candidates": attrgetter("candidates"),
    "explanation": explanations.explain,
    "alike": attrgetter("alike"),
}
