"""Whatever process dies, the index ends equal to a fresh build (SPEC D4, D6)."""

import pytest

from tests.cluster.running import Running

pytestmark = pytest.mark.cluster

KINDS = (
    "Watcher",
    "Chunker",
    "EmbedderPool",
    "Embedder-0",
    "IndexKeeper",
    "Persister",
    "ContextProvider",
    "EventEmitter",
)


def test_every_kind_of_actor_may_be_killed_while_files_change(running: Running) -> None:
    """FAULTS 66: edit, kill, edit again, converge; for each kind in turn."""
    for name in KINDS:
        running.write(f"wiki/before-{name}.md", f"# Before\n\nWritten before {name} died.\n")
        running.kill(name)
        running.write(f"wiki/after-{name}.md", f"# After\n\nWritten after {name} died.\n")
        (running.locations.workspace / f"wiki/before-{name}.md").rename(
            running.locations.workspace / f"wiki/moved-{name}.md"
        )
        running.wait_until_equal()

    running.kill("EmbedderPool")  # again: a second restart needs its arguments once more
    running.write("wiki/last.md", "# Last\n\nWritten at the end.\n")
    running.wait_until_equal()
    section = running.get(running.system.provider.section.remote("what was written after"))
    assert section.degraded == ""
    assert section.rows
