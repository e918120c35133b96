"""Metrics of backups and the archive for Prometheus."""

from django.conf import settings

from storage.backups import archive, last_backup


def measure() -> dict[str, float]:
    """Return the gauges of the last backup and of the archive, if any."""
    backup = last_backup.read(settings.OPTIONS.data).last
    made_at = 0 if backup is None else backup.made_at.timestamp()
    drill = last_backup.read_drill(settings.OPTIONS.data)
    passed_at = drill.passed_at.timestamp() if drill and drill.passed_at else 0
    return {
        "last_backup_timestamp_seconds": made_at,
        "last_drill_timestamp_seconds": passed_at,
        **_measure_archive(),
    }


def _measure_archive() -> dict[str, float]:
    summary = archive.summary()
    if summary is None:
        return {}
    # the last period: in an earlier one there may be a gap
    oldest, latest = summary.periods[-1] if summary.periods else (None, None)
    return {
        "archive_oldest_timestamp_seconds": oldest.timestamp() if oldest else 0,
        "archive_latest_timestamp_seconds": latest.timestamp() if latest else 0,
        "archive_lag_seconds": summary.lag,
        "archive_size_bytes": summary.size,
        "archive_problems": len(summary.problems),
    }
