"""Does the wheel hold the product and nothing else, and does it run where it is installed?"""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
UNLOCKED_GROUPS = {"benchmark"}

pytestmark = pytest.mark.slow


def files_below(folder: Path) -> Iterator[str]:
    """Yields the files that belong to the product, relative to the folder."""
    for path in folder.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix()


def pins_of(lock: str) -> set[tuple[str, str]]:
    text = (ROOT / lock).read_text(encoding="utf-8")
    return set(re.findall(r"^(\S+)==(\S+)", text, re.MULTILINE))


def requirements_of(*, development: bool) -> list[Requirement]:
    project, groups = PROJECT["project"], PROJECT["dependency-groups"]
    lists = [project["dependencies"], groups["build"]]
    if development:
        locked = (lines for name, lines in groups.items() if name not in UNLOCKED_GROUPS)
        lists += [*project["optional-dependencies"].values(), *locked]
    return [Requirement(line) for lines in lists for line in lines if isinstance(line, str)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


class Installed(NamedTuple):
    """A fresh environment with the wheel in it."""

    bin: Path
    site_packages: Path
    cwd: Path
    """A folder outside the checkout."""

    def run(self, *command: str | Path) -> str:
        """Returns what a command of the environment prints, started with none of our variables."""
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "PATH") if name in os.environ}
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.cwd,
            env=kept,
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Installs the wheel alone; the requirements come from the environment of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=True)
    scheme = sysconfig.get_paths("venv", vars={"base": str(folder / "venv")})
    fresh = Installed(Path(scheme["scripts"]), Path(scheme["purelib"]), folder)
    # The path file of an editable install is not followed from here, so the checkout stays unseen.
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (fresh.site_packages / "requirements.pth").write_text("\n".join(sorted(ours)))
    fresh.run("python", "-m", "pip", "install", "--no-index", "--no-deps", wheel)
    return fresh


@pytest.mark.parametrize(
    ("lock", "development"), [("constraints.txt", False), ("constraints-dev.txt", True)]
)
def test_the_lock_meets_every_requirement_of_the_project(lock, development):
    pins = pins_of(lock)

    unmet = [
        str(requirement)
        for requirement in requirements_of(development=development)
        if not any(
            name == canonicalize_name(requirement.name) and version in requirement.specifier
            for name, version in pins
        )
    ]

    assert unmet == []


def test_what_is_locked_for_development_includes_what_is_locked_for_use():
    assert pins_of("constraints.txt") <= pins_of("constraints-dev.txt")


def test_the_wheel_holds_the_two_packages_and_nothing_else(names):
    top_level = {name.partition("/")[0] for name in names}

    (metadata,) = (name for name in top_level if name.endswith(".dist-info"))

    assert top_level == {"actors", "memory", metadata}


@pytest.mark.parametrize("package", ["actors", "memory"])
def test_the_wheel_holds_every_file_of_a_package(names, package):
    expected = {f"{package}/{file}" for file in files_below(ROOT / package)}

    assert expected <= names
    assert f"{package}/py.typed" in expected


def test_the_wheel_adds_only_the_template_and_the_configuration_of_ray(names):
    added = {"actors/ray_config.yaml"}
    added |= {f"memory/_template/{file}" for file in files_below(ROOT / "workspace_template")}

    in_packages = {name for name in names if ".dist-info/" not in name}
    in_checkout = {
        f"{package}/{file}"
        for package in ("actors", "memory")
        for file in files_below(ROOT / package)
    }

    assert in_packages - in_checkout == added


@pytest.mark.parametrize("folder", ["people", "places", "threads"])
def test_the_template_in_the_wheel_keeps_its_empty_folders(names, folder):
    assert f"memory/_template/wiki/{folder}/.gitkeep" in names


def test_the_metadata_names_the_licence_and_carries_its_texts(wheel, names):
    (path,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    with ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(path))

    folder = path.removesuffix("METADATA")

    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE", "NOTICE"]
    assert {f"{folder}licenses/LICENSE", f"{folder}licenses/NOTICE"} <= names


def test_the_installed_command_shows_its_help(installed):
    assert "usage: memory" in installed.run("memory", "--help").lower()


def test_a_daemon_finds_the_plugin_by_its_entry_point(installed):
    program = (
        "from importlib.metadata import entry_points;"
        "(found,) = entry_points(group='agent_daemon.plugins');"
        "print(found.name, found.load().__module__)"
    )

    assert installed.run("python", "-c", program) == "memory memory.plugin\n"


def test_a_distribution_that_holds_a_package_of_ours_is_named(installed):
    program = (
        "from memory.collisions import check_owners, check_place\n"
        "from memory.errors import PackagingError\n"
        "check_place()\n"
        "try: check_owners()\n"
        "except PackagingError as error: print(error)\n"
    )
    other = installed.site_packages / "other_memory-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-memory\nVersion: 1.0\n")
    (other / "top_level.txt").write_text("memory\n")
    told = installed.run("python", "-c", program)
    shutil.rmtree(other)

    assert "the package memory is also that of other-memory" in told
    assert installed.run("python", "-c", program) == ""


@pytest.mark.parametrize("package", ["actors", "memory"])
def test_an_installed_package_is_the_one_from_the_wheel(installed, package):
    shown = installed.run("python", "-c", f"import {package}; print({package}.__file__)")

    assert Path(shown.strip()) == installed.site_packages / package / "__init__.py"


def test_the_installed_command_makes_a_workspace_from_the_template(installed):
    installed.run("memory", "init", "--workspace", "workspace")

    made = set(files_below(installed.cwd / "workspace"))
    folders = {path.name for path in (installed.cwd / "workspace" / "wiki").iterdir()}

    assert {"skills/memory/SKILL.md", "skills/memory/save.md"} <= made
    assert folders == {"people", "places", "threads"}
