from pathlib import Path

from memory.locations import find_config, find_data, find_workspace


def test_the_configuration_is_the_option_else_in_the_home_else_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert find_config("x/my.yml", home="/home") == tmp_path / "x" / "my.yml"
    assert find_config(None, home="/home") == Path("/home/config.yml")
    assert find_config(None, home=None) == tmp_path / "config.yml"


def test_data_and_workspace_lie_beside_the_configuration():
    config = Path("/d/config.yml")

    assert find_data(None, config=config) == Path("/d/data/memory")
    assert find_workspace(None, config=config, configured=None) == Path("/d/data/workspace")


def test_options_are_relative_to_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = Path("/d/config.yml")

    assert find_data("idx", config=config) == tmp_path / "idx"
    assert find_workspace("ws", config=config, configured="other") == tmp_path / "ws"


def test_a_configured_workspace_is_relative_to_the_configuration(monkeypatch):
    monkeypatch.setenv("HOME", "/home/u")
    config = Path("/d/config.yml")

    assert find_workspace(None, config=config, configured="notes") == Path("/d/notes")
    assert find_workspace(None, config=config, configured="/n") == Path("/n")
    assert find_workspace(None, config=config, configured="~/n") == Path("/home/u/n")
