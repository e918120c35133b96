"""Fixtures of clients: a second server, over TLS with a certificate they trust, and the JavaScript SDKs."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from platformdirs import user_cache_path

from tests.clients.accounts import cosmos_address
from tests.clients.javascript import installation
from tests.live_server import LiveServer, start_server
from tests.seeds import seeded

# below localhost, which no name service resolves to another machine
HOST_SUFFIX = "table.localhost"


@pytest.fixture(scope="session")
def certificate(scratch: Path) -> Path:
    """Make a self-signed certificate of this machine; its key is next to it, in `server.key`."""
    key = ec.generate_private_key(ec.SECP256R1())
    place = scratch / "server.pem"
    place.write_bytes(signed_by_itself(key).public_bytes(serialization.Encoding.PEM))
    place.with_suffix(".key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return place


@pytest.fixture(scope="session")
def secure_server(scratch: Path, certificate: Path) -> Iterator[LiveServer]:
    """Start a server over TLS that knows its account by host names, too."""
    key = str(certificate.with_suffix(".key"))
    options = ("--tls-cert", str(certificate), "--tls-key", key, "--host-suffix", HOST_SUFFIX)
    with start_server(seeded(scratch / "secure"), *options) as live:
        yield live


@pytest.fixture(scope="module")
def cosmos_endpoint(server: LiveServer) -> str:
    """Return the endpoint of an account of the kind cosmos, which has the key of the server."""
    return cosmos_address(server)


@pytest.fixture(scope="session")
def sdk_folder(require: Callable[[str, str], str]) -> Path:
    """Return the folder with the JavaScript SDKs: a cache of this user, filled once."""
    folder = user_cache_path("tablero") / "npm" / installation.VERSIONS
    if not folder.exists():
        installation.install(folder, require("npm", "the JavaScript SDK"))
    return folder


def signed_by_itself(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tablero under test")])
    now = datetime.now(UTC)
    names = [
        x509.DNSName("localhost"),
        x509.DNSName(f"*.{HOST_SUFFIX}"),
        x509.IPAddress(IPv4Address("127.0.0.1")),
    ]
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
