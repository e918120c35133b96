"""Certificate checks of `doctor`."""

import ssl
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from storage.health.findings import (
    Finding,
    error,
    fine,
    warning,
)
from storage.server import tls
from storage.server.options import Options
from storage.server.refusal import Refusal

_EXPIRES_SOON: Final = timedelta(days=14)


def examine(options: Options) -> Iterator[Finding]:
    """Check the certificate: usability, validity, names, chain, and permissions of its key."""
    try:
        tls.check(options)
        chain = x509.load_pem_x509_certificates(Path(options.tls_cert).read_bytes())
    except (OSError, ValueError) as failure:
        yield error(f"The certificate {options.tls_cert} cannot be read: {failure}")
        return
    except Refusal as refusal:
        yield error(f"{refusal} Replace the files; the server notices it.")
        return
    yield from _times(options, chain[0])
    yield from _chain(options, chain)
    if Path(options.tls_key).stat().st_mode & 0o007:
        yield warning(
            f"Others may read the private key {options.tls_key}. Run: chmod o-rwx {options.tls_key}"
        )


def _times(options: Options, certificate: x509.Certificate) -> Iterator[Finding]:
    now, end = datetime.now(UTC), certificate.not_valid_after_utc
    names = ", ".join(_names(certificate))
    if now < certificate.not_valid_before_utc:
        yield error(
            f"The certificate {options.tls_cert} is valid from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC."
            " Use it later, or set the clock."
        )
    elif now >= end:
        yield error(f"The certificate {options.tls_cert} expired at {end:%Y-%m-%d %H:%M} UTC. Renew it.")
    elif end - now < _EXPIRES_SOON:
        yield warning(
            f"The certificate {options.tls_cert} expires at {end:%Y-%m-%d %H:%M} UTC. Renew it; the server notices new"
            " files."
        )
    elif names:
        yield fine(f"The certificate for {names} is valid until {end:%Y-%m-%d %H:%M} UTC.")
    if not names:
        yield error(f"The certificate {options.tls_cert} names no host in subjectAltName; clients refuse it.")


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def _chain(options: Options, chain: list[x509.Certificate]) -> Iterator[Finding]:
    """Check that the certificate file has the chain that clients need, up to a root they trust."""
    for certificate, issuer in pairwise(chain):
        try:
            certificate.verify_directly_issued_by(issuer)
        except (ValueError, TypeError, InvalidSignature):
            yield error(
                f"{options.tls_cert} has {certificate.subject.rfc4514_string()} before"
                f" {issuer.subject.rfc4514_string()}, which did not issue it. Put the certificate of the server first,"
                " then that of its issuer, and so on."
            )
            return
    last = chain[-1]
    if last.issuer == last.subject:
        if len(chain) == 1:
            yield warning("The certificate signs itself, so that clients have to be told to trust it.")
        return
    known = {authority.subject for authority in _authorities()}
    if known and last.issuer not in known:
        yield warning(
            f"This machine knows no authority {last.issuer.rfc4514_string()}, which issued the last certificate in"
            f" {options.tls_cert}. Add the certificates between, or have clients trust that authority."
        )


def _authorities() -> list[x509.Certificate]:
    """Return the certificate authorities trusted by this machine."""
    with warnings.catch_warnings(action="ignore"):  # some authorities are old
        known = ssl.create_default_context().get_ca_certs(binary_form=True)
        return [x509.load_der_x509_certificate(it) for it in known]
