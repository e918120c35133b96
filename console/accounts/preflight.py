"""Testing CORS rules with the preflight request that a browser would send."""

from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from storage.domain.errors import CorsPreflightFailure, InvalidHeaderValue
from storage.domain.service import cors
from storage.domain.service.service_properties import CorsRule


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    origin: str
    method: str
    headers: str


def read_request(data: QueryDict) -> PreflightRequest:
    return PreflightRequest(*(data.get(name, "").strip() for name in ("origin", "method", "headers")))


def apply_rules(rules: tuple[CorsRule, ...], request: PreflightRequest) -> dict[str, Any]:
    """Return the template context of the verdict."""
    if not request.origin or not request.method:
        return {"question": request, "refusal": InvalidHeaderValue(cors.MISSING_CORS_HEADER)}
    verdict = cors.check_preflight(rules, request.origin, request.method, request.headers)
    return {
        "question": request,
        "verdict": verdict,
        "number": None if verdict.place is None else verdict.place + 1,
        "rule": None if verdict.place is None else rules[verdict.place],
        "refusal": None if verdict.is_allowed else CorsPreflightFailure(),
        # why the rules before it do not match
        "reasons": [
            {
                "number": number,
                "is_other_origin": not cors.allows_origin(rule, request.origin),
                "is_other_method": request.method not in rule.methods,
            }
            for number, rule in enumerate(rules[: verdict.place], start=1)
        ],
    }
