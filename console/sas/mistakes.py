"""What the inspector says is wrong with a pasted text, and how to fix it."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from storage.inspector import Finding, Mistake

# not wrong by themselves, but good to know
NOTES: Final = frozenset(
    {
        Mistake.NO_HOST,
        Mistake.ELSEWHERE,
        Mistake.SHELL_VARIABLE,
        Mistake.OPTION_UNKNOWN,
        Mistake.LINE_UNREADABLE,
        Mistake.ACCOUNT_NOT_NAMED,
        Mistake.BEARER,
        Mistake.PART_UNKNOWN,
        Mistake.TABLE_MISSING,
    }
)

MISTAKE_TEXTS: Final[Mapping[Mistake, Promise]] = {
    Mistake.PLUS_AS_SPACE: _(
        "A plus sign in %(name)s was decoded as a space. Percent-encode each value before adding it to the URL: a plus"
        " is written %%2B."
    ),
    Mistake.ENCODED_TWICE: _(
        "%(name)s was percent-encoded twice: %%2B became %%252B. Clients encode the values of a token themselves; pass"
        " the token unchanged."
    ),
    Mistake.URL_SAFE_BASE64: _(
        "The signature uses URL-safe base64 with - and _. The service expects standard base64 with + and /,"
        " percent-encoded."
    ),
    Mistake.PADDING: _(
        "The padding of the signature is wrong: its 44 characters must end in exactly one equals sign (=)."
    ),
    Mistake.HEXADECIMAL: _("The signature is hexadecimal. The service expects its 32 bytes in base64."),
    Mistake.RETIRED_KEY: _("It was signed with %(key)s, which was rotated. Update the application's key."),
    Mistake.OTHER_ACCOUNT_KEY: _("It was signed with %(key)s of a different account, %(account)s."),
    Mistake.DEVELOPMENT_KEY: _(
        "It was signed with the well-known key of devstoreaccount1. This account has its own keys."
    ),
    Mistake.KEY_NOT_DECODED: _(
        "It was signed with the key as text. The key is base64: decode it and sign with the bytes."
    ),
    Mistake.UNKNOWN_KEY: _(
        "No known key produces this signature, even allowing for common mistakes. A different key was used, or several"
        " things were changed. Compare what your client signs with the string to sign below."
    ),
    Mistake.OTHER_ACCOUNT: _(
        "The account in the string to sign is %(account)s, which is not the account in the URL."
    ),
    Mistake.ACCOUNT_DOUBLED: _(
        "The account %(account)s was signed twice. That is right only for a Shared Key request whose path starts with"
        " the account."
    ),
    Mistake.ACCOUNT_NOT_DOUBLED: _(
        "The account was signed only once. When the path starts with the account, it appears twice:"
        " /%(account)s/%(account)s/…, once as the account and once as part of the path."
    ),
    Mistake.TABLE_CASE: _(
        "The table name was signed in different letter case. SAS tokens sign it in lowercase, requests as it appears in"
        " the path (%(table)s)."
    ),
    Mistake.PARAMETER_CHANGED: _(
        "%(name)s was changed after signing; the signed value is %(signed)s. To change a token, create and sign a new"
        " one."
    ),
    Mistake.PARAMETER_ADDED: _("%(name)s was added after signing, so the signature does not cover it."),
    Mistake.SIGNED_ENCODED: _(
        "The values were percent-encoded before signing. Sign the plain values, then encode them for the URL."
    ),
    Mistake.FINAL_NEWLINE: _(
        "The final newline is wrong: the string to sign ends with a newline for account SAS tokens only."
    ),
    Mistake.NEWLINE: _("The lines were joined with CR LF. Join them with LF only."),
    Mistake.ESCAPED_NEWLINE: _(
        "The lines were joined with a backslash and the letter n instead of a newline. Check the quotes around the"
        " string in your code."
    ),
    Mistake.OTHER_SCHEME: _(
        "The string to sign is for %(signed)s, but the header says %(sent)s. Use the same scheme in both."
    ),
    Mistake.NO_DATE_SIGNED: _(
        "The date line was left empty. For tables, sign the date even when it comes from x-ms-date."
    ),
    Mistake.CONTENT_TYPE_ADDED: _(
        "No Content-Type was signed, but %(sent)s was sent. HTTP clients often add it automatically."
    ),
    Mistake.CONTENT_TYPE_OTHER: _(
        "The Content-Type %(signed)s was signed, but %(sent)s was sent. HTTP clients often add a charset."
    ),
    Mistake.PATH_DECODED: _("The path was decoded before signing. Sign it as sent, with its percent signs."),
    Mistake.QUERY_SIGNED: _("The query string was signed. Only its comp parameter is signed."),
    Mistake.COMP_LEFT_OUT: _(
        "The comp parameter was not signed. It is the only signed part of the query string: ?comp=… after the path."
    ),
    Mistake.NO_AUTHORIZATION: _(
        "The request is not signed: it has no Authorization header, and its URL has no sig parameter."
    ),
    Mistake.TWO_AUTHORIZATIONS: _(
        "The request has both an Authorization header and a SAS token in its URL. Use only one of them."
    ),
    Mistake.BEARER: _("The request uses a bearer token. Its issuer decides whether it is valid, not a key."),
    Mistake.MALFORMED_AUTHORIZATION: _(
        "The Authorization header is invalid. The format is “SharedKey account:signature”, with the signature in"
        " base64."
    ),
    Mistake.ACCOUNT_DIFFERS: _(
        "The Authorization header names the account %(signed)s, but the URL belongs to %(addressed)s."
    ),
    Mistake.ACCOUNT_NOT_NAMED: _(
        "A token does not name its account, and none of the accounts whose keys you can view signed it. Choose the"
        " account, or paste the full URL."
    ),
    Mistake.ELSEWHERE: _("%(host)s is an Azure address. It is checked as if it were sent to this server."),
    Mistake.NO_HOST: _("The request has no Host header. It is checked as if it were sent to this server."),
    Mistake.NO_DATE: _(
        "The request has no valid date. The format is “x-ms-date: Sat, 21 Nov 2026 20:00:00 GMT”, always in GMT."
        " Received: %(date)s"
    ),
    Mistake.CLOCK_SKEW: _(
        "The date is %(seconds)s away from this server's clock (%(now)s); up to 15 minutes are allowed. The request is"
        " old, or a clock is wrong."
    ),
    Mistake.PARAMETER_TWICE: _("%(name)s appears twice, so it is unclear which value was signed."),
    Mistake.MALFORMED_PARAMETER: _("%(name)s cannot be %(value)s."),
    Mistake.PARAMETER_MISSING: _("Missing: %(names)s. Every token needs these parameters."),
    Mistake.USER_DELEGATION: _(
        "This is a user delegation SAS. Tables do not support them; create a token signed with an account key."
    ),
    Mistake.EXPIRED: _("The token expired at %(moment)s."),
    Mistake.NOT_YET_VALID: _(
        "The token is not yet valid: it starts at %(moment)s. If it should work immediately, the clock that created it"
        " is ahead; leave out the start, or set it 15 minutes back."
    ),
    Mistake.POLICY_MISSING: _(
        "The table %(table)s has no stored access policy %(policy)s, so all tokens that reference it are refused."
    ),
    Mistake.POLICY_RENAMED: _(
        "The table %(table)s has no stored access policy %(policy)s, but it has %(similar)s. Was it renamed? The Id is"
        " signed, so the token works only with a policy of exactly that name."
    ),
    Mistake.POLICY_CONFLICT: _(
        "The token and its policy %(policy)s both set %(names)s. Set each field in only one of them, even if the values"
        " are the same."
    ),
    Mistake.POLICY_INCOMPLETE: _("Neither the token nor its policy %(policy)s sets %(names)s."),
    Mistake.TABLE_MISSING: _("This account has no table %(table)s."),
    Mistake.HTTPS_ONLY: _("The token allows HTTPS only, and this request would use HTTP."),
    Mistake.ADDRESS_OUTSIDE: _(
        "The token allows requests from %(allowed)s only, and this one would come from %(address)s."
    ),
    Mistake.NO_TABLE_SERVICE: _(
        "The token is for other services: ss=%(services)s does not include t (tables)."
    ),
    Mistake.RESOURCE_TYPE: _("srt=%(types)s does not include the resource type that %(operation)s needs."),
    Mistake.PERMISSION: _("sp=%(permissions)s does not permit %(operation)s."),
    Mistake.NOT_BY_TOKEN: _("%(operation)s is not available with this type of token, whatever it permits."),
    Mistake.OTHER_TABLE: _("The token is for the table %(allowed)s, but the URL is for %(table)s."),
    Mistake.OUTSIDE_RANGE: _(
        "The entity with PartitionKey %(partition_key)s and RowKey %(row_key)s is outside the token's key range."
    ),
    Mistake.RANGE_IN_COSMOS: _(
        "The token is limited to a range of keys, which the account %(account)s does not support: it is compatible"
        " with Cosmos DB."
    ),
    Mistake.SECONDARY_WRITE: _("The request writes to the secondary, which is read-only."),
    Mistake.READ_ONLY: _("The request writes, but the account %(account)s is read-only."),
    Mistake.BLOCKED: _("This token is blocked."),
    Mistake.ACCOUNT_DISABLED: _("The account %(account)s is disabled."),
    Mistake.KEYS_NOT_ACCEPTED: _(
        "The account %(account)s accepts bearer tokens only; keys and SAS tokens are refused."
    ),
    Mistake.NETWORK: _(
        "The account accepts requests from %(allowed)s only, and this one would come from %(address)s."
    ),
    Mistake.PART_MALFORMED: _(
        "The part that starts with %(text)s has no equals sign (=). Write parts as Name=value, separated by semicolons."
    ),
    Mistake.PART_UNKNOWN: _("%(name)s is not part of a connection string. Clients ignore it."),
    Mistake.NO_ACCOUNT_NAME: _(
        "A valid AccountName is missing: it has 3 to 24 lowercase letters and digits."
    ),
    Mistake.NO_CREDENTIAL: _("The connection string has neither AccountKey nor SharedAccessSignature."),
    Mistake.KEY_NOT_BASE64: _(
        "AccountKey is not valid base64. It was probably cut off when copied, often before the final ==."
    ),
    Mistake.KEY_UNKNOWN: _("AccountKey is not one of the keys of %(account)s."),
    Mistake.NO_TABLE_ENDPOINT: _(
        "TableEndpoint is missing, so clients connect to %(address)s. For this server, add TableEndpoint=%(here)s"
    ),
    Mistake.ENDPOINT_MALFORMED: _("The endpoint %(endpoint)s is not a valid URL."),
    Mistake.ENDPOINT_WITHOUT_ACCOUNT: _(
        "The TableEndpoint %(endpoint)s lacks the account. On this server it is part of the path: %(right)s"
    ),
    Mistake.ENDPOINT_OTHER_ACCOUNT: _(
        "TableEndpoint is for the account %(named)s, but AccountName is %(account)s."
    ),
    Mistake.LINE_UNREADABLE: _("Line %(line)s is not a header (Name: value) and was ignored."),
    Mistake.SHELL_VARIABLE: _(
        "The text contains a $ that a shell would expand; here it is read literally. In double quotes, a shell removes"
        " $filter."
    ),
    Mistake.OPTION_UNKNOWN: _("The curl option %(option)s is not supported here and was ignored."),
}


_POLICY_PERMISSION: Final = _(
    "The policy %(policy)s has no %(needed)s, which %(operation)s needs. Its permissions are %(permissions)s."
)


def describe_finding(found: Finding) -> SafeString:
    details = {name: value or "–" for name, value in found.details}
    if found.mistake is Mistake.CLOCK_SKEW:
        details["seconds"] = describe_duration(details["seconds"])
    is_by_policy = found.mistake is Mistake.PERMISSION and "policy" in details
    return fill(str(_POLICY_PERMISSION if is_by_policy else MISTAKE_TEXTS[found.mistake]), **details)


def fill(text: str, /, **details: str) -> SafeString:
    """Fill the placeholders of one of our texts, or a translator's, with what others have written."""
    values = {name: format_html('<bdi class="mono">{}</bdi>', value) for name, value in details.items()}
    for name in _OURS & values.keys():
        values[name] = SafeString(conditional_escape(details[name]))
    return mark_safe(conditional_escape(text) % values)  # noqa: S308


_OURS: Final = {"duration", "number", "seconds"}  # not what others have written


def describe_duration(seconds: str) -> str:
    minutes = int(seconds) // 60
    if minutes < 2 * 60:
        return ngettext("%(number)s minute", "%(number)s minutes", minutes) % {"number": minutes}
    hours = minutes // 60
    if hours < 2 * 24:
        return ngettext("%(number)s hour", "%(number)s hours", hours) % {"number": hours}
    return ngettext("%(number)s day", "%(number)s days", hours // 24) % {"number": hours // 24}
