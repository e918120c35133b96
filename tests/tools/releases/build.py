"""Build what a release publishes, of the commit that is checked out: `python3 -m tests.tools.releases.build FOLDER`.

FOLDER gets the wheel, the source archive, the bill of materials, SHA256SUMS and, with ``--sign``, the signature of
SHA256SUMS by an SSH key. The same commit gives the same bytes on every machine with the packages of the lock.
"""

import argparse
import gzip
import io
import os
import subprocess
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from tests import programs, wheels
from tests.live_server import ROOT

NAMESPACE = (
    "tablero-release"  # the namespace of the signature; signatures made for other purposes are not accepted
)
SUMS = "SHA256SUMS"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m tests.tools.releases.build", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="is made, or empty")
    parser.add_argument(
        "--sign", metavar="KEY", type=Path, help="an SSH key; the public half, of one in an agent"
    )
    given = parser.parse_args()
    if changed := git("status", "--porcelain").decode():
        parser.error(f"these files are not committed:\n{changed}")
    given.folder.mkdir(parents=True, exist_ok=True)
    if any(given.folder.iterdir()):
        parser.error(f"{given.folder} is not empty")
    for path in build(given.folder, key=given.sign):
        print(f"{path.name}: {path.stat().st_size / 1024:,.0f} KiB")


def build(folder: Path, *, commit: str = "HEAD", key: Path | None = None) -> list[Path]:
    """Write the files of a release into ``folder`` and return their paths; ``key`` signs the list of their hashes."""
    time = int(git("show", "--no-patch", "--format=%ct", commit))
    tree = git("archive", "--format=tar", commit)
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(fileobj=io.BytesIO(tree)) as files:
        checkout = Path(scratch)
        unpack(files, checkout)
        version = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]["version"]
        wheel = build_wheel(checkout, folder, time)
        materials = folder / f"tablero_server-{version}.cdx.json"
        materials.write_bytes((checkout / "docs/sbom.cdx.json").read_bytes())
        source = folder / f"tablero_server-{version}.tar.gz"
        source.write_bytes(pack(files, f"tablero_server-{version}", read_metadata(wheel), time))
    made = [materials, source, wheel]
    sums = folder / SUMS
    sums.write_text(sums_of(made))
    made.append(sums)
    if key is not None:
        run(programs.get("ssh-keygen"), "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(sums))
        made.append(folder / f"{SUMS}.sig")
    return made


def unpack(files: tarfile.TarFile, folder: Path) -> None:
    files.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 and newer have one
    files.extractall(folder)


def build_wheel(checkout: Path, folder: Path, time: int) -> Path:
    """Build the wheel of a copy of the source, all of whose files get the same ``time``, seconds since 1970."""
    for path in checkout.rglob("*"):  # permissions are part of a wheel
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time), "PYTHONHASHSEED": "0"}
    return wheels.build_wheel(folder, checkout, environment)


def read_metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        [name] = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name)


def pack(files: tarfile.TarFile, prefix: str, metadata: bytes, time: int) -> bytes:
    """Return the source archive: the whole commit below ``prefix``, and the PKG-INFO that installers look for."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=time) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        information = tarfile.TarInfo("PKG-INFO")
        information.size = len(metadata)
        members = [(information, metadata), *((it, content(files, it)) for it in files.getmembers())]
        for member, data in sorted(members, key=lambda it: it[0].name):
            member.name = f"{prefix}/{member.name}"
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.mtime, member.uid, member.gid, member.uname, member.gname = time, 0, 0, "", ""
            member.pax_headers = {}
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def content(files: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    result = files.extractfile(member) if member.isfile() else None
    return result.read() if result else b""


def sums_of(paths: Iterable[Path]) -> str:
    """Return lines that `sha256sum --check` reads."""
    return "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)


def git(*arguments: str) -> bytes:
    return run(programs.get("git"), *arguments, cwd=ROOT)


def run(*command: str, cwd: Path | None = None) -> bytes:
    done = subprocess.run(command, cwd=cwd, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: {done.stderr.decode()}")
    return done.stdout


if __name__ == "__main__":
    main()
