"""TLS: the files of the certificate while tools replace them, and what a server agrees on with its clients."""

import json
import signal
import socket
import ssl
import subprocess
import sys
import warnings

import pytest
import requests
from azure.data.tables import TableServiceClient

from storage.server import options, tls
from storage.server.refusal import Refusal
from storage.server.tls import FileWatch
from tests.certificates import make_certificate
from tests.live_server import start_server
from tests.seeds import seeded
from tests.server.requests_in_flight import PATIENT
from tests.service import container
from tests.waiting import wait_for


def test_a_change_is_told_once_and_when_all_files_are_written(tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    for path in (cert, key):
        path.write_text("old")
    watch = FileWatch(str(cert), str(key))
    assert not watch.has_changed()
    cert.write_text("newer")
    assert not watch.has_changed()  # the key may follow
    key.write_text("newer")
    assert [watch.has_changed() for _ in range(3)] == [False, True, False]
    cert.unlink()
    assert [watch.has_changed() for _ in range(2)] == [False, True]
    cert.write_text("newest")
    watch.accept()  # after a signal
    assert [watch.has_changed() for _ in range(2)] == [False, False]


def test_a_link_to_another_folder_is_a_change(tmp_path):
    """Kubernetes renews the files of a secret so, with their old sizes and any times."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tls.crt").write_text("same size")
    link = tmp_path / "current"
    link.symlink_to("one")
    watch = FileWatch(str(link / "tls.crt"))
    link.unlink()
    link.symlink_to("two")
    assert [watch.has_changed() for _ in range(3)] == [False, True, False]


@pytest.mark.parametrize("cert", ["none.pem", "missing.pem"])
def test_refuses_a_certificate_that_is_none(tmp_path, cert):
    key = tmp_path / "none.pem"
    key.write_text("nothing")
    with pytest.raises(Refusal, match=f"{cert} with .* cannot be used"):
        tls.check(options.read({"TABLERO_TLS_CERT": str(tmp_path / cert), "TABLERO_TLS_KEY": str(key)}))


def test_says_what_is_wrong_with_a_certificate_and_its_key(tmp_path):
    (tmp_path / "other").mkdir()
    cert, key = make_certificate(tmp_path)
    _, other = make_certificate(tmp_path / "other")
    binary = tmp_path / "cert.der"
    binary.write_bytes(ssl.PEM_cert_to_DER_cert(cert.read_text()))
    half_cert, half_key = tmp_path / "half.pem", tmp_path / "half.key"
    for path, half in ((cert, half_cert), (key, half_key)):
        half.write_bytes(path.read_bytes()[:-40])
    for files, reason in (
        ((half_cert, key), f"{half_cert} ends within a certificate"),
        ((cert, half_key), f"{half_key} ends within a private key"),
        ((cert, other), "the private key belongs to another certificate"),
        ((binary, key), f"{binary} has no certificate in PEM"),
        ((cert, cert), f"{cert} has no private key in PEM"),
    ):
        names = dict(zip(("TABLERO_TLS_CERT", "TABLERO_TLS_KEY"), map(str, files), strict=True))
        with pytest.raises(Refusal, match=f"cannot be used: {reason}\\.$"):
            tls.check(options.read(names))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of the server's certificate."""
    return tmp_path_factory.mktemp("certificate")


@pytest.fixture(scope="module")
def live(scratch, folder):
    """Start a server with TLS, which the last test ends."""
    cert, key = map(str, make_certificate(folder))
    data = seeded(scratch / "tls")
    with start_server(data, "--tls-cert", cert, "--tls-key", key, constants=PATIENT) as live:
        yield live


@pytest.fixture
def cert(folder):
    return str(folder / "cert.pem")


def test_sdks_connect_by_the_connection_string(live, cert):
    assert live.url.startswith("https://")
    with TableServiceClient.from_connection_string(live.connection_string, connection_verify=cert) as sdk:
        assert list(sdk.list_tables()) == []


def test_cookies_are_for_https(live, cert):
    answer = requests.get(f"{live.url}/ui/login/", verify=cert, timeout=60)
    assert answer.headers["Set-Cookie"].count("; Secure") == 1


def test_old_versions_and_suites_without_authenticated_encryption_are_refused(live):
    assert "GCM" in agreed(live, ssl.TLSVersion.TLSv1_2)
    for version, ciphers in ((ssl.TLSVersion.TLSv1_1, "ALL"), (ssl.TLSVersion.TLSv1_2, "ECDHE+AES+SHA")):
        with pytest.raises(ssl.SSLError):
            agreed(live, version, ciphers)


def agreed(live, version, ciphers="DEFAULT"):
    """Return the cipher suite of a connection of this version of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with warnings.catch_warnings(action="ignore"):  # for the old version
        context.minimum_version = context.maximum_version = version
    context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    with (
        socket.create_connection(("127.0.0.1", live.port), 60) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        return secure.cipher()[0]


def test_sighup_reads_the_certificate_again_and_keeps_the_old_one_while_it_is_broken(live, folder):
    read_the_certificate_again(live, folder)


def read_the_certificate_again(live, folder):
    before = shown_certificate(live)
    assert before == (folder / "cert.pem").read_text().strip()
    (folder / "key.pem").write_text("half a key")
    live.process.send_signal(signal.SIGHUP)
    wait_for(lambda: any("goes on with the certificate it has" in line for line in live.output))
    assert shown_certificate(live) == before
    cert, _ = make_certificate(folder)
    live.process.send_signal(signal.SIGHUP)
    wait_for(lambda: all(shown_certificate(live) == cert.read_text().strip() for _ in range(10)))


def shown_certificate(live):
    return ssl.get_server_certificate(("127.0.0.1", live.port)).strip()


def test_the_health_check_of_the_image_asks_over_tls(live):
    assert health(live.port) == 0


def test_an_idle_client_does_not_delay_the_end(live, cert):
    with requests.Session() as idle:
        assert idle.get(f"{live.url}/ui/healthz", verify=cert).status_code == 200
        assert live.stop() == 0
    assert not live.gave_up_requests
    assert health(live.port) == 1


def health(port):
    """Return the exit status of the health check of the image for a server at a port."""
    text = container.CONTAINERFILE.read_text()
    [program] = [it for name, it in container.read(text[text.rindex("\nFROM") :]) if name == "HEALTHCHECK"]
    code = json.loads(program.partition("CMD ")[2])[-1]
    patient = code.replace("10002", str(port)).replace("timeout=4", "timeout=60")
    return subprocess.run([sys.executable, "-c", patient], check=False).returncode
