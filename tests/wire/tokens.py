"""Shared access signatures by a signer of its own, which knows the layouts and checks nothing.

https://learn.microsoft.com/rest/api/storageservices/create-service-sas#construct-a-service-sas
https://learn.microsoft.com/rest/api/storageservices/create-account-sas#construct-the-signature-string
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

DEFAULTS = {"sv": "2019-02-02", "se": "2099-12-31T23:59:59Z"}
TABLE_FIELDS = ("sp", "st", "se", "tn", "si", "sip", "spr", "sv", "spk", "srk", "epk", "erk")
ACCOUNT_FIELDS = ("sp", "ss", "srt", "st", "se", "sip", "spr", "sv")


def parameters(spec: Mapping[str, Any], account: str, key: str) -> dict[str, str]:
    """Return the parameters of a request's token: `sas` over the defaults, signed, then changed by `tamper`."""
    token = _override(DEFAULTS, spec["sas"])
    digest = hmac.digest(base64.b64decode(key), string_to_sign(token, account).encode(), hashlib.sha256)
    return _override({**token, "sig": base64.b64encode(digest).decode()}, spec.get("tamper", {}))


def string_to_sign(token: Mapping[str, str], account: str) -> str:
    if "ss" in token:
        scope = [token.get("ses", "")] if token["sv"] >= "2020-12-06" else []
        values = [account, *(token.get(name, "") for name in ACCOUNT_FIELDS), *scope]
        return "".join(value + "\n" for value in values)
    service = "/table" if token["sv"] >= "2015-02-21" else ""
    signed = {**token, "tn": f"{service}/{account}/{token['tn'].lower()}"}
    unsigned = () if token["sv"] >= "2015-04-05" else ("sip", "spr")
    return "\n".join(signed.get(name, "") for name in TABLE_FIELDS if name not in unsigned)


def _override(parameters: Mapping[str, str], changes: Mapping[str, Any]) -> dict[str, str]:
    """Change parameters; `false` leaves one out."""
    changed = {**parameters, **changes}
    return {name: value for name, value in changed.items() if value is not False}
