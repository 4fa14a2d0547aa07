"""Which modules are mutated and which test files should notice, both read from what is there: no path is named here.

The modules are those of the contract "Pure packages know no Django and no table". A test file belongs to what it
imports, itself or through helpers beside it, so that files may move.
"""

from __future__ import annotations

import ast
import tomllib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypedDict

CONTRACT = "Pure packages know no Django and no table"
PRODUCT = ("contrib", "evaluation", "review")
HELPERS = ("tests", "tools")
MOST_FILES = 25  # of the tests that are not near: those that are further away notice little
MOST_IMPURE_FILES = 6  # they start a database each time


class Mutant(TypedDict):
    """A module's source with one place changed."""

    name: str
    package: str
    module: str
    path: str
    diff: str
    source: str


def dotted(path: Path) -> str:
    """The name under which a file is imported."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def package_of(module: str) -> str:
    """The package by which mutants are drawn and counted: ``evaluation.metrics`` of ``evaluation.metrics.matching``,
    the app itself for a module beside its packages."""
    app, first, *_ = [*module.split("."), ""]
    return f"{app}.{first}" if first and Path(app, first).is_dir() else app


@dataclass(frozen=True)
class House:
    """The modules of product and tests with what each of them imports."""

    files: dict[str, Path] = field(
        default_factory=lambda: {
            dotted(path): path for top in (*PRODUCT, *HELPERS) for path in sorted(Path(top).rglob("*.py"))
        }
    )

    @cached_property
    def imports(self) -> dict[str, frozenset[str]]:
        """Of each module, which other ones it imports."""
        return {name: frozenset(self._imported(path)) - {name} for name, path in self.files.items()}

    @cached_property
    def pure(self) -> list[str]:
        """The modules of the contract, in order of name."""
        contracts = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
        (roots,) = [one["source_modules"] for one in contracts["contracts"] if one["name"] == CONTRACT]
        return sorted(name for name in self.files if any(f"{name}.".startswith(f"{root}.") for root in roots))

    @cached_property
    def tests(self) -> dict[str, frozenset[str]]:
        """Of each test file, the product's modules it imports, itself or through helpers."""
        found = {}
        for name, path in self.files.items():
            if "tests" in path.parts and path.name.startswith("test_"):
                used, waiting = {name}, [name]
                while waiting:
                    new = {one for one in self.imports[waiting.pop()] if one.split(".")[0] in HELPERS} - used
                    used |= new
                    waiting += new
                found[str(path)] = frozenset().union(*(self.imports[one] for one in used)) - used
        return found

    def near(self, module: str) -> list[str]:
        """The test files that import nothing but pure modules and reach this one over the fewest imports within its
        package: the module itself where a test imports it, else what is made of it; in the order of ``wide``."""
        distances = {path: far for path, far in self._distances(module).items() if self._is_pure(path)}
        nearest = min(distances.values(), default=0)
        return self._in_order(module, {path: far for path, far in distances.items() if far == nearest})

    def wide(self, module: str) -> list[str]:
        """Other test files that reach the module, be it over all of the product: some that import nothing but pure
        modules, then some that need more. First those whose places and names have most in common with the module's, as
        a mirroring file has; of these the nearest, and those that import least."""
        found = self._distances(module, everywhere=True)
        near = self.near(module)
        others = [path for path in self._in_order(module, found) if path not in near]
        pure = [path for path in others if self._is_pure(path)]
        impure = [path for path in others if not self._is_pure(path)]
        return pure[:MOST_FILES] + impure[:MOST_IMPURE_FILES]

    def _in_order(self, module: str, distances: dict[str, int]) -> list[str]:
        words = set(module.split(".")[1:])

        def order(path: str) -> tuple[int, int, int, str]:
            shared = words & set(dotted(Path(path)).replace("test_", "").split("."))
            return -len(shared), distances[path], len(self.tests[path]), path

        return sorted(distances, key=order)

    def _is_pure(self, test: str) -> bool:
        return self.tests[test].issubset(self.pure)

    def _distances(self, module: str, *, everywhere: bool = False) -> dict[str, int]:
        """Of each test file that reaches the module within its package, over how many other modules."""
        package = package_of(module)
        inside = list(self.files) if everywhere else [one for one in self.pure if package_of(one) == package]
        far, waiting = {module: 0}, deque([module])
        while waiting:
            here = waiting.popleft()
            for other in inside:
                if other not in far and here in self.imports[other]:
                    far[other] = far[here] + 1
                    waiting.append(other)
        reached = {test: [far[one] for one in used if one in far] for test, used in self.tests.items()}
        return {test: min(distances) for test, distances in reached.items() if distances}

    def _imported(self, path: Path) -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.files)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {f"{node.module}.{alias.name}" for alias in node.names} & self.files.keys()
                yield from names or {node.module} & self.files.keys()
