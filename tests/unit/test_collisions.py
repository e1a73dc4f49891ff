"""Another distribution in the place of ours (DESIGN 5.8)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memory.collisions import DISTRIBUTION, check_owners, check_place
from memory.errors import PackagingError

ROOT = Path(__file__).parents[2]


def test_our_own_packages_are_accepted():
    check_place()


@pytest.mark.parametrize(
    "owners",
    [
        {},  # an editable install
        {"memory": [DISTRIBUTION], "actors": [DISTRIBUTION]},
        {"memory": ["somebody"]},  # it is installed, but ours comes first
    ],
)
def test_packages_with_one_owner_are_accepted(owners):
    check_owners(owners)


@pytest.mark.parametrize("package", ["actors", "memory"])
def test_a_second_owner_is_named(package):
    owners = {package: ["other-dist", DISTRIBUTION]}

    with pytest.raises(PackagingError, match=f"{package} is also that of other-dist"):
        check_owners(owners)


def test_a_package_that_is_found_elsewhere_is_named(tmp_path):
    (tmp_path / "actors.py").touch()
    program = "import memory.collisions as c; c.check_place()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )

    last = done.stderr.splitlines()[-1]
    assert f"PackagingError: the package actors at {tmp_path}/actors.py is not that of" in last
    assert "a virtual environment of its own" in last
