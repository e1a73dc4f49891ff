"""Does every call of an actor end, whatever became of the one that is called?

An actor that never answers must not keep its caller for ever, and a circle of such callers would be
a deadlock. So each mention of ``handle.method.remote`` stands where its answer has a deadline.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ACTORS = {
    path.name: ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "actors").glob("*.py"))
}
WAITERS = {
    "call": ["loops.py"],
    "latest": ["reporting.py"],
    "_call": ["answers.py", "host.py"],
    "_ask": ["persister.py"],
    "survived": ["worker_calls.py"],
    "_patient": ["model_calls.py"],
}
"""Functions that wait for what they are given and have a deadline, and their modules."""
BOUNDED_BY_CALLER = {("context_provider.py", "_of_pool"): "_vectors"}
"""Functions that are waited for by another one of their module, which has the deadline."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def with_parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def name_of(node: ast.expr) -> str:
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
    return ""


def is_deadline(node: ast.AST) -> bool:
    """Tells whether a block is ``async with asyncio.timeout(...)``."""
    return isinstance(node, ast.AsyncWith) and any(
        ast.unparse(item.context_expr).startswith("asyncio.timeout(") for item in node.items
    )


def names_a_bounded_variable(statement: ast.Assign | ast.For, function: Function) -> bool:
    """Tells whether what is assigned is only ever handed to a function with a deadline.

    Of several names at once the last one is looked at.
    """
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    name, parents = ast.unparse(target).split(", ")[-1].rstrip(")"), with_parents(function)
    uses = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    return bool(uses) and all(
        any(is_bound(each) for each in [use, *above(use, parents)]) for use in uses
    )


def is_bound(node: ast.AST) -> bool:
    is_waiter = isinstance(node, ast.Call) and name_of(node.func) in WAITERS
    return is_waiter or is_deadline(node)


def above(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> list[ast.AST]:
    """Returns what a node stands in, up to its function; a lambda is part of what it stands in."""
    found = []
    while (node := parents.get(node)) and not isinstance(node, Function | ast.Module):
        found.append(node)
    return found


def function_of(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Function | None:
    while node := parents.get(node):
        if isinstance(node, Function):
            return node
    return None


def has_deadline(module: str, node: ast.Attribute, parents: dict[ast.AST, ast.AST]) -> bool:
    around = above(node, parents)
    if any(map(is_bound, around)):
        return True
    function = function_of(node, parents)
    if isinstance(parents[node], ast.Call) and isinstance(around[1], ast.Expr):
        return True  # nobody waits for it
    assigned = next((each for each in around if isinstance(each, ast.Assign | ast.For)), None)
    if assigned is not None and function is not None:
        return names_a_bounded_variable(assigned, function)
    name = function.name if function is not None else ""
    if any(isinstance(each, ast.Return) for each in around) and not any(
        isinstance(each, ast.Await) for each in around
    ):
        return is_only_attempted(name, parents)
    return (module, name) in BOUNDED_BY_CALLER


def is_only_attempted(name: str, parents: dict[ast.AST, ast.AST]) -> bool:
    """Tells whether a function that gives a reference is only used in what has a deadline."""
    uses = [
        node
        for node in parents
        if isinstance(node, ast.Attribute | ast.Name)
        and name_of(node) == name
        and isinstance(node.ctx, ast.Load)
    ]
    return bool(uses) and all(any(map(is_bound, above(use, parents))) for use in uses)


def is_of_an_actor(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Tells a call of a method from ``ray.remote`` and from the making of an actor or a task."""
    if not (isinstance(node, ast.Attribute) and node.attr == "remote"):
        return False
    around = ast.unparse(parents[node]) if node in parents else ""
    return ast.unparse(node) != "ray.remote" and ".options(" not in around


def endless(module: str, tree: ast.Module) -> list[str]:
    """Returns the calls of a module that may never end."""
    parents = with_parents(tree)
    return [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for node in parents
        if is_of_an_actor(node, parents) and not has_deadline(module, node, parents)
    ]


@pytest.mark.parametrize("module", ACTORS)
def test_every_call_of_an_actor_has_a_deadline(module: str):
    assert endless(module, ACTORS[module]) == []


@pytest.mark.parametrize(
    ("source", "num_endless"),
    [
        ("async def f(h): await h.m.remote()", 1),
        ("async def f(h): await answer(h.m.remote())", 1),
        ("async def f(h): return await asyncio.gather(h.m.remote(), h.n.remote())", 2),
        ("async def f(h):\n r = h.m.remote()\n await r", 1),
        ("async def f(h):\n r = h.m.remote\n await call(r, clock=c, deadline_s=1)", 0),
        ("async def f(h):\n async with asyncio.timeout(1):\n  await h.m.remote()", 0),
        ("async def f(h): await call(lambda: h.m.remote(1), clock=c, deadline_s=1)", 0),
        ("def g(h): return h.m.remote()\nasync def f(h): await g(h)", 1),
        ("def g(h): return h.m.remote()\nasync def f(h): await self._call(lambda: g(h))", 0),
        ("async def f(h):\n for n, m in ((1, h.m.remote),):\n  await m()", 1),
        ("async def f(h):\n for n, m in ((1, h.m.remote),):\n  await call(m, n)", 0),
        ("def f(h): h.m.remote()", 0),
        ("def f(h): ray.get(h.m.remote())", 1),
        ("def f(shell): return ray.remote(num_cpus=0)(shell)", 0),
    ],
)
def test_a_call_without_a_deadline_is_found_however_it_is_written(source: str, num_endless: int):
    assert len(endless("any.py", ast.parse(source))) == num_endless


def test_the_calls_that_are_looked_at_are_there():
    mentions = [
        node
        for parents in map(with_parents, ACTORS.values())
        for node in parents
        if is_of_an_actor(node, parents)
    ]

    assert len(mentions) > 50


@pytest.mark.parametrize(
    ("name", "module"), [(name, module) for name, places in WAITERS.items() for module in places]
)
def test_whoever_waits_has_a_deadline_itself(name: str, module: str):
    texts = [
        ast.unparse(node)
        for node in ast.walk(ACTORS[module])
        if isinstance(node, Function) and node.name == name
    ]

    assert texts
    # That of ``_patient`` is in what it hands the request to.
    deadlines = ("deadline_s=", "asyncio.timeout(", "self.workers.survived(")
    assert [text for text in texts if not any(each in text for each in deadlines)] == []


@pytest.mark.parametrize(("where", "caller"), BOUNDED_BY_CALLER.items())
def test_a_call_that_another_function_bounds_is_made_by_that_one_alone(where, caller):
    module, name = where
    tree = ACTORS[module]
    parents = with_parents(tree)
    uses = [node for node in parents if isinstance(node, ast.Attribute) and name_of(node) == name]
    (bounding,) = (
        function
        for function in ast.walk(tree)
        if isinstance(function, Function) and function.name == caller
    )

    assert uses
    for use in uses:
        call = parents[use]
        assert isinstance(call, ast.Call)
        assert name_of(call.func) == caller
    blocks = [node for node in ast.walk(bounding) if is_deadline(node)]
    handed_over = bounding.args.args[-1].arg
    awaited = [node for node in ast.walk(bounding) if isinstance(node, ast.Await)]
    assert [
        any(node in ast.walk(block) for block in blocks)
        for node in awaited
        if handed_over in ast.unparse(node)
    ] == [True]


@pytest.mark.parametrize("name", ["ray.get", "ray.wait"])
def test_no_actor_blocks_its_thread_for_another_one(name: str):
    uses = [
        f"{module}:{node.lineno}"
        for module, tree in ACTORS.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == name
    ]

    assert uses == []
