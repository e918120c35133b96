"""Programs in languages that must be compiled: C# with its three clients, Go with aztables, Java and Rust.

Their compilers are not asked for: without one, a test is skipped with the reason. C# is compiled by the .NET SDK
(10 or newer) or by the program that the variable TEST_CSHARP names, which compiles and runs csharp/forge.cs, once per
process; this runs all others.
"""

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from platformdirs import user_cache_path

_CLIENT = "Azure.Data.Tables@12.*"
# for `dotnet run`, too: nothing is compiled ahead of time, and of old clients' advisories no warning is printed
_PROPERTIES = "#:property PublishAot=false\n#:property NuGetAudit=false\n"
_MODULE = Path(__file__).parent / "go"
_FORGE = Path(__file__).parent / "csharp" / "forge.cs"
_BUILD_TIMEOUT = 540


def csharp(folder: Path, code: str, package: str = _CLIENT) -> list[str]:
    """Return the command that compiles and runs a C# program; the file is written into ``folder``.

    ``package`` is NuGet's, of the client that the .NET SDK has to fetch, with its version: ``NAME@VERSION``.
    """
    sdk, program = shutil.which("dotnet"), os.environ.get("TEST_CSHARP")
    path = folder / "program.cs"
    if sdk is not None:
        path.write_text(f"#:package {package}\n{_PROPERTIES}{code}")
        return [sdk, "run", str(path)]
    if not program:
        pytest.skip("neither the .NET SDK is installed nor TEST_CSHARP set, which C# needs")
    path.write_text(code)
    return [sys.executable, "-ISc", _CLIENT_OF_FORGE, _start_forge(program), str(path)]


# Sends a program to the process of csharp/forge.cs.
_CLIENT_OF_FORGE = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as forge:
    forge.connect(sys.argv[1])
    asked = {"file": sys.argv[2], "folder": os.getcwd(), "environment": dict(os.environ)}
    forge.sendall(json.dumps(asked).encode() + b"\\n")
    done = json.loads(b"".join(iter(lambda: forge.recv(1 << 16), b"")))
sys.stdout.buffer.write(done["output"].encode())
sys.stderr.buffer.write(done["errors"].encode())
sys.exit(done["status"])
"""


@cache
def _start_forge(program: str) -> str:
    """Start the process that runs the C# programs of these tests, and return its socket."""
    folder = Path(tempfile.mkdtemp(prefix="tablero-csharp-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = str(folder / "socket")
    forge = subprocess.Popen([program, str(_FORGE), address], stdout=subprocess.PIPE)
    atexit.register(forge.kill)
    assert forge.stdout is not None and forge.stdout.readline() == b"ready\n"
    return address


def csharp_environment() -> dict[str, str]:
    """Return where .NET keeps what it downloads, and how it is configured on this machine."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("DOTNET_", "NUGET_")) or name == "HOME"
    }


def go(folder: Path, code: str) -> list[str]:
    """Return the command that compiles and runs a Go program; the file is written into ``folder``."""
    compiler = shutil.which("go")
    if compiler is None:
        pytest.skip("go is not installed, which the Go SDK needs")
    for name in ("go.mod", "go.sum"):
        shutil.copy(_MODULE / name, folder)
    (folder / "main.go").write_text(code)
    return [compiler, "-C", str(folder), "run", "-mod=mod", "."]


def go_environment() -> dict[str, str]:
    """Return where Go keeps what it downloads and compiles, and how it is configured on this machine."""
    cache = user_cache_path("tablero") / "go"
    return {
        **_settings("GO"),
        "GOMODCACHE": str(cache / "modules"),
        "GOCACHE": str(cache / "build"),
        "GOTOOLCHAIN": "local",
    }


def build_go(module: Path, package: str, folder: Path) -> str:
    """Compile a package of a Go module into a folder, and return the program."""
    compiler = _compiler("go", "the Go SDK")
    environment = go_environment()
    _download([compiler, "-C", str(module), "mod", "download"], environment)
    program = str(folder / "program")
    _build([compiler, "-C", str(module), "build", "-o", program, package], environment)
    return program


def build_java(pom: Path, sources: Sequence[Path], folder: Path) -> list[str]:
    """Compile Java sources with the dependencies of a ``pom.xml``, and return the command that runs ``cases.Main``."""
    compiler, runner = (_compiler(name, "the Java SDK") for name in ("javac", "java"))
    classes = f"{folder}{os.pathsep}{_java_classes(pom)}"
    options = ["-encoding", "UTF-8", "-cp", classes, "-d", str(folder)]
    environment = {"PATH": os.environ.get("PATH", "")}
    _build([compiler, *options, *map(str, sources)], environment)
    # a program that runs for seconds does not need the better compiler
    return [runner, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes, "cases.Main"]


def _java_classes(pom: Path) -> str:
    """Return the class path of the dependencies of a ``pom.xml``; Maven is asked once per cache."""
    cache = user_cache_path("tablero") / "java"
    known = cache / hashlib.sha256(pom.read_bytes()).hexdigest()
    if not known.exists():
        maven = _compiler("mvn", "the Java SDK")
        cache.mkdir(parents=True, exist_ok=True)
        unfinished = cache / f"{known.name}.{os.getpid()}"
        options = ["-B", "-q", "-f", str(pom), f"-Dmaven.repo.local={cache / 'repository'}"]
        goal = ["org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"]
        environment = _settings("MAVEN_", "JAVA_")
        _download([maven, *options, *goal, f"-Dmdep.outputFile={unfinished}"], environment)
        unfinished.rename(known)
    return known.read_text("utf-8").strip()


def build_rust(crate: Path, folder: Path) -> str:
    """Compile a Rust crate, and return the program; what it depends on is compiled once per cache."""
    compiler = _compiler("cargo", "the Rust SDK")
    environment = _rust_environment(compiler)
    options = ["--locked", "--manifest-path", str(crate / "Cargo.toml")]
    _download([compiler, "fetch", *options], environment)
    # other checkouts compile into the same cache: the program is taken from there at once
    _build([compiler, "build", "--offline", *options], environment)
    target = Path(environment["CARGO_TARGET_DIR"]) / "debug" / "cases"
    return shutil.copy(target, folder / "program")


def _rust_environment(compiler: str) -> dict[str, str]:
    """Return where Cargo keeps what it downloads and compiles, and how it is configured on this machine."""
    cache = user_cache_path("tablero") / "rust"
    kept = _settings("CARGO_", "RUST")
    # rustup looks for compilers below HOME, which may be another one than when it was installed
    installed = Path(compiler).parents[2] / ".rustup"
    if "RUSTUP_HOME" not in kept and installed.is_dir():
        kept["RUSTUP_HOME"] = str(installed)
    return {"CARGO_HOME": str(cache / "cargo"), **kept, "CARGO_TARGET_DIR": str(cache / "target")}


def _settings(*prefixes: str) -> dict[str, str]:
    """Return the variables that begin so, and those that say how this machine reaches others."""
    kept = ("PATH", "HOME", "SSL_CERT_FILE", "SSL_CERT_DIR")
    return {
        name: value
        for name, value in os.environ.items()
        if name in kept or name.startswith(prefixes) or name.lower().endswith("_proxy")
    }


def _compiler(name: str, purpose: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed, which {purpose} needs")
    return path


def _download(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Bring what a program is compiled with into the cache; without its registry, the test is skipped."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_BUILD_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{Path(command[0]).name} cannot download the packages: it takes too long")
    if done.returncode:
        reason = (done.stdout + done.stderr).strip()[-300:]
        pytest.skip(f"{Path(command[0]).name} cannot download the packages: {reason}")


def _build(command: Sequence[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_BUILD_TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr
