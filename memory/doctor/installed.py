"""Is a package there, without importing it?"""

from __future__ import annotations

from importlib.util import find_spec


def is_installed(name: str) -> bool:
    """Tells whether a module could be imported; only packages around it are."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of a package around it
        return False
