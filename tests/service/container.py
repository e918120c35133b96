"""Run the steps of a Containerfile as they stand, on this machine, where no builder of images works.

The base image is this machine: each stage is an overlay over its root, in a mount namespace, in which the steps write
what they like. It needs root, and knows the instructions that our Containerfile uses.

    python3 -m tests.service.container

builds the image with the builder of this machine, or else runs all steps, also those that fetch packages.
"""

import json
import os
import re
import shlex
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests import programs
from tests.live_server import ROOT
from tests.service.conftest import SERVICE
from tests.service.sandbox import bind, cover, enter_namespace, overlay, set_read_only

CONTAINERFILE = SERVICE / "Containerfile"
PYTHON = Path(sys.prefix).resolve() / "bin"
DEPENDENCIES = ".lock/run.txt"
KNOWN = {
    "FROM", "WORKDIR", "RUN", "COPY", "ENV", "USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
    "ENTRYPOINT", "CMD",
}  # fmt: skip


class Instruction(NamedTuple):
    name: str
    text: str


def read(text: str) -> list[Instruction]:
    """Return the instructions of a Containerfile, each on one line; raises ValueError for an unknown one."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    results = [Instruction(*line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]
    for instruction in results:
        if instruction.name not in KNOWN:
            raise ValueError(f"unknown instruction {instruction.name}")
    return results


@dataclass
class Stage:
    """A stage of the build, and what a container of it is run with."""

    root: Path
    folder: str = "/"
    user: str = "0:0"
    environment: dict[str, str] = field(
        default_factory=lambda: {"PATH": f"{PYTHON}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    )
    volumes: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def run(
        self, command: list[str], environment: dict[str, str], **options: object
    ) -> subprocess.Popen[str]:
        """Start a program in this stage, as its user."""
        user, group = map(int, self.user.split(":"))
        values = {**self.environment, "HOME": "/", **environment}
        program = shutil.which(command[0], path=values["PATH"].replace("/", f"{self.root}/")) or ""

        def enter() -> None:
            os.chroot(self.root)
            os.chdir(self.folder)
            os.setgroups([])
            os.setgid(group)
            os.setuid(user)

        inside = program.removeprefix(str(self.root)) or command[0]
        return subprocess.Popen(
            [inside, *command[1:]],
            env=values,
            preexec_fn=enter,
            text=True,
            **options,  # type: ignore[call-overload]
        )


class Build:
    """A build in ``folder``; without ``fetches``, the packages of this Python replace those of the lock."""

    def __init__(self, folder: Path, *, fetches: bool) -> None:
        self._folder, self._fetches = folder, fetches
        self._stages: dict[str, Stage] = {}
        self.stage = Stage(folder)

    def run(self, instructions: list[Instruction]) -> Stage:
        for instruction in instructions:
            self._do(instruction)
        return self.stage

    def _do(self, instruction: Instruction) -> None:
        stage, text = self.stage, instruction.text
        match instruction.name:
            case "FROM":
                image, *name = text.split(" AS ")
                assert image.startswith("python:")
                self.stage = Stage(self._overlay(f"stage{len(self._stages)}"))
                self._stages[name[0] if name else ""] = self.stage
            case "WORKDIR":
                stage.folder = text
                (stage.root / text.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "RUN":
                self._run(text)
            case "COPY":
                self._copy(text.split())
            case "ENV":
                for name, _, value in (word.partition("=") for word in shlex.split(text)):
                    stage.environment[name] = value.replace("$PATH", stage.environment["PATH"])
            case "USER":
                stage.user = text
            case "VOLUME":
                stage.volumes.append(text)
            case "HEALTHCHECK":
                stage.health = json.loads(text.partition("CMD ")[2])
            case "ENTRYPOINT":
                stage.entrypoint = json.loads(text)
            case "CMD":
                stage.command = json.loads(text)

    def _overlay(self, name: str) -> Path:
        """Make a root over this machine's, with its Python as that of the image."""
        root = self._folder / name / "root"
        root.mkdir(parents=True)
        overlay(Path("/"), self._folder / name, root)
        for path in ("proc", "dev"):
            bind(Path("/") / path, root / path)
        for path in packages():
            for parent in path.parents:
                inside = root / parent.relative_to("/")
                inside.chmod(inside.stat().st_mode | 0o111)
        python = root / PYTHON.relative_to("/") / "python"
        if not python.exists():
            python.symlink_to("python3")
        return root

    def _run(self, text: str) -> None:
        if DEPENDENCIES in text and not self._fetches:
            [installed] = self.stage.root.glob("opt/tablero/lib/python*/site-packages")
            (installed / "of_this_machine.pth").write_text("\n".join(map(str, packages()[1:])))
            return
        own = {
            name: value
            for name, value in os.environ.items()
            if name.startswith("PIP_") or "PROXY" in name.upper()
        }
        # a wheel is built with the hatchling of this Python
        offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}
        process = self.stage.run(
            ["/bin/sh", "-c", text],
            {**own, **({} if self._fetches else offline)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said, _ = process.communicate(timeout=900)
        assert process.returncode == 0, f"{text}\n{said}"

    def _copy(self, words: list[str]) -> None:
        source = ROOT
        if words[0].startswith("--from="):
            source = self._stages[words.pop(0).removeprefix("--from=")].root
        *names, target = words
        place = self.stage.root / str(Path(self.stage.folder) / target).lstrip("/")
        for name in names:
            result = source / name.lstrip("/")
            if result.is_dir():
                shutil.copytree(
                    result,
                    place,
                    symlinks=True,
                    dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"),
                ) if source == ROOT else shutil.copytree(result, place, symlinks=True, dirs_exist_ok=True)
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(result, place)


def packages() -> list[Path]:
    """Return the folders of this Python, which a stage without packages of its own uses."""
    folders = (sys.base_prefix, *site.getsitepackages())
    return [Path(it).resolve() for it in folders if Path(it).is_dir()]


def start(stage: Stage, data: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start a container of a stage: with a root that cannot be written, `data` as its volume, and an empty /tmp."""
    [volume] = stage.volumes
    shown = [stage.root / it.relative_to("/") for it in packages() if it.is_relative_to("/tmp")]
    set_read_only(str(stage.root), is_read_only=True)
    set_read_only(str(stage.root / "dev"), is_read_only=False)
    set_read_only(str(stage.root / "proc"), is_read_only=False)
    bind(data, stage.root / volume.lstrip("/"))
    cover(stage.root / "tmp", shown, "1777")
    for path in (data, *data.rglob("*")):
        os.chown(path, *map(int, stage.user.split(":")), follow_symlinks=False)
    write = stage.run(["touch", "/opt/tablero/written"], {}, stderr=subprocess.PIPE)
    assert "Read-only file system" in write.communicate()[1]
    return stage.run([*stage.entrypoint, *stage.command], environment)


def serve(folder: Path, data: Path, port: str) -> int:
    """Build, run, tell when the health check passes, and hand on SIGTERM; the exit status of the container."""
    enter_namespace()
    cover(folder, [], "755")
    text = re.sub(r"\b10002\b", port, CONTAINERFILE.read_text())
    stage = Build(folder, fetches=False).run(read(text))
    settings = {name: value for name, value in os.environ.items() if name.startswith("TABLERO_")}
    container = start(stage, data, settings)
    signal.signal(signal.SIGTERM, lambda *_: container.terminate())
    while container.poll() is None:
        health = stage.run(stage.health, {}, stderr=subprocess.DEVNULL)
        if health.wait() == 0:
            print("healthy", flush=True)
            return container.wait()
        time.sleep(0.2)
    return container.returncode


def main() -> None:
    if len(sys.argv) > 1:
        sys.exit(serve(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
    for builder in ("podman", "docker"):
        program = programs.find(builder)
        if program and subprocess.run([program, "info"], capture_output=True).returncode == 0:
            kind = ["--format", "docker"] if builder == "podman" else []
            image = ["build", *kind, "--tag", "tablero", "--file", str(CONTAINERFILE), str(ROOT)]
            subprocess.run([program, *image], check=True)
            subprocess.run([program, "image", "inspect", "--format", "{{.Size}}", "tablero"], check=True)
            return
    print("No builder works here: the steps are run on this machine.")
    enter_namespace()
    with tempfile.TemporaryDirectory() as folder:
        cover(Path(folder), [], "755")
        stage = Build(Path(folder), fetches=True).run(read(CONTAINERFILE.read_text()))
        subprocess.run(["du", "-sh", stage.root / "opt/tablero"], check=True)
        subprocess.run(["umount", "--lazy", folder], check=True)


if __name__ == "__main__":
    main()
