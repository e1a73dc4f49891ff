"""Which handler answers an event, and which model runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from memory.agent_run.endpoints import BASE_URLS, Endpoint, endpoint_for, off_reason
from memory.agent_run.handler import MAX_HANDLER_BYTES, Handler, resolve
from memory.config import (
    CHAT_ONLY_PROVIDERS,
    NATIVE_PROVIDERS,
    CustomProvider,
    InferenceSettings,
    MemorySettings,
    Settings,
)
from memory.errors import HandlerUnusable, WorkspaceMissing
from memory.template import write_workspace

if TYPE_CHECKING:
    from pathlib import Path

PATH = "skills/memory/save.md"


def handler(root: Path, text: str, path: str = PATH) -> Handler:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    return resolve(root, "skills:memory")


def inference(**keys: str) -> InferenceSettings:
    return InferenceSettings(
        api_keys={name: SecretStr(key) for name, key in keys.items()},
        custom_providers={
            "gate": CustomProvider(
                type="openai-compatible", base_url="http://127.0.0.1:8/v1", api_key=SecretStr("k")
            ),
            "bare": CustomProvider(type="openai-compatible", base_url="http://127.0.0.1:9/v1"),
            "other": CustomProvider(type="soap", base_url="http://127.0.0.1:9"),
        },
    )


def test_the_handler_of_the_template_can_be_run(tmp_path: Path):
    write_workspace(tmp_path)

    found = resolve(tmp_path, "skills:memory")

    assert found.path == PATH
    assert found.tools == ("fs_read", "fs_write", "memory_search")
    assert found.model == ""
    assert found.instructions.startswith("# Save a memory")


@pytest.mark.parametrize(
    "tools",
    [
        "tools: fs_read, fs_list",
        "tools: [fs_read, fs_list]",
        "tools:\n  - fs_read\n  - fs_list",
        "tools: '[\"fs_read\", fs_list,]'",
        "tools: fs_read, fs_list, fs_read",
    ],
)
def test_tools_are_a_list_or_a_line(tmp_path: Path, tools: str):
    assert handler(tmp_path, f"---\n{tools}\n---\nBody.").tools == ("fs_read", "fs_list")


def test_the_model_is_taken_from_the_file_without_its_comment(tmp_path: Path):
    text = "---\r\ntools: fs_read\r\nmodel: gate/org/big-1   # the best\r\n---\r\nBody.\r\n"

    found = handler(tmp_path, text)

    assert (found.model, found.instructions) == ("gate/org/big-1", "Body.")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\ntools: fs_read, shell\n---\nBody.", "unknown tool 'shell'; known are fs_list, fs_"),
        ("---\nmodel: a/b\n---\nBody.", "names no tools"),
        ("Body only.", "names no tools"),
        ("---\ntools: fs_read\n---\n \n", "has no text below"),
        ("---\ntools: fs_read\nmodel: [a, b]\n---\nBody.", "model is not written as provider/mod"),
        ("---\ntools: {a: b}\n---\nBody.", "unknown tool"),
        ("x" * (MAX_HANDLER_BYTES + 1), "more than the limit"),
    ],
)
def test_a_handler_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, text, reason):
    with pytest.raises(HandlerUnusable) as caught:
        handler(tmp_path, text)

    assert str(caught.value).startswith(PATH)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_handler_and_a_missing_workspace_are_told_apart(tmp_path: Path):
    with pytest.raises(HandlerUnusable, match=r"save\.md is missing; `memory init` writes it"):
        resolve(tmp_path, "skills:memory")
    with pytest.raises(WorkspaceMissing):
        resolve(tmp_path / "away", "skills:memory")


def test_a_handler_behind_a_link_is_not_followed(tmp_path: Path):
    (tmp_path / "real.md").write_text("---\ntools: fs_read\n---\nBody.")
    (tmp_path / "skills" / "memory").mkdir(parents=True)
    (tmp_path / PATH).symlink_to(tmp_path / "real.md")

    with pytest.raises(HandlerUnusable, match="symbolic links"):
        resolve(tmp_path, "skills:memory")


@pytest.mark.parametrize("skill", ["memory", "skills:", "skills:../x", "skills:a/b", "mail:memory"])
def test_events_that_the_rule_does_not_cover_are_refused(tmp_path: Path, skill: str):
    with pytest.raises(HandlerUnusable, match="no file handles it"):
        resolve(tmp_path, skill)


def test_every_provider_of_the_configuration_has_an_address():
    assert set(BASE_URLS) == {*NATIVE_PROVIDERS, *CHAT_ONLY_PROVIDERS}
    assert all(url.startswith("https://") for url in BASE_URLS.values())


@pytest.mark.parametrize(
    ("name", "sdk"), [("openai/o", "openai"), ("mistral/m", "mistral"), ("anthropic/c", "openai")]
)
def test_a_native_provider_takes_its_key_and_the_sdk_that_speaks_to_it(name, sdk):
    provider, model = name.split("/")

    found = endpoint_for(name, inference(openai="k1", mistral="k1", anthropic="k1"))

    assert found == Endpoint(provider, model, sdk, BASE_URLS[provider], "k1")
    assert "k1" not in repr(found)


def test_a_custom_provider_is_asked_at_its_address_and_its_model_may_hold_slashes():
    found = endpoint_for("gate/org/big-1", inference())

    assert found == Endpoint("gate", "org/big-1", "openai", "http://127.0.0.1:8/v1", "k")
    assert endpoint_for("bare/m", inference()).api_key != ""


def test_without_a_model_in_the_handler_the_default_is_taken():
    settings = inference(openai="k").model_copy(update={"default_model": "openai/gpt"})

    assert endpoint_for("", settings).model == "gpt"
    assert endpoint_for("gate/m", settings).provider == "gate"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "no model is configured; set inference.defaultModel"),
        ("gpt-5", "'gpt-5' is not written as provider/model"),
        ("openai/", "is not written as provider/model"),
        ("/gpt", "is not written as provider/model"),
        ("deepseek/r", "provider deepseek has no key; set inference.apiKeys.deepseek"),
        ("acme/m", "provider 'acme' of the handler's model is not in inference.customProviders"),
        ("other/m", "inference.customProviders.other: only type openai-compatible"),
        ("grok/m", "environment variable NO_SUCH_KEY is not set"),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused_in_one_line(name: str, reason: str, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)

    with pytest.raises(HandlerUnusable) as caught:
        endpoint_for(name, inference(openai="k", grok="env:NO_SUCH_KEY"))

    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_saved_facts_are_handled_here_once_a_model_may_be_there():
    model = InferenceSettings(default_model="openai/gpt")
    off = MemorySettings(save_handler=False)

    assert off_reason(Settings(inference=model)) is None
    assert off_reason(Settings(inference=inference())) is None
    assert "no model is configured" in str(off_reason(Settings()))
    assert "memory.saveHandler is false" in str(off_reason(Settings(inference=model, memory=off)))
