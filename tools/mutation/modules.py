"""The mutated modules and the test files of each, derived from the import contract and from imports.

The modules are those of the contract "Pure packages know no Django and no table". A test file belongs to the modules it
imports, itself or through helpers, so that files may move."""

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
    """Return the package by which mutants are drawn and counted: ``evaluation.metrics`` for
    ``evaluation.metrics.matching``, the app itself for a module outside its packages."""
    app, package, *_ = [*module.split("."), ""]
    return f"{app}.{package}" if package and Path(app, package).is_dir() else app


@dataclass(frozen=True)
class ModuleGraph:
    """The modules of product and tests with what each of them imports."""

    files: dict[str, Path] = field(
        default_factory=lambda: {
            dotted(path): path for top in (*PRODUCT, *HELPERS) for path in sorted(Path(top).rglob("*.py"))
        }
    )

    @cached_property
    def imports(self) -> dict[str, frozenset[str]]:
        """Modules imported by each module."""
        return {name: frozenset(self._imported(path)) - {name} for name, path in self.files.items()}

    @cached_property
    def pure(self) -> list[str]:
        """The modules of the contract, in order of name."""
        contracts = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
        (roots,) = [contract["source_modules"] for contract in contracts["contracts"] if contract["name"] == CONTRACT]
        return sorted(name for name in self.files if any(f"{name}.".startswith(f"{root}.") for root in roots))

    @cached_property
    def tests(self) -> dict[str, frozenset[str]]:
        """Product modules imported by each test file, itself or through helpers."""
        modules_by_test = {}
        for name, path in self.files.items():
            if "tests" in path.parts and path.name.startswith("test_"):
                used, waiting = {name}, [name]
                while waiting:
                    new_modules = {
                        module_name
                        for module_name in self.imports[waiting.pop()]
                        if module_name.split(".")[0] in HELPERS
                    } - used
                    used |= new_modules
                    waiting += new_modules
                modules_by_test[str(path)] = (
                    frozenset().union(*(self.imports[module_name] for module_name in used)) - used
                )
        return modules_by_test

    def near(self, module: str) -> list[str]:
        """Return the test files that import only pure modules and reach this one over the fewest imports within its
        package: tests of the module itself, else of modules built on it; in the order of ``wide``."""
        distances = {path: distance for path, distance in self._distances(module).items() if self._is_pure(path)}
        nearest = min(distances.values(), default=0)
        return self._sort_tests(module, {path: distance for path, distance in distances.items() if distance == nearest})

    def wide(self, module: str) -> list[str]:
        """Other test files that reach the module, be it over all of the product: some that import nothing but pure
        modules, then some that need more. First those whose places and names have most in common with the module's, as
        a mirroring file has; of these the nearest, and those that import least."""
        distances = self._distances(module, everywhere=True)
        near_tests = self.near(module)
        other_tests = [path for path in self._sort_tests(module, distances) if path not in near_tests]
        pure = [path for path in other_tests if self._is_pure(path)]
        impure = [path for path in other_tests if not self._is_pure(path)]
        return pure[:MOST_FILES] + impure[:MOST_IMPURE_FILES]

    def _sort_tests(self, module: str, distances: dict[str, int]) -> list[str]:
        module_words = set(module.split(".")[1:])

        def sort_key(path: str) -> tuple[int, int, int, str]:
            shared = module_words & set(dotted(Path(path)).replace("test_", "").split("."))
            return -len(shared), distances[path], len(self.tests[path]), path

        return sorted(distances, key=sort_key)

    def _is_pure(self, test: str) -> bool:
        return self.tests[test].issubset(self.pure)

    def _distances(self, module: str, *, everywhere: bool = False) -> dict[str, int]:
        """Return, for each test file that reaches the module within its package, the number of modules in between."""
        package = package_of(module)
        candidates = list(self.files) if everywhere else [name for name in self.pure if package_of(name) == package]
        distance_to, waiting = {module: 0}, deque([module])
        while waiting:
            current = waiting.popleft()
            for candidate in candidates:
                if candidate not in distance_to and current in self.imports[candidate]:
                    distance_to[candidate] = distance_to[current] + 1
                    waiting.append(candidate)
        reached = {
            test: [distance_to[name] for name in used if name in distance_to] for test, used in self.tests.items()
        }
        return {test: min(distances) for test, distances in reached.items() if distances}

    def _imported(self, path: Path) -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.files)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {f"{node.module}.{alias.name}" for alias in node.names} & self.files.keys()
                yield from names or {node.module} & self.files.keys()
