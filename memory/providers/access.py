"""Where is a provider reached, and with which key?

What a configuration comes down to before a model is opened. It travels to the processes that embed,
so it can be pickled; its representation holds no key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import SecretStr

OPENAI = "openai"
GOOGLE = "google"
MISTRAL = "mistral"
OPENAI_COMPATIBLE = "openai-compatible"


@dataclass(frozen=True, slots=True)
class ProviderAccess:
    """How to reach a provider behind a network."""

    protocol: str
    """One of the four names of this module."""
    base_url: str = ""
    """Without a slash at the end; empty for the provider's own address."""
    api_key: SecretStr | None = None

    @property
    def key(self) -> str:
        """The key itself, empty if there is none; not for messages."""
        return self.api_key.get_secret_value() if self.api_key else ""
