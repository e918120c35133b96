"""Mistakes of clients and refusals of the service, with English sentences."""

from enum import StrEnum, unique
from typing import Final

from storage.domain.translation import mark as _


@unique
class Mistake(StrEnum):
    """Mistakes by subject; each value is the sentence, with the details of a finding as ``%(name)s``."""

    # the signature was changed in transit
    PLUS_AS_SPACE = _(
        "A plus sign in %(name)s was decoded as a space. Percent-encode each value before adding it to the URL: a plus"
        " is written %%2B."
    )
    ENCODED_TWICE = _(
        "%(name)s was percent-encoded twice: %%2B became %%252B. Clients encode the values of a token themselves; pass"
        " the token unchanged."
    )
    URL_SAFE_BASE64 = _(
        "The signature uses URL-safe base64 with - and _. The service expects standard base64 with + and /,"
        " percent-encoded."
    )
    PADDING = _(
        "The padding of the signature is wrong: its 44 characters must end in exactly one equals sign (=)."
    )
    HEXADECIMAL = _("The signature is hexadecimal. The service expects its 32 bytes in base64.")
    # the signing key
    RETIRED_KEY = _("It was signed with %(key)s, which was rotated. Update the application's key.")
    OTHER_ACCOUNT_KEY = _("It was signed with %(key)s of a different account, %(account)s.")
    DEVELOPMENT_KEY = _(
        "It was signed with the well-known key of devstoreaccount1. This account has its own keys."
    )
    KEY_NOT_DECODED = _(
        "It was signed with the key as text. The key is base64: decode it and sign with the bytes."
    )
    UNKNOWN_KEY = _(
        "The signature doesn't match any key of this account. The client probably uses an old or another key. If not,"
        " compare what it signs with the string to sign."
    )
    # another text was signed
    OTHER_ACCOUNT = _(
        "The account in the string to sign is %(account)s, which is not the account in the URL."
    )
    ACCOUNT_DOUBLED = _(
        "The account %(account)s was signed twice. That is right only for a Shared Key request whose path starts with"
        " the account."
    )
    ACCOUNT_NOT_DOUBLED = _(
        "The account was signed only once. When the path starts with the account, it appears twice:"
        " /%(account)s/%(account)s/…, once as the account and once as part of the path."
    )
    TABLE_CASE = _(
        "The table name was signed in different letter case. SAS tokens sign it in lowercase, requests as it appears in"
        " the path (%(table)s)."
    )
    PARAMETER_CHANGED = _(
        "%(name)s was changed after signing; the signed value is %(signed)s. To change a token, create and sign a new"
        " one."
    )
    PARAMETER_ADDED = _("%(name)s was added after signing, so the signature does not cover it.")
    SIGNED_ENCODED = _(
        "The values were percent-encoded before signing. Sign the plain values, then encode them for the URL."
    )
    FINAL_NEWLINE = _(
        "The final newline is wrong: the string to sign ends with a newline for account SAS tokens only."
    )
    NEWLINE = _("The lines were joined with CR LF. Join them with LF only.")
    ESCAPED_NEWLINE = _(
        "The lines were joined with a backslash and the letter n instead of a newline. Check the quotes around the"
        " string in your code."
    )
    OTHER_SCHEME = _(
        "The string to sign is for %(signed)s, but the header says %(sent)s. Use the same scheme in both."
    )
    NO_DATE_SIGNED = _(
        "The date line was left empty. For tables, sign the date even when it comes from x-ms-date."
    )
    CONTENT_TYPE_ADDED = _(
        "No Content-Type was signed, but %(sent)s was sent. HTTP clients often add it automatically."
    )
    CONTENT_TYPE_OTHER = _(
        "The Content-Type %(signed)s was signed, but %(sent)s was sent. HTTP clients often add a charset."
    )
    PATH_DECODED = _("The path was decoded before signing. Sign it as sent, with its percent signs.")
    QUERY_SIGNED = _("The query string was signed. Only its comp parameter is signed.")
    COMP_LEFT_OUT = _(
        "The comp parameter was not signed. It is the only signed part of the query string: ?comp=… after the path."
    )
    # other rules
    NO_AUTHORIZATION = _(
        "The request is not signed: it has no Authorization header, and its URL has no sig parameter."
    )
    TWO_AUTHORIZATIONS = _(
        "The request has both an Authorization header and a SAS token in its URL. Use only one of them."
    )
    BEARER = _("The request uses a bearer token. Its issuer decides whether it is valid, not a key.")
    MALFORMED_AUTHORIZATION = _(
        "The Authorization header is invalid. The format is “SharedKey account:signature”, with the signature in"
        " base64."
    )
    ACCOUNT_DIFFERS = _(
        "The Authorization header names the account %(signed)s, but the URL belongs to %(addressed)s."
    )
    ACCOUNT_NOT_NAMED = _(
        "A token does not name its account, and none of the accounts whose keys you can view signed it. Choose the"
        " account, or paste the full URL."
    )
    ELSEWHERE = _("%(host)s is an Azure address. It is checked as if it were sent to this server.")
    NO_HOST = _("The request has no Host header. It is checked as if it were sent to this server.")
    NO_DATE = _(
        "The request has no valid date. The format is “x-ms-date: Sat, 21 Nov 2026 20:00:00 GMT”, always in GMT."
        " Received: %(date)s"
    )
    CLOCK_SKEW = _(
        "The date is %(seconds)s away from this server's clock (%(now)s); up to 15 minutes are allowed. The request is"
        " old, or a clock is wrong."
    )
    PARAMETER_TWICE = _("%(name)s appears twice, so it is unclear which value was signed.")
    MALFORMED_PARAMETER = _("%(name)s cannot be %(value)s.")
    PARAMETER_MISSING = _("Missing: %(names)s. Every token needs these parameters.")
    USER_DELEGATION = _(
        "This is a user delegation SAS. Tables do not support them; create a token signed with an account key."
    )
    EXPIRED = _("The token expired at %(moment)s.")
    NOT_YET_VALID = _(
        "The token is not yet valid: it starts at %(moment)s. If it should work immediately, the clock that created it"
        " is ahead; leave out the start, or set it 15 minutes back."
    )
    POLICY_MISSING = _(
        "The table %(table)s has no stored access policy %(policy)s, so all tokens that reference it are refused."
    )
    POLICY_RENAMED = _(
        "The table %(table)s has no stored access policy %(policy)s, but it has %(similar)s. Was it renamed? The Id is"
        " signed, so the token works only with a policy of exactly that name."
    )
    POLICY_CONFLICT = _(
        "The token and its policy %(policy)s both set %(names)s. Set each field in only one of them, even if the values"
        " are the same."
    )
    POLICY_INCOMPLETE = _("Neither the token nor its policy %(policy)s sets %(names)s.")
    # the query and its table
    FILTER = _("The filter has an error at position %(number)s.")
    TABLE_MISSING = _("This account has no table %(table)s.")
    HTTPS_ONLY = _("The token allows HTTPS only, but the request uses HTTP.")
    ADDRESS_OUTSIDE = _("The token allows requests from %(allowed)s only, not from %(address)s.")
    NO_TABLE_SERVICE = _("The token is for other services: ss=%(services)s does not include t (tables).")
    RESOURCE_TYPE = _("srt=%(types)s does not include the resource type that %(operation)s needs.")
    PERMISSION = _("sp=%(permissions)s does not permit %(operation)s, which needs %(needed)s.")
    NOT_BY_TOKEN = _("%(operation)s is not available with this type of token, whatever it permits.")
    OTHER_TABLE = _("The token is for the table %(allowed)s, but the URL is for %(table)s.")
    OUTSIDE_RANGE = _(
        "The entity with PartitionKey %(partition_key)s and RowKey %(row_key)s is outside the token's key range."
    )
    RANGE_IN_COSMOS = _(
        "The token is limited to a range of keys, which the account %(account)s does not support: it is compatible"
        " with Cosmos DB."
    )
    SECONDARY_WRITE = _("The request writes to the secondary, which is read-only.")
    READ_ONLY = _("The request writes, but the account %(account)s is read-only.")
    BLOCKED = _("This token is blocked.")
    ACCOUNT_DISABLED = _("The account %(account)s is disabled.")
    KEYS_NOT_ACCEPTED = _(
        "The account %(account)s accepts bearer tokens only; keys and SAS tokens are refused."
    )
    NETWORK = _("The account accepts requests from %(allowed)s only, not from %(address)s.")
    # connection strings
    PART_MALFORMED = _(
        "The part that starts with %(text)s has no equals sign (=). Write parts as Name=value, separated by semicolons."
    )
    PART_UNKNOWN = _("%(name)s is not part of a connection string. Clients ignore it.")
    NO_ACCOUNT_NAME = _("A valid AccountName is missing: it has 3 to 24 lowercase letters and digits.")
    NO_CREDENTIAL = _("The connection string has neither AccountKey nor SharedAccessSignature.")
    KEY_UNKNOWN = _("AccountKey is not one of the keys of %(account)s.")
    KEY_NOT_BASE64 = _(
        "AccountKey is not valid base64. It was probably cut off when copied, often before the final ==."
    )
    NO_TABLE_ENDPOINT = _(
        "TableEndpoint is missing, so clients connect to %(address)s. For this server, add TableEndpoint=%(here)s"
    )
    ENDPOINT_MALFORMED = _("The endpoint %(endpoint)s is not a valid URL.")
    ENDPOINT_WITHOUT_ACCOUNT = _(
        "The TableEndpoint %(endpoint)s lacks the account. On this server it is part of the path: %(right)s"
    )
    ENDPOINT_OTHER_ACCOUNT = _("TableEndpoint is for the account %(named)s, but AccountName is %(account)s.")
    # the pasted text
    LINE_UNREADABLE = _("Line %(line)s is not a header (Name: value) and was ignored.")
    SHELL_VARIABLE = _(
        "The text contains a $ that a shell would expand; here it is read literally. In double quotes, a shell removes"
        " $filter."
    )
    OPTION_UNKNOWN = _("The curl option %(option)s is not supported here and was ignored.")


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
