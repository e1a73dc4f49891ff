"""Are the packages of the model there, and does it answer?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from memory.doctor.finding import note, ok, problem
from memory.doctor.installed import is_installed
from memory.embedding_config import configured_model
from memory.errors import ConfigError, EmbeddingError
from memory.providers.access import GOOGLE, MISTRAL
from memory.providers.factory import open_embedder
from memory.providers.local import LOCAL, LOCAL_MODELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memory.config import Settings
    from memory.doctor.finding import Finding
    from memory.providers.access import ProviderAccess
    from memory.providers.base import Embedder, ModelInfo

PROBE_S = 5.0
PROBE_TEXT = "memory"
_PACKAGES = "model packages"
_PROBE = "model"
_REINSTALL = "pip install --force-reinstall agent-memory-actors"


def model_findings(
    settings: Settings,
    *,
    is_offline: bool,
    opened: Callable[[ModelInfo, ProviderAccess | None], Embedder] = open_embedder,
    deadline_s: float = PROBE_S,
) -> Iterator[Finding]:
    """Yields whether the model can be loaded, and whether it embeds one short text in time.

    Args:
        settings: With a model that is configured.
        is_offline: Whether the model must not be asked.
        opened: Loads a model.
        deadline_s: Longest time for both, seconds.
    """
    try:
        info, access = configured_model(settings)
    except ConfigError:
        return  # said already
    missing = [name for name in _needed(info, access) if not is_installed(name)]
    if missing:
        yield problem(_PACKAGES, f"missing: {', '.join(missing)}", _remedy(info, access))
        return
    yield ok(_PACKAGES, ", ".join(_needed(info, access)))
    if is_offline:
        yield note(_PROBE, "not asked (--offline)")
        return
    yield _probed(info, access, opened, deadline_s)


def _needed(info: ModelInfo, access: ProviderAccess | None) -> tuple[str, ...]:
    if info.provider == LOCAL or access is None:
        return LOCAL_MODELS[info.model].packages
    return ({GOOGLE: "google.genai", MISTRAL: "mistralai"}.get(access.protocol, "openai"),)


def _remedy(info: ModelInfo, access: ProviderAccess | None) -> str:
    if info.provider == LOCAL or access is None:
        return LOCAL_MODELS[info.model].remedy
    is_google = access.protocol == GOOGLE
    return "pip install 'agent-memory-actors[google]'" if is_google else _REINSTALL


def _probed(
    info: ModelInfo,
    access: ProviderAccess | None,
    opened: Callable[[ModelInfo, ProviderAccess | None], Embedder],
    deadline_s: float,
) -> Finding:
    answers: list[int | Exception] = []

    def probe() -> None:
        try:
            answers.append(len(opened(info, access).embed_query(PROBE_TEXT)))
        except Exception as error:  # noqa: BLE001 - what is wrong is what is asked
            answers.append(error)

    # Nothing else ends a library that does not return; the process does not wait for this thread.
    asking = threading.Thread(target=probe, daemon=True)
    asking.start()
    asking.join(deadline_s)
    cost = "" if access is None else " (one call to the provider)"
    match answers:
        case []:
            detail = f"no vector of a short text within {deadline_s:g} s{cost}"
            return problem(_PROBE, detail, "try again when the machine or the network is less busy")
        case [int(dim)] if not info.dim or dim == info.dim:
            return ok(_PROBE, f"embeds, dimension {dim}{cost}")
        case [int(dim)]:
            detail = f"answers with dimension {dim} instead of {info.dim}{cost}"
            return problem(_PROBE, detail, "check memory.embeddings.model")
        case [ConfigError() | EmbeddingError() as error]:
            return problem(_PROBE, f"{error}{cost}", "see Embedding providers in README")
    return problem(_PROBE, f"{type(answers[0]).__name__}{cost}", _remedy(info, access))
