import logging

from storage.health import disk
from storage.health.disk import Space, Watch

GIB = 1 << 30


def test_says_that_a_disk_is_full(tmp_path):
    sentence = disk.problem(tmp_path, Space(12 << 20, 100 * GIB))
    assert sentence == f"The disk of {tmp_path} is full: 12 MiB are free. Make room on it."
    assert disk.problem(tmp_path, Space(100 << 20, 100 * GIB)) == ""


def test_measures_the_disk_of_a_missing_folder(tmp_path):
    assert disk.space_of(tmp_path / "not" / "yet").total == disk.space_of(tmp_path).total


def test_warns_once_before_the_disk_is_full(tmp_path, caplog):
    result = Space(2 * GIB, 100 * GIB)
    watch = Watch(tmp_path, lambda _: result)

    def warnings() -> list[str]:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            watch.check()
        return caplog.messages

    assert warnings() == []
    result = Space(GIB // 2, 100 * GIB)
    expected = f"512 MiB of 100.0 GiB are free on the disk of {tmp_path}. Writes fail once it is full."
    assert warnings() == [expected]
    assert warnings() == []
    result = Space(2 * GIB, 100 * GIB)
    assert warnings() == []
    result = Space(GIB // 2, 100 * GIB)
    assert warnings() == [expected]
