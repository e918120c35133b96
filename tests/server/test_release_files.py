"""Reproducible releases: the same bytes from every builder, which a downloader can verify."""

import os
import shutil
import subprocess
import sys
import tarfile

import pytest

from tests import programs
from tests.live_server import ROOT
from tests.tools.releases import build

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def git():
    return programs.checkout("a release")


@pytest.fixture(scope="module")
def ssh_keygen(require):
    return require("ssh-keygen", "the signature of a release")


@pytest.fixture(scope="module")
def release(git, ssh_keygen, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    key = folder / "key"
    run(ssh_keygen, "-q", "-t", "ed25519", "-N", "", "-C", "a maintainer", "-f", str(key))
    (folder / "files").mkdir()
    build.build(folder / "files", key=key)
    return folder


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def test_the_source_archive_gives_the_same_wheel(release, tmp_path):
    """Elsewhere, at another time, by a user whose files are private."""
    [archive] = (release / "files").glob("*.tar.gz")
    [wheel] = (release / "files").glob("*.whl")
    with tarfile.open(archive) as files:
        [epoch] = {member.mtime for member in files.getmembers()}
        assert {(member.uid, member.uname) for member in files.getmembers()} == {(0, "")}
        build.unpack(files, tmp_path)
    [source] = tmp_path.iterdir()
    assert source.name == archive.name.removesuffix(".tar.gz")
    assert (source / "PKG-INFO").read_bytes() == build.read_metadata(wheel)
    os.utime(source / "manage.py", (0, 0))
    again = build.build_wheel(source, tmp_path, epoch)
    assert again.name == wheel.name
    assert again.read_bytes() == wheel.read_bytes()


def test_downloads_are_verified(release, ssh_keygen, tmp_path):
    signers = tmp_path / "signers"
    signers.write_text(f"release@tablero {(release / 'key.pub').read_text()}")
    folder = tmp_path / "files"
    shutil.copytree(release / "files", folder)

    def verify():
        signature = (
            f"{ssh_keygen} -Y verify -f {signers} -I release@tablero -n {build.NAMESPACE} -s {build.SUMS}.sig"
        )
        command = f"{signature} < {build.SUMS} && sha256sum --check --strict {build.SUMS}"
        return subprocess.run(
            ["/bin/sh", "-c", command], cwd=folder, capture_output=True, check=False
        ).returncode

    assert verify() == 0
    [wheel] = folder.glob("*.whl")
    content = wheel.read_bytes()
    wheel.write_bytes(content + b"\0")
    assert verify() != 0
    wheel.write_bytes(content)
    assert verify() == 0
    sums = folder / build.SUMS
    sums.write_text(sums.read_text().replace("a", "b"))
    assert verify() != 0


def test_uncommitted_files_prevent_a_release(git, tmp_path):
    checkout = tmp_path / "checkout"
    run(git, "clone", "--quiet", "--depth=1", f"file://{ROOT}", str(checkout))
    (checkout / "storage" / "more.py").write_text("")
    command = [sys.executable, "-m", "tests.tools.releases.build", str(tmp_path / "files")]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "storage/more.py" in done.stderr
    assert not (tmp_path / "files").exists()
