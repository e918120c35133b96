"""Risks of settings, as sentences."""

from collections.abc import Iterator

from storage.server.options import Options


def risks(options: Options) -> Iterator[str]:
    """Yield a sentence for each risk of data loss or disclosure in these settings."""
    if options.relaxed:
        yield (
            "durability is relaxed. A crash of the machine or of PostgreSQL can lose the last 0.6 seconds of"
            " acknowledged writes; no write is ever half done."
        )
    if options.bearer is not None and not options.bearer.issuer:
        yield "--oauth basic accepts any access token that has not expired, from any issuer."
    if not options.is_loopback and not options.tls_cert and not options.trusted_proxies:
        yield "without TLS (--tls-cert, --tls-key), data can be read in transit."
