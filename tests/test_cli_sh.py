"""Does cli.sh install once, again only when the lock changes, and never leave half an environment?

The real script runs on a made-up checkout; a stand-in for uv, which the script prefers to pip,
notes what it is asked to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Called as: uv pip install --compile-bytecode --python <environment>/bin/python ...
FAKE_UV = """\
#!/usr/bin/env bash
set -eu
[ ! -e "$FAKE_UV/fail" ] || exit 1
echo "$@" >>"$FAKE_UV/log"
product=$(dirname "$5")/memory
cat >"$product" <<'EOT'
#!/bin/sh
echo "$MEMORY_HOME" "$RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER" "$PWD" "$@"
EOT
chmod +x "$product"
"""


class Checkout:
    """A checkout that holds nothing but what cli.sh reads."""

    def __init__(self, root: Path, uv: Path) -> None:
        self.root = root
        self.uv = uv
        root.mkdir(parents=True)
        shutil.copy(ROOT / "cli.sh", root)
        for name in ("constraints.txt", "constraints-dev.txt", "pyproject.toml"):
            (root / name).write_text(f"# {name}\n")
        uv.mkdir()
        (uv / "uv").write_text(FAKE_UV)
        (uv / "uv").chmod(0o755)

    def start(self, *arguments: str, script: str | Path = "", cwd: str | Path = "", **env: str):
        path = f"{self.uv}{os.pathsep}{os.environ['PATH']}"
        env = {"PATH": path, "FAKE_UV": str(self.uv), "PYTHON": sys.executable} | env
        return subprocess.Popen(
            [script or self.root / "cli.sh", *arguments],
            cwd=cwd or self.root,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **options) -> tuple[int, str, str]:
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=30)
        return process.returncode, out.strip(), err

    def installed(self) -> list[str]:
        """Returns the locks that were installed, oldest first."""
        log = self.uv / "log"
        words = log.read_text().split() if log.exists() else []
        return [Path(word).name for word in words if word.endswith(".txt")]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "a folder" / "checkout", tmp_path / "bin")


def test_the_first_call_installs_the_runtime_lock_and_later_calls_nothing(checkout):
    first = checkout.run("memory", "show")
    second = checkout.run("memory", "show")

    assert first[0] == second[0] == 0
    assert checkout.installed() == ["constraints.txt"]
    assert second[2] == ""


def test_the_product_gets_its_arguments_its_home_and_the_callers_folder(checkout, tmp_path):
    status, out, _ = checkout.run("memory", "search", "two words", cwd=tmp_path)

    assert (status, out) == (0, f"{checkout.root} 0 {tmp_path} search two words")


def test_a_home_that_is_set_already_is_kept(checkout):
    _, out, _ = checkout.run("memory", MEMORY_HOME="/elsewhere")

    assert out.startswith("/elsewhere ")


def test_a_symbolic_link_to_the_script_leads_to_its_checkout(checkout, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "relative").symlink_to("../a folder/checkout/cli.sh")
    (tmp_path / "link").symlink_to(tmp_path / "links" / "relative")

    _, out, _ = checkout.run("memory", script=tmp_path / "link", cwd=tmp_path)

    assert out.startswith(f"{checkout.root} ")


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_a_change_of_the_lock_or_the_project_installs_once_more(checkout, name):
    checkout.run("memory")
    (checkout.root / name).write_text("# changed\n")

    checkout.run("memory")
    checkout.run("memory")

    assert checkout.installed() == ["constraints.txt", "constraints.txt"]


def test_the_tests_install_the_larger_lock_which_is_enough_for_the_product(checkout):
    checkout.run("memory")
    checkout.run("lint")
    checkout.run("memory")

    assert checkout.installed() == ["constraints.txt", "constraints-dev.txt"]


def test_an_installation_that_failed_is_repeated_in_a_new_environment(checkout):
    checkout.run("memory")
    (checkout.root / ".venv" / "half a package").touch()
    (checkout.root / "constraints.txt").write_text("# changed\n")
    (checkout.uv / "fail").touch()

    failed = checkout.run("memory")
    (checkout.uv / "fail").unlink()
    repeated = checkout.run("memory")

    assert (failed[0], failed[1]) == (1, "")
    assert repeated[0] == 0
    assert not (checkout.root / ".venv" / "half a package").exists()
    assert checkout.installed() == ["constraints.txt", "constraints.txt"]


def test_a_moved_checkout_gets_a_new_environment(checkout):
    checkout.run("memory")
    (checkout.root / ".venv" / "old").touch()
    checkout.root = checkout.root.rename(checkout.root.with_name("moved"))

    status, out, _ = checkout.run("memory")

    assert status == 0
    assert out.startswith(f"{checkout.root} ")
    assert not (checkout.root / ".venv" / "old").exists()


def test_of_two_first_calls_at_once_only_one_installs(checkout):
    calls = [checkout.start("memory"), checkout.start("memory")]

    outputs = [call.communicate(timeout=30) for call in calls]

    assert [call.returncode for call in calls] == [0, 0], outputs
    assert checkout.installed() == ["constraints.txt"]


def test_an_unsuitable_python_is_refused_by_name(checkout, tmp_path):
    old = tmp_path / "python3.6"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)

    status, _, err = checkout.run("memory", PYTHON=str(old))

    assert status == 1
    assert err == f"cli.sh: PYTHON={old} is not a Python 3.11, 3.12 or 3.13\n"
    assert not (checkout.root / ".venv").exists()


@pytest.mark.parametrize("arguments", [(), ("start",), ("--workspace", "x")])
def test_an_unknown_command_shows_the_usage_and_installs_nothing(checkout, arguments):
    status, out, err = checkout.run(*arguments)

    assert (status, out) == (2, "")
    assert err.startswith("usage: ./cli.sh memory")
    assert not (checkout.root / ".venv").exists()
