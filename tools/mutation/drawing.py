"""Makes mutants by mutmut's operators: a seeded sample over the pure modules, or all of the lines changed since a
revision. Runs in an environment of its own: ``python -m tools.mutation.drawing OUT [--changed REV]``.

Nothing is mutated in annotations, imports, docstrings, other names of types, the settings of dataclasses, or texts for
people: strings with a space, f-strings and both languages of a ``Bilingual``.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

from tools.mutation.modules import House, Mutant, package_of

LEAST = 10  # mutants of every package, however small
CALLS_LEFT_ALONE = {"Bilingual", "dataclass", "NewType", "TypeVar", "cast"}
HUNK = re.compile(r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """A node of a module that may become something else."""

    module: str
    line: int
    tree: cst.Module
    node: cst.CSTNode

    def sources(self) -> list[str]:
        """The sources with this place changed that are Python and mean something else."""
        meant = ast.dump(ast.parse(self.tree.code))
        found = [self.tree.deep_replace(self.node, node).code for node in _changed(self.node)]
        return [source for source in found if _meaning(source) not in {"", meant}]


class Places(cst.CSTVisitor):
    """Collects the places of a module."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, module: str, tree: cst.Module) -> None:
        super().__init__()
        self.module, self.tree, self.found = module, tree, list[Place]()

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Take the node where an operator makes something of it."""
        if _is_left_alone(node):
            return False
        if not _is_text(node) and next(_changed(node), None):
            line = self.get_metadata(PositionProvider, node).start.line
            self.found.append(Place(self.module, line, self.tree, node))
        return True


def _changed(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    return (new for kind, operator in mutation_operators if isinstance(node, kind) for new in operator(node))


def _meaning(source: str) -> str:
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return ""


def _is_left_alone(node: cst.CSTNode) -> bool:
    match node:
        case cst.Annotation() | cst.Import() | cst.ImportFrom() | cst.If(test=cst.Name(value="TYPE_CHECKING")):
            return True
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString())]):
            return True
        case cst.Call(func=cst.Name(value=name)):
            return name in CALLS_LEFT_ALONE
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return name.startswith("__") or (name[0].isupper() and not name.isupper())  # another name of a type
    return False


def _is_text(node: cst.CSTNode) -> bool:
    """A text for people, or a call that is given nothing else."""
    match node:
        case cst.SimpleString(value=text):
            return " " in text
        case cst.Call(args=[_, *_] as given):
            return all(_is_text(one.value) for one in given)
    return isinstance(node, cst.FormattedString | cst.ConcatenatedString)


def places(module: str, path: Path) -> list[Place]:
    """All places of a module, in order."""
    wrapper = MetadataWrapper(cst.parse_module(path.read_text(encoding="utf-8")), unsafe_skip_copy=True)
    visitor = Places(module, wrapper.module)
    wrapper.visit(visitor)
    return visitor.found


def sample(found: Sequence[Place], size: int, seed: int) -> Iterator[tuple[Place, str]]:
    """``size`` mutants, one of each drawn place; of each package as many as it has places for, ten at least."""
    by_package: dict[str, list[Place]] = defaultdict(list)
    for place in found:
        by_package[package_of(place.module)].append(place)
    counts = {name: len(these) for name, these in by_package.items()}
    shares = {name: max(min(LEAST, count), size * count // len(found)) for name, count in counts.items()}
    while sum(shares.values()) > size:
        shares[max(shares, key=lambda name: shares[name])] -= 1
    while sum(shares.values()) < min(size, len(found)):
        shares[max(counts, key=lambda name: counts[name] / (shares[name] + 1))] += 1
    chance = random.Random(seed)
    for name, these in sorted(by_package.items()):
        chance.shuffle(these)
        possible = ((place, sources) for place in these if (sources := place.sources()))
        for _, (place, sources) in zip(range(shares[name]), possible, strict=False):
            yield place, chance.choice(sources)


def changed_lines(revision: str) -> dict[Path, set[int]]:
    """Of each file, the lines that are new or other than at the revision."""
    command = ["git", "diff", "--unified=0", "--no-color", "--no-ext-diff", revision, "--", "*.py"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines: dict[Path, set[int]] = defaultdict(set)
    for part in re.split(r"^diff --git ", text, flags=re.MULTILINE):
        if name := re.search(r"^\+\+\+ b/(.*)$", part, re.MULTILINE):
            for start, count in HUNK.findall(part):
                lines[Path(name[1])] |= set(range(int(start), int(start) + int(count or 1)))
    return lines


def main() -> None:
    """Write the mutants as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=int, default=600)
    parser.add_argument("--seed", type=int, default=12)
    parser.add_argument("--changed", metavar="REV")
    options = parser.parse_args()
    house, named = House(), Counter[str]()
    if options.changed:
        lines = changed_lines(options.changed)
        found = [
            place
            for module in house.pure
            if (changed := lines.get(house.files[module]))
            for place in places(module, house.files[module])
            if place.line in changed
        ]
        drawn = [(place, source) for place in found for source in place.sources()]
    else:
        found = [place for module in house.pure for place in places(module, house.files[module])]
        drawn = list(sample(found, options.size, options.seed))
    with options.out.open("w", encoding="utf-8") as out:
        for place, source in drawn:
            module, path = place.module, str(house.files[place.module])
            named[at := f"{path}:{place.line}"] += 1
            lines_of_diff = unified_diff(place.tree.code.splitlines(), source.splitlines(), n=0, lineterm="")
            row = Mutant(
                name=f"{at}#{named[at]}",
                package=package_of(module),
                module=module,
                path=path,
                diff="\n".join(line for line in lines_of_diff if not line.startswith(("---", "+++", "@@"))),
                source=source,
            )
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{len(drawn)} mutants in {options.out}")


if __name__ == "__main__":
    main()
