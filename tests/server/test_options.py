import argparse
import os
from datetime import timedelta
from functools import partial

import pytest

from storage.domain.access.identity import Trust
from storage.domain.requests.recorded import RequestLogSettings
from storage.server import command_line, configuration, options
from storage.server.refusal import Refusal
from tests.live_server import ROOT

SIGN_IN = {
    "TABLERO_LOGIN_OIDC_ISSUER": "https://Login.example.org/realms/main/",
    "TABLERO_LOGIN_OIDC_CLIENT_ID": "tablero",
    "TABLERO_LOGIN_OIDC_CLIENT_SECRET": "secret",
}
ISSUER = {"TABLERO_OIDC_ISSUER": "https://x", "TABLERO_OIDC_AUDIENCE": "y"}


def test_defaults():
    result = options.read({"TABLERO_DATA": "/somewhere"})

    assert (result.host, result.port, result.workers) == ("127.0.0.1", 10002, 1)
    assert result.is_loopback
    assert result.development_account_allowed
    assert not result.relaxed
    assert result.key_length_limit == 1024
    assert result.activity_days == 90
    assert result.request_log == RequestLogSettings(0.5, timedelta(days=7), 50_000, 5)
    assert str(result.data) == "/somewhere"
    assert (result.bearer, result.trusted_proxies, result.sign_in) == (None, (), ())


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


@pytest.mark.parametrize("text", ["21005", "", "::1", "host:port", "127.0.0.1:70000", "a:1:2", "[::1"])
def test_refuses_invalid_addresses(text):
    with pytest.raises(Refusal, match="HOST:PORT"):
        options.read_address(text)


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        ("127.1.2.3", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("[::]", False),
        ("example.org", False),
    ],
)
def test_development_account_on_loopback_only(host, is_allowed):
    environ = {"TABLERO_LISTEN": f"{host}:1"}
    assert options.read(environ).development_account_allowed is is_allowed
    assert options.read({**environ, "TABLERO_ALLOW_DEVELOPMENT_ACCOUNT": "1"}).development_account_allowed


def test_an_issuer_of_bearer_tokens():
    issuer = "https://login.microsoftonline.com/tenant/v2.0"
    environ = {
        "TABLERO_OIDC_ISSUER": issuer,
        "TABLERO_OIDC_AUDIENCE": " https://storage.azure.com, api://x ,",
    }

    assert options.read(environ).bearer == Trust(
        issuer=issuer,
        audiences=("https://storage.azure.com", "api://x"),
        keys="",
        roles_claim="roles",
        authorization_uri="https://login.microsoftonline.com/tenant/oauth2/authorize",
    )


def test_everything_about_an_issuer(tmp_path):
    issuer, keys, authorize = (
        "http://localhost:8080/realms/x",
        tmp_path / "keys.json",
        "https://example.org/authorize",
    )
    keys.write_text("{}")
    environ = {
        "TABLERO_OIDC_ISSUER": issuer,
        "TABLERO_OIDC_AUDIENCE": "tablero",
        "TABLERO_OIDC_JWKS": str(keys),
        "TABLERO_OIDC_ROLES_CLAIM": "realm_access.roles",
        "TABLERO_OIDC_AUTHORIZATION_URI": authorize,
    }
    assert options.read(environ).bearer == Trust(
        issuer, ("tablero",), str(keys), "realm_access.roles", authorize
    )


@pytest.mark.parametrize("url", ["https://example.org/keys", "http://127.0.0.1:1/keys", "http://[::1]/keys"])
def test_keys_by_url(url):
    environ = {"TABLERO_OIDC_ISSUER": "https://x", "TABLERO_OIDC_AUDIENCE": "y", "TABLERO_OIDC_JWKS": url}
    result = options.read(environ).bearer
    assert (result.keys, result.authorization_uri) == (url, "https://x/oauth2/authorize")


def test_tokens_of_anybody_on_loopback():
    environ = {}
    options.export(["--oauth", "basic"], environ)
    assert options.read(environ).bearer == Trust()

    environ["TABLERO_OIDC_AUTHORIZATION_URI"] = "https://example.org/tenant"
    assert options.read(environ).bearer == Trust(authorization_uri="https://example.org/tenant")


@pytest.mark.parametrize(
    ("text", "listen", "expected"),
    [
        ("10.0.0.5", ":1", ("10.0.0.5/32",)),
        (" 127.0.0.1 , 10.1.2.3/8,", ":1", ("127.0.0.1/32", "10.0.0.0/8")),
        ("fd00::/8,::1", ":1", ("fd00::/8", "::1/128")),
        ("10.0.0.0/8", "[::]:1", ("10.0.0.0/8", "::ffff:10.0.0.0/104")),
    ],
)
def test_trusted_proxies(text, listen, expected):
    environ = {"TABLERO_LISTEN": listen}
    options.export(["--trusted-proxies", text], environ)
    assert options.read(environ).trusted_proxies == expected


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"TABLERO_LISTN": "x"}, r"TABLERO_LISTN means nothing to Tablero \(did you mean TABLERO_LISTEN\?\)"),
        ({"TABLERO_WORKERS": "0"}, "must be a number from 1 to 64"),
        ({"TABLERO_DURABILITY": "off"}, "must be on or relaxed"),
        ({"TABLERO_KEY_LENGTH_LIMIT": "600"}, "must be 512 or 1024"),
        ({"TABLERO_ACTIVITY_DAYS": "0"}, "must be a number from 1 to 3650"),
        ({"TABLERO_REQUEST_LOG_SLOW": "0.5"}, "must be a number from 1 to 3600000"),
        ({"TABLERO_REQUEST_LOG_SAMPLE": "1001"}, "must be a number from 0 to 1000"),
        (
            {"TABLERO_REQUEST_MEMORY": "512"},
            "TABLERO_REQUEST_MEMORY is '512'; it must be a number with K, M, G",
        ),
        ({"TABLERO_REQUEST_MEMORY": "1M"}, "and at least 32M"),
        ({"TABLERO_SNAPSHOT_LIMIT": "0"}, "TABLERO_SNAPSHOT_LIMIT is '0'; it must be a number from 1"),
        ({"TABLERO_SNAPSHOT_MEGABYTES": "1.5"}, "TABLERO_SNAPSHOT_MEGABYTES is '1.5'"),
        ({"TABLERO_TLS_CERT": "cert.pem"}, "both --tls-cert and --tls-key"),
        ({"TABLERO_ALLOW_DEVELOPMENT_ACCOUNT": "perhaps"}, "must be 1 or 0"),
        ({"TABLERO_HOST_SUFFIX": "table.localhost:10002"}, "without a port"),
        ({"TABLERO_TRUSTED_PROXIES": "*"}, "not the address of a proxy"),
        ({"TABLERO_TRUSTED_PROXIES": "proxy.example"}, "not the address of a proxy"),
        ({"TABLERO_OIDC_ISSUER": "https://x"}, "needs TABLERO_OIDC_AUDIENCE"),
        ({"TABLERO_OIDC_ISSUER": "https://x", "TABLERO_OIDC_AUDIENCE": ","}, "needs TABLERO_OIDC_AUDIENCE"),
        ({"TABLERO_OIDC_AUDIENCE": "x"}, "TABLERO_OIDC_AUDIENCE means nothing without TABLERO_OIDC_ISSUER"),
        ({"TABLERO_OIDC_JWKS": "x"}, "TABLERO_OIDC_JWKS means nothing without TABLERO_OIDC_ISSUER"),
        ({"TABLERO_OIDC_ISSUER": "http://example.org", "TABLERO_OIDC_AUDIENCE": "x"}, "begins with https://"),
        ({"TABLERO_OIDC_ISSUER": "https://x", "TABLERO_OIDC_AUDIENCE": "x y"}, "the challenge cannot hold"),
        ({**ISSUER, "TABLERO_OIDC_JWKS": "http://example.org/keys"}, "begins with https://"),
        ({**ISSUER, "TABLERO_OIDC_JWKS": "file:///etc/passwd"}, "begins with https://"),
        ({**ISSUER, "TABLERO_OIDC_JWKS": "/no/such/file"}, "no such file"),
        ({**ISSUER, "TABLERO_OIDC_AUTHORIZATION_URI": "https://x?y=z"}, "the challenge cannot hold"),
        ({**ISSUER, "TABLERO_OAUTH": "basic"}, "leave one of the two out"),
        ({**SIGN_IN, "TABLERO_LOGIN_OIDC_CLIENT_ID": ""}, "TABLERO_LOGIN_OIDC"),
        ({**SIGN_IN, "TABLERO_LOGIN_OIDC_CLIENT_SECRET": ""}, "TABLERO_LOGIN_OIDC"),
        ({**SIGN_IN, "TABLERO_LOGIN_OIDC_ISSUER": "http://login.example.org"}, "TABLERO_LOGIN_OIDC"),
        ({**SIGN_IN, "TABLERO_LOGIN_OIDC_ADMITS": "somebody"}, "ADMITS"),
        ({"TABLERO_PORT": "8080"}, "TABLERO_PORT means nothing to Tablero"),
        ({"TABLERO_METRICS_LISTEN": "everywhere:all"}, "not an address to listen on"),
        (
            {"TABLERO_METRICS_LISTEN": "127.0.0.1"},
            "where the service itself listens; give metrics another port",
        ),
        ({"TABLERO_METRICS_TOKEN": "two words"}, "TABLERO_METRICS_TOKEN must be of ASCII"),
        *(
            (
                {"TABLERO_CONSOLE_URL": f"https://{rest}"},
                "^TABLERO_CONSOLE_URL must be a URL of a scheme, a host",
            )
            for rest in ("", "x/there", "x?y", "x#y", "x:70000", "x y", "ada@x", "ada:secret@x")
        ),
        ({"TABLERO_OAUTH": "full"}, "must be basic"),
        ({"TABLERO_OAUTH": "basic", "TABLERO_LISTEN": "0.0.0.0:1"}, "for a loopback address only; listen on"),
        ({"TABLERO_OAUTH": "basic", "TABLERO_OIDC_AUDIENCE": "x"}, "would mean nothing; leave one"),
    ],
)
def test_refuses(environ, sentence):
    with pytest.raises(Refusal, match=sentence):
        options.read(environ)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TABLERO_URL", "https://tables.example.org"),
        ("TABLERO_TOKEN", "tbl_secret"),
        ("TABLERO_SERVICE_HOST", "10.0.0.1"),
        ("TABLERO_SERVICE_PORT", "10002"),
        ("TABLERO_SERVICE_PORT_HTTP", "10002"),
        ("TABLERO_PORT", "tcp://10.0.0.1:10002"),
        ("TABLERO_PORT_10002_TCP", "tcp://10.0.0.1:10002"),
        ("TABLERO_PORT_10002_TCP_ADDR", "10.0.0.1"),
        ("TABLERO_CONSOLE_PORT", "tcp://10.0.0.1:10002"),
        ("TABLERO_CONSOLE_SERVICE_PORT", "10002"),
    ],
)
def test_leaves_variables_of_clients_and_of_kubernetes_alone(name, value):
    assert options.read({name: value}) == options.read({})


def test_help_says_where_the_data_is(capsys):
    parser = argparse.ArgumentParser()
    options.add_arguments(parser)
    assert str(options.default_data()) in " ".join(parser.format_help().split()).replace("- ", "-")


def test_options_become_variables():
    environ = {}
    options.export(
        ["--listen", ":1", "--workers=2", "--allow-development-account", "--host-suffix", "a.b, .C."], environ
    )

    result = options.read(environ)

    assert environ["TABLERO_WORKERS"] == "2"
    assert (result.port, result.workers, result.allow_development_account) == (1, 2, True)
    assert result.host_suffixes == ("a.b", "c")


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


def test_a_provider_of_sign_ins():
    (provider,) = options.read(SIGN_IN).sign_in
    assert (provider.name, provider.admits_everyone) == ("Login.example.org", False)
    assert (provider.id, provider.origin) == ("login.example.org-realms-main", "https://Login.example.org")
    (provider,) = options.read({**SIGN_IN, "TABLERO_LOGIN_OIDC_ADMITS": "everyone"}).sign_in
    assert provider.admits_everyone


def test_every_command_of_ours_finds_a_database():
    folders = [
        folder for app in ("storage", "console") for folder in (ROOT / app).glob("**/management/commands")
    ]
    commands = {path.stem for folder in folders for path in folder.glob("[a-z]*.py")}
    assert commands == command_line.own_commands() | command_line.ALONE


LIMIT = str(64 << 20)
GROUPS = {
    "1:memory:/outer/inner": {
        "memory/outer/inner/memory.limit_in_bytes": "9223372036854771712",
        "memory/outer/memory.limit_in_bytes": LIMIT,
    },
    "0::/a.service": {"a.service/memory.max": "max", "memory.max": LIMIT},
    "0::/of/the/host": {"memory.max": LIMIT},
}


@pytest.mark.parametrize("line", GROUPS)
def test_requests_may_take_a_quarter_of_the_memory_of_the_control_group(line, tmp_path, monkeypatch):
    (groups := tmp_path / "groups").write_text(f"3:cpu:/\n{line}\n")
    for name, text in GROUPS[line].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(options.memory, "available", partial(options.memory.available, tmp_path, groups))

    assert options.read({"TABLERO_WORKERS": "2"}).request_memory == 8 << 20
    assert options.read({"TABLERO_REQUEST_MEMORY": "1G"}).request_memory == 1 << 30


def test_all_memory_of_a_machine_without_control_groups(tmp_path):
    assert options.memory.available(tmp_path, tmp_path / "none") > 64 << 20


@pytest.mark.parametrize(
    ("arguments", "listen", "expected"),
    [
        (["--port", "10902"], "", "127.0.0.1:10902"),
        (["--port=10902"], "0.0.0.0:443", "0.0.0.0:10902"),
        (["--tablePort", "10902", "--tableHost", "0.0.0.0"], "", "0.0.0.0:10902"),
        (["--host", "::1"], "0.0.0.0:443", "[::1]:443"),
        (["--host", "[::]", "--port", "0"], "", "[::]:0"),
        (["--host", "localhost"], ":8080", "localhost:8080"),
        ([], ":8080", ":8080"),
    ],
)
def test_host_and_port_change_halves_of_the_address(arguments, listen, expected):
    environ = {"TABLERO_LISTEN": listen}
    parts = options.export(arguments, environ)
    parts.apply(environ)
    assert environ["TABLERO_LISTEN"] == expected
    options.read_address(expected)


def test_the_port_is_that_of_the_option_and_the_host_that_of_the_file(tmp_path, monkeypatch):
    (tmp_path / "tablero.toml").write_text('listen = "0.0.0.0:443"')
    environ = {"TABLERO_CONFIG": str(tmp_path / "tablero.toml")}
    parts = options.export(["--port", "8443"], environ)
    configuration.apply(environ, {})
    parts.apply(environ)
    assert environ["TABLERO_LISTEN"] == "0.0.0.0:8443"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--port", "many"], "--port is 'many'; it must be a number from 0 to 65535."),
        (["--port", "70000"], "--port is '70000'; it must be a number from 0 to 65535."),
        (["--host", "127.0.0.1:80"], "say --listen HOST:PORT for an address with its port"),
        (["--host", ""], "say --listen HOST:PORT"),
        (["--listen", ":1", "--port", "2"], "either by --listen HOST:PORT, or by --host and --port"),
        (["10902"], "Unknown argument 10902; say --port 10902."),
        (["0.0.0.0:8000"], "Unknown argument 0.0.0.0:8000; say --listen 0.0.0.0:8000."),
        (["-p", "8000"], "Unknown option -p; say --port 8000."),
        (["--bind=:8000"], "Unknown option --bind; say --listen :8000."),
        (["--address"], "Unknown option --address; say --listen HOST:PORT."),
        (["--location", "/srv"], "Unknown option --location; say --data /srv."),
        (["--cert", "a.pem"], "Unknown option --cert; say --tls-cert a.pem."),
        (["--silent"], "--silent is an option of Azurite that Tablero does not have; leave it out."),
        (["--blobPort", "1"], "Tablero serves tables only, so it has no --blobPort."),
    ],
)
def test_options_of_other_servers_are_explained(arguments, reason):
    environ = {}
    with pytest.raises(Refusal) as refused:
        options.export(arguments, environ).apply(environ)
    assert reason in str(refused.value)
