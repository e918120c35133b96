"""What an inspection found, in the reader's words; storage.inspector knows what is wrong."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from storage.inspector import Found, Mistake, Unreadable
from storage.inspector.reports import Part

# nothing that is wrong by itself, but good to know
NOTES: Final = frozenset(
    {
        Mistake.NO_HOST,
        Mistake.ELSEWHERE,
        Mistake.SHELL_VARIABLE,
        Mistake.OPTION_UNKNOWN,
        Mistake.LINE_UNREADABLE,
        Mistake.ACCOUNT_NOT_SAID,
        Mistake.BEARER,
        Mistake.PART_UNKNOWN,
        Mistake.PROTOCOL_DIFFERS,
        Mistake.TABLE_MISSING,
    }
)

UNREADABLE: Final[Mapping[Unreadable, Promise]] = {
    Unreadable.EMPTY: _("There is nothing to explain yet: paste a token, a connection string or a request."),
    Unreadable.TOO_LONG: _(
        "This is too long: 64 KiB of text are read. The body of a request can be left out."
    ),
    Unreadable.HEADERS_ONLY: _(
        "These are headers of a request. Paste its first line too, as in “GET /acme/people HTTP/1.1”."
    ),
    Unreadable.NOTHING_KNOWN: _(
        "This is no token, no connection string and no request. A request begins with its method, as in"
        " “GET /acme/people HTTP/1.1”, or with “curl”."
    ),
}

SENTENCES: Final[Mapping[Mistake, Promise]] = {
    Mistake.PLUS_AS_SPACE: _(
        "A plus in %(name)s has become a space. In an address it must be written %%2B: encode each value before it"
        " is put in."
    ),
    Mistake.ENCODED_TWICE: _(
        "%(name)s was percent-encoded twice: %%2B became %%252B. A client encodes the values of a token by itself; give"
        " it the token as it was made."
    ),
    Mistake.URL_SAFE_BASE64: _(
        "The signature is written in the base64 of URLs, with - and _. The service wants the usual one, with + and /,"
        " percent-encoded."
    ),
    Mistake.PADDING: _(
        "The = at the end of the signature is missing, or one too many: 44 characters end in one."
    ),
    Mistake.HEXADECIMAL: _(
        "The signature is written in hexadecimal. The service wants its 32 bytes in base64."
    ),
    Mistake.RETIRED_KEY: _(
        "The key is %(key)s, which has been replaced. Give the application one of the present keys."
    ),
    Mistake.OTHER_ACCOUNT_KEY: _("The key is %(key)s of another account, %(account)s."),
    Mistake.DEVELOPMENT_KEY: _(
        "The key is the one that everybody knows, that of devstoreaccount1. This account has keys of its own."
    ),
    Mistake.KEY_NOT_DECODED: _(
        "It was signed with the text of the key. The key is base64: decode it, and sign with the bytes."
    ),
    Mistake.UNKNOWN_KEY: _(
        "No key that is known here makes this signature, neither of this text nor of one with a usual mistake. The key"
        " is another one, or more than one thing was changed. Compare what your client signs with the text below."
    ),
    Mistake.OTHER_ACCOUNT: _("The account %(account)s was signed; that is not the one that is addressed."),
    Mistake.SECONDARY_ACCOUNT: _(
        "The account was signed as %(account)s. Also for the secondary the primary name is signed."
    ),
    Mistake.ACCOUNT_DOUBLED: _(
        "The account %(account)s was signed once too often. Twice is right only for a request with a key whose path"
        " begins with the account."
    ),
    Mistake.ACCOUNT_NOT_DOUBLED: _(
        "The account is missing once in what was signed. Where the path begins with the account it comes twice:"
        " /%(account)s/%(account)s/… – once as the account, once as part of the path."
    ),
    Mistake.TABLE_CASE: _(
        "The name of the table was signed in other letter case: a token signs it in lower case, a request as its path"
        " has it (%(table)s)."
    ),
    Mistake.OTHER_LAYOUT: _(
        "The fields were signed as in version %(version)s. Each version of sv signs other fields: write sv=%(version)s,"
        " or sign those of the version that is named."
    ),
    Mistake.FIELD_ORDER: _("Fields were signed in another order: %(names)s have changed places."),
    Mistake.TIME_PRECISION: _(
        "A time was signed in another spelling: %(signed)s. The text counts, not the instant: what is signed must stand"
        " in the token letter by letter."
    ),
    Mistake.PARAMETER_CHANGED: _(
        "%(name)s was changed after it was signed: signed was %(signed)s. Whoever wants to change a token has to sign a"
        " new one."
    ),
    Mistake.PARAMETER_ADDED: _("%(name)s was added after it was signed; the signature does not cover it."),
    Mistake.SIGNED_ENCODED: _(
        "The values were signed percent-encoded. Signed are the values themselves; they are encoded afterwards, for the"
        " address."
    ),
    Mistake.FINAL_NEWLINE: _(
        "The newline at the end is wrong: the text of an account token ends with one, that of all others does not."
    ),
    Mistake.NEWLINE: _("The lines were joined by CR and LF. They are joined by LF alone."),
    Mistake.ESCAPED_NEWLINE: _(
        "The lines were joined by a backslash and an n instead of a newline; mostly a string in the wrong quotes."
    ),
    Mistake.OTHER_SCHEME: _(
        "The text is that of %(signed)s, but the header says %(sent)s. One of the two has to be the other."
    ),
    Mistake.BLOB_LAYOUT: _(
        "The text was put together as blobs and queues want it, with more headers and all x-ms- ones. Tables have a"
        " text of their own, see below."
    ),
    Mistake.DATE_HEADER: _(
        "Date was signed. If there is an x-ms-date, that is signed, and Date does not count."
    ),
    Mistake.NO_DATE_SIGNED: _(
        "The line of the date was left empty. For tables the date is signed, also x-ms-date."
    ),
    Mistake.METHOD: _(
        "The method %(signed)s was signed, but %(sent)s was sent. With X-HTTP-Method it is POST that is signed."
    ),
    Mistake.CONTENT_TYPE_MISSING: _(
        "The Content-Type %(signed)s was signed, but the request does not have it. Something on the way dropped it, or"
        " it was not pasted."
    ),
    Mistake.CONTENT_TYPE_ADDED: _(
        "Without a Content-Type it was signed, but %(sent)s was sent. Mostly the HTTP client adds it on its own."
    ),
    Mistake.CONTENT_TYPE_OTHER: _(
        "The Content-Type %(signed)s was signed, but %(sent)s was sent. Mostly the HTTP client adds a charset."
    ),
    Mistake.CONTENT_MD5: _("There is a Content-MD5, but it was not signed."),
    Mistake.PATH_DECODED: _(
        "The path was signed decoded. It is signed as it is sent, with its percent signs."
    ),
    Mistake.PATH_ENCODED: _("The path was signed encoded once more. It is signed as it is sent."),
    Mistake.TRAILING_SLASH: _("The path was signed with another end: one of both has a / there."),
    Mistake.QUERY_SIGNED: _("The query was signed. Of it only comp is, and nothing else."),
    Mistake.COMP_LEFT_OUT: _(
        "comp was not signed. It is the one part of the query that is: ?comp=… after the path."
    ),
    Mistake.WHOLE_URL: _("The whole address was signed. It is the account and the path: /account/path."),
    Mistake.NO_AUTHORIZATION: _(
        "There is no Authorization header and no sig in the address: nobody has signed it."
    ),
    Mistake.TWO_AUTHORIZATIONS: _(
        "There is an Authorization header and a token in the address. Only one may be."
    ),
    Mistake.BEARER: _("It comes with a bearer token. Whether that is good its issuer decides, not a key."),
    Mistake.MALFORMED_AUTHORIZATION: _(
        "The Authorization header cannot be read. It is “SharedKey account:signature”, the signature in base64."
    ),
    Mistake.ACCOUNT_DIFFERS: _(
        "The Authorization header names the account %(signed)s, but the address is one of %(addressed)s."
    ),
    Mistake.ACCOUNT_NOT_SAID: _(
        "A token does not say whose it is, and no account whose keys you may see has signed it. Choose the account that"
        " it is for, or paste the whole address."
    ),
    Mistake.ELSEWHERE: _("The address %(host)s is one of Azure. It is looked at as if it had come here."),
    Mistake.NO_HOST: _("There is no Host header. It is looked at as if it had come to this address."),
    Mistake.NO_DATE: _(
        "There is no date that can be read: it is “x-ms-date: Sat, 21 Nov 2026 20:00:00 GMT”, always GMT. Sent was:"
        " %(date)s"
    ),
    Mistake.CLOCK_SKEW: _(
        "The date is %(seconds)s away from the clock of this server (%(now)s); 15 minutes are allowed. It is an old"
        " request, or a clock is wrong."
    ),
    Mistake.PARAMETER_TWICE: _("%(name)s comes twice. Nobody can know which of them was signed."),
    Mistake.MALFORMED_PARAMETER: _("%(name)s cannot be %(value)s."),
    Mistake.PARAMETER_MISSING: _("Missing: %(names)s. A token without is none."),
    Mistake.USER_DELEGATION: _(
        "This is a token signed by a user's key. There is none of that kind for tables."
    ),
    Mistake.EXPIRED: _("It has expired: it was good until %(moment)s."),
    Mistake.NOT_YET_VALID: _(
        "It is not good yet: it will be from %(moment)s on. If that was to be at once, the clock that made it is ahead;"
        " leave the start out, or set it 15 minutes back."
    ),
    Mistake.POLICY_MISSING: _(
        "The table %(table)s has no stored access policy %(policy)s. Without it all tokens that name it are refused."
    ),
    Mistake.POLICY_RENAMED: _(
        "The table %(table)s has no stored access policy %(policy)s, but there is %(similar)s. Was it renamed? The"
        " identifier is signed: only a policy of exactly this name makes the token good."
    ),
    Mistake.POLICY_CONFLICT: _(
        "The token and its policy %(policy)s both say %(names)s. Each may stand in one of them only, even if they"
        " agree."
    ),
    Mistake.POLICY_INCOMPLETE: _("Neither the token nor its policy %(policy)s says %(names)s."),
    Mistake.TABLE_MISSING: _("There is no table %(table)s in this account."),
    Mistake.HTTPS_ONLY: _("It is good over https only, and this would come over http."),
    Mistake.ADDRESS_OUTSIDE: _("It is good from %(allowed)s only, and this would come from %(address)s."),
    Mistake.NO_TABLE_SERVICE: _("It is for other services: ss is %(services)s, without a t for tables."),
    Mistake.RESOURCE_TYPE: _(
        "srt=%(types)s does not reach so far: %(operation)s needs another resource type."
    ),
    Mistake.PERMISSION: _("sp=%(permissions)s is not enough for %(operation)s."),
    Mistake.NOT_BY_TOKEN: _(
        "%(operation)s cannot be done with a token of this kind, whatever its permissions are."
    ),
    Mistake.OTHER_TABLE: _("It is for the table %(allowed)s, and the address is one of %(table)s."),
    Mistake.OUTSIDE_RANGE: _(
        "The entity with PartitionKey %(partition_key)s and RowKey %(row_key)s lies outside of the keys that the token"
        " reaches."
    ),
    Mistake.SECONDARY_WRITE: _("It writes to the secondary, which can only be read."),
    Mistake.READ_ONLY: _("It writes, and the account %(account)s may only be read."),
    Mistake.BLOCKED: _("This token has been blocked by somebody."),
    Mistake.ACCOUNT_DISABLED: _("The account %(account)s is switched off."),
    Mistake.KEYS_NOT_ACCEPTED: _(
        "The account %(account)s takes bearer tokens only, no keys and nothing signed by one."
    ),
    Mistake.NETWORK: _("The account answers %(allowed)s only, and this would come from %(address)s."),
    Mistake.PART_MALFORMED: _(
        "A part that begins with %(text)s has no =. Parts are Name=value, with ; in between."
    ),
    Mistake.PART_TWICE: _("%(name)s comes twice; which one counts depends on the client."),
    Mistake.PART_UNKNOWN: _("%(name)s is no part of a connection string. Clients leave it aside."),
    Mistake.NO_ACCOUNT_NAME: _(
        "There is no AccountName that could be one: 3 to 24 lower-case letters and digits."
    ),
    Mistake.NO_CREDENTIAL: _(
        "There is neither AccountKey nor SharedAccessSignature: nothing to prove anything with."
    ),
    Mistake.KEY_NOT_BASE64: _(
        "AccountKey is no base64. Mostly it was cut off where it is copied, often the == at the end."
    ),
    Mistake.KEY_UNKNOWN: _("AccountKey is none of the keys of %(account)s."),
    Mistake.NO_TABLE_ENDPOINT: _(
        "There is no TableEndpoint, so that clients go to %(address)s. For this server: TableEndpoint=%(here)s"
    ),
    Mistake.ENDPOINT_MALFORMED: _("The address %(endpoint)s cannot be read."),
    Mistake.ENDPOINT_WITHOUT_ACCOUNT: _(
        "The TableEndpoint %(endpoint)s lacks the account; here it is part of the path: %(right)s"
    ),
    Mistake.ENDPOINT_OTHER_ACCOUNT: _(
        "TableEndpoint leads to the account %(named)s, AccountName is %(account)s."
    ),
    Mistake.PROTOCOL_DIFFERS: _(
        "DefaultEndpointsProtocol is %(protocol)s, but TableEndpoint is %(endpoint)s; the endpoint counts."
    ),
    Mistake.LINE_UNREADABLE: _("Line %(line)s is no header. It was left out; headers are Name: value."),
    Mistake.SHELL_VARIABLE: _(
        "There is a $ where a shell puts in a variable; here it is taken as it stands. Note that $filter in double"
        " quotes vanishes."
    ),
    Mistake.OPTION_UNKNOWN: _("The option %(option)s of curl is not known here, and was left out."),
    Mistake.QUOTE_OPEN: _("A quotation mark is not closed, so that the command cannot be read for sure."),
}

NAMES: Final[Mapping[Part, Promise]] = {
    Part.METHOD: _("Method"),
    Part.ACCOUNT: _("Account"),
    Part.SECONDARY: _("Secondary"),
    Part.RESOURCE: _("Path"),
    Part.SCHEME: _("Scheme"),
    Part.SIGNER: _("Account of the key"),
    Part.SIGNATURE: _("Signature"),
}
PARTS: Final[Mapping[Part, Promise]] = {
    Part.METHOD: _("What is to be done."),
    Part.ACCOUNT: _("The account that the address leads to."),
    Part.SECONDARY: _("The address of the secondary: it can be read only."),
    Part.RESOURCE: _("The path as it was sent, with every percent sign."),
    Part.COMP: _("The only part of the query that is signed."),
    Part.OPTION: _("Part of the query; changing it does not break the signature."),
    Part.DATE: _("When it was signed: 15 minutes before or after are allowed."),
    Part.OTHER_DATE: _("Does not count: there is an x-ms-date."),
    Part.CONTENT_TYPE: _("What the body is."),
    Part.CONTENT_MD5: _("The checksum of the body."),
    Part.SCHEME: _("Which text is signed: SharedKey all of it, SharedKeyLite the date and the resource."),
    Part.SIGNER: _("The account whose key has signed."),
    Part.SIGNATURE: _("Proves that whoever sent it had the key."),
    Part.VERSION: _("The version of the service whose rules are wanted."),
    Part.HEADER: _("A header."),
}

SETTINGS: Final[Mapping[str, Promise]] = {
    "DefaultEndpointsProtocol": _("How clients come, where no endpoint says it."),
    "AccountName": _("The account."),
    "AccountKey": _("The secret: whoever has it can do everything in the account."),
    "SharedAccessSignature": _("A token in place of the key; explained below."),
    "EndpointSuffix": _("Where accounts are, if no endpoint says it."),
    "TableEndpoint": _("Where the tables of the account are."),
    "TableSecondaryEndpoint": _("Where its tables can be read when the primary is away."),
    "UseDevelopmentStorage": _("The account devstoreaccount1 at 127.0.0.1, port 10002."),
}


def sentence(found: Found) -> SafeString:
    """What is wrong, and what to do about it."""
    values = {name: format_html('<bdi class="mono">{}</bdi>', value) for name, value in found.details}
    if found.mistake is Mistake.CLOCK_SKEW:
        values["seconds"] = SafeString(conditional_escape(_distance(dict(found.details)["seconds"])))
    # what is put in is escaped already; the text itself is ours, or a translator's
    return mark_safe(conditional_escape(str(SENTENCES[found.mistake])) % values)  # noqa: S308


def _distance(seconds: str) -> str:
    minutes = int(seconds) // 60
    if minutes < 2 * 60:
        return ngettext("%(number)s minute", "%(number)s minutes", minutes) % {"number": minutes}
    hours = minutes // 60
    if hours < 2 * 24:
        return ngettext("%(number)s hour", "%(number)s hours", hours) % {"number": hours}
    return ngettext("%(number)s day", "%(number)s days", hours // 24) % {"number": hours // 24}
