"""A private Ray is open to its owner alone, and does not fill the disk."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from actors.cluster import TOKEN, check_dashboard, close_token, remove_old_sessions
from actors.ray_config import DashboardOptions, RayConfig
from memory.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

OPEN = RayConfig(dashboard=DashboardOptions(enabled=True))
SESSION_BYTES = 10_000


@pytest.fixture(autouse=True)
def default_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)


@pytest.mark.parametrize("version", ["2.9.3", "2.51.1", "1.13.0"])
def test_a_ray_that_cannot_ask_for_a_token_gets_no_dashboard(version: str):
    """FAULTS 78."""
    with pytest.raises(ConfigError, match=rf"Ray {version} cannot ask .* install Ray 2\.52"):
        check_dashboard(OPEN, version)
    check_dashboard(RayConfig(), version)


@pytest.mark.parametrize("version", ["2.52.0", "2.60.0", "2.100.0rc1", "3.0.0.dev0"])
def test_a_ray_that_asks_for_a_token_may_have_one(version: str):
    check_dashboard(OPEN, version)


def test_a_dashboard_without_a_token_is_refused(monkeypatch: pytest.MonkeyPatch):
    """FAULTS 76: whoever reaches it can run commands."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")

    with pytest.raises(ConfigError, match=r"RAY_AUTH_MODE=disabled .* unset that variable"):
        check_dashboard(OPEN, "2.60.0")
    check_dashboard(RayConfig(), "2.60.0")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o600, 0o400])
def test_a_token_that_others_could_read_is_closed(tmp_path: Path, mode: int):
    """FAULTS 77: Ray writes it with 0644 under the usual umask."""
    token = tmp_path / TOKEN
    token.parent.mkdir()
    token.write_text("secret")
    token.chmod(mode)
    close_token(tmp_path)

    assert stat.S_IMODE(token.stat().st_mode) == (mode if mode in {0o600, 0o400} else 0o600)
    assert token.read_text() == "secret"


def test_a_token_that_is_not_there_is_not_made(tmp_path: Path):
    close_token(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_fifty_starts_leave_the_logs_of_one(tmp_path: Path):
    """FAULTS 79: each start removes what the ones before it left."""
    for number in range(50):
        remove_old_sessions(tmp_path)
        session = tmp_path / f"session_2026-12-03_10-00-{number:02}_1_{number}"
        (session / "logs").mkdir(parents=True)
        (session / "logs/raylet.out").write_bytes(b"x" * SESSION_BYTES)
        (tmp_path / "session_latest").symlink_to(session)

    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in files) == SESSION_BYTES
