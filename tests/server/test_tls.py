"""The files of the certificate while tools replace them."""

from storage.server.tls import FileWatch


def test_a_change_is_told_once_and_when_all_files_are_written(tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    for path in (cert, key):
        path.write_text("old")
    watch = FileWatch(str(cert), str(key))
    assert not watch.has_changed()
    cert.write_text("newer")
    assert not watch.has_changed()  # the key may follow
    key.write_text("newer")
    assert not watch.has_changed()
    assert watch.has_changed()
    assert not watch.has_changed()
    cert.unlink()
    assert not watch.has_changed()
    assert watch.has_changed()
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
