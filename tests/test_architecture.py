"""Does the code keep the rules of its layout that no linter knows?"""

from __future__ import annotations

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
MODULES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for package in ("actors", "memory")
    for path in sorted((ROOT / package).rglob("*.py"))
}
MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 60

# Who alone may mention a name: modules, or folders of them.
CLOCK = "memory/clock.py"
CLUSTER = "actors/cluster.py"
DRIVERS = ("actors/daemon.py", "actors/system.py")
ALLOWED = {
    "ray.get": DRIVERS,
    "ray.init": (CLUSTER,),
    "ray.kill": DRIVERS,
    "ray.remote": ("actors/building.py", "actors/system.py"),
    "ray.shutdown": (CLUSTER,),
    "ray.wait": DRIVERS,
    "asyncio.sleep": (CLOCK,),
    "datetime.datetime.now": (CLOCK,),
    "datetime.datetime.today": (CLOCK,),
    "datetime.datetime.utcnow": (CLOCK,),
    "datetime.date.today": (CLOCK,),
    "time.monotonic": (CLOCK, "memory/commands/check.py"),
    "time.perf_counter": (CLOCK,),
    "time.sleep": (CLOCK, "memory/commands/check.py", "memory/commands/stop.py"),
    "time.time": (CLOCK, "memory/cli.py"),  # importing the clock would cost the CLI asyncio
    "time.time_ns": (CLOCK,),
    "os.environ": (
        "actors/daemon.py",
        "actors/system.py",
        CLUSTER,
        "memory/cli.py",
        "memory/commands/",
        "memory/config.py",
        "memory/disk_answers.py",  # a process of its own
        "memory/locations.py",
    ),
    "os.getenv": (),
    # What reads a pickle runs what it says; one takes tuples and numbers alone, the other one two
    # classes of Whoosh besides.
    "pickle.Unpickler": ("memory/posting_reading.py", "memory/segments.py"),
    # With a loader that makes strings only.
    "yaml.load": ("memory/front_matter.py",),
}
CODE_FROM_DATA = frozenset({"cloudpickle", "dill", "joblib", "marshal", "shelve"})
"""Libraries that run code which data brings along."""
RUNNING_DATA = frozenset(
    {
        *("pickle.load", "pickle.loads", "yaml.full_load", "yaml.unsafe_load", "yaml.Loader"),
        *("yaml.FullLoader", "yaml.UnsafeLoader", "yaml.CLoader", "numpy.lib.format.read_array"),
    }
)
BUILTINS_THAT_RUN = frozenset({"eval", "exec", "compile", "__import__"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Maps each name that an import of the module binds to what it stands for."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                names[bound] = alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted_name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(value, attribute):
            before = dotted_name(value)
            return before and f"{before}.{attribute}"
    return None


def used_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yields the full name and the line of everything imported that the module mentions."""
    imported = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and (name := dotted_name(node)):
            head, dot, tail = name.partition(".")
            if head in imported:
                yield f"{imported[head]}{dot}{tail}", node.lineno


def without_type_checking(tree: ast.Module) -> ast.Module:
    """Returns the top level of a module as it is at run time."""
    body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and dotted_name(node.test) == "TYPE_CHECKING")
    ]
    return ast.Module(body, type_ignores=[])


USED = {path: tuple(used_names(tree)) for path, tree in MODULES.items()}
"""What each module mentions of what it imports, with lines."""


def functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def public_definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield f"{prefix}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body, f"{prefix}{node.name}.")


@pytest.mark.parametrize(
    ("source", "used"),
    [
        ("import time\ntime.time()", "time.time"),
        ("import time as t\nclock = t.time", "time.time"),
        ("from time import time as now\nnow()", "time.time"),
        ("from datetime import datetime\ndatetime.now(tz)", "datetime.datetime.now"),
        ("def f():\n    import os\n    return os.environ['HOME']", "os.environ"),
    ],
)
def test_a_use_is_found_however_it_was_imported(source, used):
    assert used in [name for name, _ in used_names(ast.parse(source))]


def test_a_use_of_a_local_name_is_not_taken_for_a_module():
    assert list(used_names(ast.parse("def f(time):\n    return time.time()"))) == []


@pytest.mark.parametrize("name", ALLOWED)
def test_a_restricted_name_is_used_only_where_it_is_allowed(name):
    uses = [
        f"{path}:{line}"
        for path, names in USED.items()
        if not path.startswith(ALLOWED[name])
        for used, line in names
        if used == name
    ]

    assert uses == []


def test_every_library_that_is_imported_is_a_declared_requirement():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    requirements = [*project["dependencies"], *(line for extra in extras for line in extra)]
    declared = {canonicalize_name(Requirement(line).name) for line in requirements}

    imported = {
        name.partition(".")[0]
        for tree in MODULES.values()
        for name in imported_names(without_type_checking(tree)).values()
    }
    libraries = imported - sys.stdlib_module_names - {"actors", "memory"}
    owners = packages_distributions()
    undeclared = {
        library
        for library in libraries
        if declared.isdisjoint(map(canonicalize_name, owners.get(library, ())))
    }

    assert libraries
    assert undeclared == set()


def test_no_module_has_more_than_500_lines():
    sizes = {path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in MODULES}

    assert {path: size for path, size in sizes.items() if size > MAX_MODULE_LINES} == {}


def test_no_function_has_more_than_60_lines():
    sizes = {
        f"{path}:{function.name}": function.end_lineno - function.lineno + 1
        for path, tree in MODULES.items()
        for function in functions(tree)
    }

    assert {name: size for name, size in sizes.items() if size > MAX_FUNCTION_LINES} == {}


def test_no_module_is_named_like_one_of_the_standard_library():
    named_alike = [path for path in MODULES if Path(path).stem in sys.stdlib_module_names]

    assert named_alike == []


def test_every_public_name_has_a_docstring():
    bare = [
        f"{path}:{name}"
        for path, tree in MODULES.items()
        for name, node in [("", tree), *public_definitions(tree.body)]
        if not ast.get_docstring(node)
    ]

    assert bare == []


def test_an_init_module_only_imports():
    allowed = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Expr)
    busy = [
        path
        for path, tree in MODULES.items()
        if path.endswith("__init__.py") and not all(isinstance(node, allowed) for node in tree.body)
    ]

    assert busy == []


def test_nothing_reads_data_that_may_run_code():
    """FAULTS 80; of Ray's own messages between its processes SECURITY.md speaks."""
    found = [
        f"{path}: {name}"
        for path, names in USED.items()
        for name, _line in names
        if name in RUNNING_DATA or name.partition(".")[0] in CODE_FROM_DATA
    ]
    found += [
        f"{path}:{node.lineno}"
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Call) and dotted_name(node.func) in BUILTINS_THAT_RUN)
        or (isinstance(node, ast.keyword) and node.arg == "allow_pickle")
    ]

    assert found == []


def test_what_a_ray_process_runs_at_its_start_is_a_constant_of_ours():
    """FAULTS 80: a ``runtime_env`` can name code to fetch and commands to run."""
    dictionaries = [
        (path, ast.unparse(value))
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "runtime_env"
    ]
    mentions = [
        path
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if "runtime_env"
        in (getattr(node, "value", None), getattr(node, "arg", None), getattr(node, "id", None))
    ]

    assert dictionaries == [(CLUSTER, "{'worker_process_setup_hook': LOGGING_HOOK}")]
    assert mentions == [CLUSTER]
    assert 'LOGGING_HOOK = "actors.logs.configure"\n' in (ROOT / CLUSTER).read_text()
