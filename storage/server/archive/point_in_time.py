"""Point-in-time restore of the embedded database into a new data folder, which then replaces the old one."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final

from storage.backups import last_backup
from storage.server import embedded, folder_switch, installation, secret, workers
from storage.server.archive import archiver, archiving
from storage.server.archive.archive_store import LOG, SEGMENT, SUFFIX, Archive
from storage.server.archive.archiving import Config
from storage.server.archive.catalog import Catalog, Plan, read_forks
from storage.server.backups import contents, programs, restore
from storage.server.backups.description import SecretIn
from storage.server.backups.programs import Say
from storage.server.data_folder import DataFolder
from storage.server.options import Options
from storage.server.refusal import Refusal

MARK: Final = "restored.json"  # in a folder that is complete and checked, until it is in place
_STAMP: Final = "%Y-%m-%dT%H-%M-%SZ"
_PATIENCE: Final = 60.0  # seconds until the last segment is in the archive
_SHOWN: Final = 5  # periods in a refusal
_STOP: Final = re.compile(r"recovery stopping (?:before|after) \w+ of transaction \d+, time (.+)")


@dataclass(frozen=True, slots=True)
class Request:
    """Restore request; ``moment`` defaults to the latest, ``archive`` to the data folder's."""

    moment: datetime | None
    archive: str | None = None
    passphrase_file: Path | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of a restore: the restored folder ``path``, and ``kept`` with the replaced data."""

    path: Path
    counts: Mapping[str, int]
    notes: str
    kept: Path | None = None


def restore_moment(options: Options, request: Request, say: Say) -> Restored:
    """Restore beside an existing database, or else in place."""
    target = DataFolder(options.data)
    has_database = target.database.exists()
    if os.path.ismount(target.path):
        raise Refusal(
            f"{target.path} is a mount point, so nothing can take its place. Restore into another folder with --data"
            " DIR, and start the server with that."
        )
    if target.path.parent.exists() and not os.access(target.path.parent, os.W_OK):
        raise Refusal(
            f"The restored folder is made beside {target.path}, and {target.path.parent} is not writable for you. Name"
            " a folder elsewhere with --data DIR, and start the server with that."
        )
    if request.replaces:
        folder_switch.refuse_running(target)
    remembered = Config.read(target)
    location = request.archive or (remembered.archive if remembered else None)
    if location is None:
        raise Refusal(
            f"The server of {target.path} has no archive. Name one: tablero restore ARCHIVE --to TIME"
        )
    config = remembered if remembered and remembered.archive == location else Config(location, 0)
    archive = config.open(request.passphrase_file)
    if has_database and config is remembered:
        _flush(options, say)
    catalog = Catalog.read(archive)
    plans = catalog.plan(request.moment)
    if not plans:
        raise _out_of_range(catalog, request.moment)
    is_expected_sealed = config.is_sealed or (
        request.passphrase_file is not None
        and all(archive.base(it.base.name).secret is not SecretIn.SEALED for it in plans)
    )
    if is_expected_sealed and not archive.is_sealed:
        raise Refusal(
            f"The archive {location} is not sealed, so that others can have made or changed it. If you trust it, leave"
            " --passphrase-file out."
        )
    if has_database and archiving.system_of(target) != catalog.system:
        raise Refusal(f"{location} is the archive of another database than that of {target.path}.")
    stamp = datetime.now(UTC).strftime(_STAMP)
    _remove_unfinished(target)
    draft = replace(options, data=_beside(target, f"{stamp}.part"))
    try:
        counts, notes = _build(draft, target, catalog, plans, request.moment, say)
        _reserve_timeline(DataFolder(draft.data), catalog)
        if remembered is not None:
            replace(remembered, archive=location).write(DataFolder(draft.data))
        if (target.path / last_backup.NAME).exists():
            shutil.copyfile(target.path / last_backup.NAME, draft.data / last_backup.NAME)
        (draft.data / MARK).write_text(json.dumps({"moment": _text(request.moment), "archive": location}))
        os.sync()
    except BaseException:
        shutil.rmtree(draft.data, ignore_errors=True)
        raise
    new = _beside(target, f"{stamp}.restored")
    draft.data.rename(new)
    if has_database and not request.replaces:
        return Restored(new, counts, notes)
    return replace(switch(options, new), counts=counts, notes=notes)


def rehearse(
    options: Options, source: DataFolder, catalog: Catalog, plans: list[Plan], moment: datetime, say: Say
) -> None:
    """Restore and examine a moment in a temporary folder, without a trace in the archive."""
    _build(options, source, catalog, plans, moment, say, is_scratch=True)


def switch(options: Options, new: Path | None) -> Restored:
    """Replace the data folder by a restored one, by default the newest beside it."""
    target = DataFolder(options.data)
    folder_switch.refuse_running(target)
    if new is None:
        new = _newest(target)
    kept = _beside(target, new.name.removeprefix(f"{target.path.name}.").removesuffix(".restored"))
    if not (new / MARK).exists():
        if not (target.path / MARK).exists():
            raise Refusal(f"{new} is not a restored folder; make one: tablero restore --to TIME")
        new.rename(kept)  # a switch that was interrupted after the exchange
    elif not target.database.exists() and not _has_files(target):
        target.path.mkdir(parents=True, exist_ok=True)
        new.rename(target.path)
        (target.path / MARK).unlink(missing_ok=True)
        return Restored(target.path, {}, "")
    else:
        folder_switch.put_in_place(target.path, new, kept)
    (target.path / MARK).unlink(missing_ok=True)
    return Restored(target.path, {}, "", kept)


def _newest(target: DataFolder) -> Path:
    restored = sorted(target.path.parent.glob(f"{target.path.name}.*.restored"))
    if not restored:
        raise Refusal(
            f"There is no restored folder beside {target.path}; make one: tablero restore --to TIME"
        )
    return restored[-1]


def _has_files(folder: DataFolder) -> bool:
    return folder.path.exists() and any(folder.path.iterdir())


def _beside(target: DataFolder, suffix: str) -> Path:
    return target.path.with_name(f"{target.path.name}.{suffix}")


def _remove_unfinished(target: DataFolder) -> None:
    """Remove the remains of killed restores."""
    for path in target.path.parent.glob(f"{target.path.name}.*Z.part"):
        try:
            with DataFolder(path).held("restore"):
                shutil.rmtree(path, ignore_errors=True)
        except (OSError, Refusal):
            continue


def _flush(options: Options, say: Say) -> None:
    """Archive everything acknowledged so far."""
    say("Archiving the log up to now ...")
    try:
        with embedded.attached(options, purpose="archive", say=say):
            name = archiving.flush(options)
            deadline = time.monotonic() + _PATIENCE
            path = DataFolder(options.data).archiving / "state.json"
            while (state := archiver.read_state(path))["archived"] < name:
                failure = state["failure"]
                if failure is not None or time.monotonic() > deadline:
                    say(f"The latest part of the log is not archived. {failure['reason'] if failure else ''}")
                    return
                time.sleep(0.05)
    except Refusal as refusal:
        say(f"The latest part of the log cannot be archived, because the database does not run: {refusal}")


def _out_of_range(catalog: Catalog, moment: datetime | None) -> Refusal:
    periods = catalog.periods()
    if not periods:
        return Refusal(
            f"{catalog.archive.location} has no base backup with the log since, so nothing can be restored."
        )
    text = "; ".join(f"{_text(it.start)} to {_text(it.end)}" for it in periods[-_SHOWN:])
    return Refusal(
        f"{_text(moment)} cannot be restored from {catalog.archive.location}. These times can: {text}; and latest."
    )


def _build(
    options: Options,
    target: DataFolder,
    catalog: Catalog,
    plans: list[Plan],
    moment: datetime | None,
    say: Say,
    *,
    is_scratch: bool = False,
) -> tuple[dict[str, int], str]:
    """Build the folder from the first undamaged base backup."""
    for number, plan in enumerate(plans, start=1):
        try:
            _copy_base(options, target, catalog.archive, plan.base.name, say)
            break
        except Refusal as refusal:
            if number == len(plans) or "is damaged" not in str(refusal):
                raise
            say(f"{refusal} The one before is used.")
            shutil.rmtree(options.data, ignore_errors=True)
    folder = DataFolder(options.data)
    _place_log(options, catalog, plan, say)
    say(f"Replaying the log up to {_text(moment)} ...")
    others = restore.UNSAFE if is_scratch else {}
    settings = _recovery_settings(plan, moment) | others
    is_whole = moment is None
    try:
        counts, notes = _recover(options, settings, say)
    except Refusal:
        # nothing was committed between the moment and the end of the last segment, which is later
        if moment is None or "recovery ended before configured recovery target" not in _log_of(folder):
            raise
        counts, notes = _recover(options, _recovery_settings(plan, None) | others, say)
        is_whole = True
    if is_whole:
        _check_end(folder, catalog, plan)
    if moment is not None:
        refuse_repeated_time(folder, catalog, plan, moment)
    say("Verifying the checksums of the restored database ...")
    programs.run(options, "pg_checksums", "--check", "--pgdata", folder.database)
    return counts, notes


def _copy_base(options: Options, target: DataFolder, archive: Archive, name: str, say: Say) -> None:
    """Copy a base backup with the secret of the folder to replace, as the backup's may be encrypted."""
    kept = secret.path_of(replace(options, data=target.path))
    base = archive.base(name)
    secret_value = (
        kept.read_bytes().strip() if kept.exists() else restore.secret_of(base, archive.passphrase())
    )
    restore.copy(options, base, secret_value, say)


def _place_log(options: Options, catalog: Catalog, plan: Plan, say: Say) -> None:
    """Copy WAL segments to PostgreSQL's folder and verify them all before it starts."""
    folder = DataFolder(options.data)
    needed = len(plan.segments) * SEGMENT
    free = shutil.disk_usage(folder.path).free
    if free < 2 * needed:  # one half is written while the log is replayed
        raise Refusal(
            f"The disk of {folder.path} is too full: {free >> 20:,} MiB are free, and replaying the log needs"
            f" {2 * needed >> 20:,} MiB. Make room on it."
        )
    say(f"Reading {len(plan.segments):,} segments of the log ...")
    programs_of = installation.find(options, folder)
    wal = folder.database / "pg_wal"
    # all histories: the new timeline gets a number that none has
    archive = catalog.archive
    histories = [it.removesuffix(SUFFIX) for it in archive.names(LOG) if it.endswith(f".history{SUFFIX}")]
    contents_of_files = chain(
        ((it.name, catalog.read_segment(it)) for it in plan.segments),
        ((it, archive.read_history(it)) for it in histories),
    )
    for name, content in contents_of_files:
        for place, text in ((wal / name, content), (wal / "archive_status" / f"{name}.done", b"")):
            place.unlink(missing_ok=True)
            place.touch(mode=0o600)
            place.write_bytes(text)
            programs_of.own(place)
    signal = folder.database / "recovery.signal"
    signal.touch(mode=0o600)
    programs_of.own(signal)


def _recovery_settings(plan: Plan, moment: datetime | None) -> dict[str, str]:
    settings = {
        "restore_command": "false",  # all that is needed lies in the folder
        "recovery_target_timeline": str(plan.timeline),
        "recovery_target_action": "promote",
        "hot_standby": "off",
        # its writes wait for the archive until a server uses the folder
        "archive_mode": "on",
        "archive_command": "",
    }
    if moment is not None:
        settings["recovery_target_time"] = moment.isoformat()
    return settings


def _recover(options: Options, settings: Mapping[str, str], say: Say) -> tuple[dict[str, int], str]:
    with embedded.running(options, purpose="restore", say=say, settings=settings):
        say("Examining the restored database ...")
        done = subprocess.run(
            [sys.executable, "-P", "-m", "storage.server.archive.restored"],
            env={**workers.environment(), "TABLERO_DATA": str(options.data)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            reason = done.stderr.strip().rpartition("\n")[2] or f"status {done.returncode}"
            raise Refusal(f"The restored database cannot be used: {reason}")
        with contents.connect(options) as connection:
            return contents.count(connection), done.stdout.strip()


def _check_end(folder: DataFolder, catalog: Catalog, plan: Plan) -> None:
    """Raise Refusal if PostgreSQL took damage in a segment for the end of the log."""
    end = _end_of_replay(folder, plan)
    first, last = plan.segments[0], plan.segments[-1]
    if end < last.number:
        raise Refusal(
            f"{catalog.archive.location}/{LOG}/{plan.segments[end - first.number].name}{SUFFIX} is damaged: the log"
            " cannot be replayed beyond it."
        )


def refuse_repeated_time(folder: DataFolder, catalog: Catalog, plan: Plan, moment: datetime) -> None:
    """Raise Refusal if the clock was ahead and set back, because PostgreSQL stops at the first later commit."""
    stops = _STOP.findall(_log_of(folder))
    stopped = datetime.fromisoformat(stops[-1]) if stops else moment
    if catalog.goes_back(plan, _end_of_replay(folder, plan), stopped):
        raise Refusal(
            f"The clock was set back after {_text(stopped)}, so that the log has {_text(moment)} before and after that."
            " Restore an earlier time, or latest."
        )


def _end_of_replay(folder: DataFolder, plan: Plan) -> int:
    """Return the number of the segment in which the replay ended, where the newest timeline begins."""
    history = max((folder.database / "pg_wal").glob("*.history"))
    return read_forks(history.read_bytes())[plan.timeline]


def _log_of(folder: DataFolder) -> str:
    try:
        return folder.log.read_text(errors="replace")
    except OSError:
        return ""


def _reserve_timeline(folder: DataFolder, catalog: Catalog) -> None:
    """Reserve the timeline number, so that another restore uses a different one."""
    for path in (folder.database / "pg_wal").glob("*.history"):
        # an archive that can only be read has no server that would use the number
        with suppress(OSError, Refusal, archiver.Failure):
            archiver.push(path, catalog.archive, archiver.Owner(catalog.system))


def _text(moment: datetime | None) -> str:
    return "the end" if moment is None else f"{moment:%Y-%m-%dT%H:%M:%SZ}"
