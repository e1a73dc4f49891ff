"""Are ``memory`` and ``actors`` really ours, or does another distribution shadow them?

Both names are common. Of two distributions that hold the same package pip keeps whichever was
installed last, file by file, and a ``memory.py`` beside a program hides ours from it.
"""

from __future__ import annotations

import importlib.util
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from memory.errors import PackagingError

if TYPE_CHECKING:
    from collections.abc import Mapping

DISTRIBUTION = "agent-memory-actors"
PACKAGES = ("actors", "memory")
_REMEDY = "install agent-memory-actors into a virtual environment of its own"


def check_place() -> None:
    """Makes sure that both packages come from the folder this module lies in; takes no time.

    Raises:
        PackagingError: one of them is another one's.
    """
    ours = Path(__file__).resolve().parents[1]
    for package in PACKAGES:
        found = _origin(package)
        if found is None or found.resolve() != ours / package / "__init__.py":
            raise PackagingError(
                f"the package {package} at {found or 'no file'} is not that of {DISTRIBUTION}"
                f"{_owners_line(package, _owners())}; {_REMEDY}"
            )


def check_owners(owners: Mapping[str, list[str]] | None = None) -> None:
    """Makes sure that no other distribution holds one of the packages; reads all that is installed.

    Args:
        owners: Distributions by package, as ``packages_distributions`` returns them; None asks.

    Raises:
        PackagingError: one does.
    """
    owners = _owners() if owners is None else owners
    for package in PACKAGES:
        # An editable install owns no files; there the place says everything.
        is_ours = DISTRIBUTION in owners.get(package, ())
        if is_ours and (others := _others(package, owners)):
            raise PackagingError(
                f"the package {package} is also that of {', '.join(others)}, which may have"
                f" overwritten ours; {_REMEDY}"
            )


def _origin(package: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec and spec.origin else None


def _owners() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _others(package: str, owners: Mapping[str, list[str]]) -> list[str]:
    return sorted({name for name in owners.get(package, ()) if name != DISTRIBUTION})


def _owners_line(package: str, owners: Mapping[str, list[str]]) -> str:
    others = _others(package, owners)
    return f" but of {', '.join(others)}" if others else ""
