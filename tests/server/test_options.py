import os

import pytest

from storage.server import options
from storage.server.refusal import Refusal


def test_defaults():
    found = options.read({"TABLERO_DATA": "/somewhere"})

    assert (found.host, found.port, found.workers) == ("127.0.0.1", 10002, 1)
    assert found.is_loopback
    assert found.development_account_allowed
    assert not found.relaxed
    assert found.key_length_limit == 1024
    assert str(found.data) == "/somewhere"


def test_data_defaults_to_a_folder_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert options.read({}).data.name == "tablero"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:10002", ("127.0.0.1", 10002)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        (":8080", ("127.0.0.1", 8080)),
        ("localhost", ("localhost", 10002)),
        ("[::1]:10002", ("::1", 10002)),
        ("[::]", ("::", 10002)),
    ],
)
def test_address(text, expected):
    assert options.read_address(text) == expected


@pytest.mark.parametrize("text", ["", "::1", "host:port", "127.0.0.1:70000", "a:1:2", "[::1"])
def test_refuses_what_is_no_address(text):
    with pytest.raises(Refusal, match="HOST:PORT"):
        options.read_address(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "[::1]", "localhost"])
def test_development_account_on_loopback(host):
    assert options.read({"TABLERO_LISTEN": f"{host}:1"}).development_account_allowed


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.168.1.1", "example.org"])
def test_no_development_account_elsewhere(host):
    assert not options.read({"TABLERO_LISTEN": f"{host}:1"}).development_account_allowed
    allowed = {"TABLERO_LISTEN": f"{host}:1", "TABLERO_ALLOW_DEVELOPMENT_ACCOUNT": "1"}
    assert options.read(allowed).development_account_allowed


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"TABLERO_LISTN": "x"}, r"TABLERO_LISTN means nothing to Tablero \(did you mean TABLERO_LISTEN\?\)"),
        ({"TABLERO_WORKERS": "0"}, "must be a number from 1 to 64"),
        ({"TABLERO_WORKERS": "many"}, "must be a number from 1 to 64"),
        ({"TABLERO_DURABILITY": "off"}, "must be on or relaxed"),
        ({"TABLERO_KEY_LENGTH_LIMIT": "600"}, "must be 512 or 1024"),
        ({"TABLERO_TLS_CERT": "cert.pem"}, "both --tls-cert and --tls-key"),
        ({"TABLERO_ALLOW_DEVELOPMENT_ACCOUNT": "perhaps"}, "must be 1 or 0"),
        ({"TABLERO_HOST_SUFFIX": "table.localhost:10002"}, "without a port"),
    ],
)
def test_refuses(environ, sentence):
    with pytest.raises(Refusal, match=sentence):
        options.read(environ)


def test_options_become_variables():
    environ = {}
    options.export(
        ["--listen", ":1", "--workers=2", "--allow-development-account", "--host-suffix", "a.b, .C."], environ
    )

    found = options.read(environ)

    assert environ["TABLERO_WORKERS"] == "2"
    assert (found.port, found.workers, found.allow_development_account) == (1, 2, True)
    assert found.host_suffixes == ("a.b", "c")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--lisen", ":1"], r"Unknown option --lisen \(did you mean --listen\?\)"),
        (["--listen"], "expected one argument"),
        (["--durability", "none"], "invalid choice"),
        (["now"], "Unknown option now"),
    ],
)
def test_refuses_options(arguments, sentence):
    with pytest.raises(Refusal, match=sentence):
        options.export(arguments, {})
