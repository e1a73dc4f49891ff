import os

from memory.freshness import fresh_paths
from memory.messages import Hit


def hit(path, mtime_ns, size):
    return Hit(path, "", 1, 1, 0.5, 0.5, 0.5, "", mtime_ns, size)


def indexed(root, path):
    status = (root / path).stat()
    return hit(path, status.st_mtime_ns, status.st_size)


def test_only_files_with_the_same_time_and_size_are_fresh(tmp_path):
    for name in ("same.md", "longer.md", "touched.md", "gone.md"):
        (tmp_path / name).write_text("text")
    files = [indexed(tmp_path, path.name) for path in tmp_path.iterdir()]
    times = (tmp_path / "longer.md").stat()

    (tmp_path / "longer.md").write_text("text and more")
    os.utime(tmp_path / "longer.md", ns=(times.st_atime_ns, times.st_mtime_ns))
    os.utime(tmp_path / "touched.md", ns=(0, 0))
    (tmp_path / "gone.md").unlink()

    assert fresh_paths(tmp_path, files) == {"same.md"}


def test_a_path_no_system_accepts_is_not_fresh(tmp_path):
    files = [hit(path, 0, 0) for path in ("a\x00b", "x" * 5000)]

    assert fresh_paths(tmp_path, files) == frozenset()


def test_a_decomposed_name_on_disk_is_found_by_its_composed_path(tmp_path):
    decomposed, composed = "cafe\u0301.md", "caf\u00e9.md"
    (tmp_path / decomposed).write_text("text")
    status = (tmp_path / decomposed).stat()

    assert fresh_paths(tmp_path, [hit(composed, status.st_mtime_ns, status.st_size)]) == {composed}
