"""Does the selection of tests pass where Ray is not installed?

A pytest plugin (``-p tests.no_ray``): Ray cannot be imported, and the run fails if any of it is
loaded at the end nevertheless.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _NoRay(MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if _is_ray(fullname):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def _is_ray(module: str) -> bool:
    return module == "ray" or module.startswith("ray.")


def _loaded() -> list[str]:
    return sorted(filter(_is_ray, sys.modules))


sys.meta_path.insert(0, _NoRay())


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _loaded():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if modules := _loaded():
        terminalreporter.write_line(f"Ray is loaded: {', '.join(modules[:5])}", red=True)
