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

from tools.mutation.modules import ModuleGraph, Mutant, package_of

LEAST = 10  # mutants of every package, however small
CALLS_LEFT_ALONE = {"Bilingual", "dataclass", "NewType", "TypeVar", "cast"}
HUNK = re.compile(r"^@@ \S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True)
class MutationSite:
    """A node of a module that can be mutated."""

    module: str
    line: int
    tree: cst.Module
    node: cst.CSTNode

    def sources(self) -> list[str]:
        """Return the mutated sources of the module that are valid Python with another meaning."""
        original = ast.dump(ast.parse(self.tree.code))
        sources = [self.tree.deep_replace(self.node, node).code for node in _mutate(self.node)]
        return [source for source in sources if _syntax_tree(source) not in {"", original}]


class SiteCollector(cst.CSTVisitor):
    """Collects the mutation sites of a module."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, module: str, tree: cst.Module) -> None:
        super().__init__()
        self.module, self.tree, self.sites = module, tree, list[MutationSite]()

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Collect the node if an operator can mutate it."""
        if _is_skipped(node):
            return False
        if not _is_text(node) and next(_mutate(node), None):
            line = self.get_metadata(PositionProvider, node).start.line
            self.sites.append(MutationSite(self.module, line, self.tree, node))
        return True


def _mutate(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    return (new for kind, operator in mutation_operators if isinstance(node, kind) for new in operator(node))


def _syntax_tree(source: str) -> str:
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return ""


def _is_skipped(node: cst.CSTNode) -> bool:
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
    """Return whether the node is a text for people, or a call with such arguments only."""
    match node:
        case cst.SimpleString(value=text):
            return " " in text
        case cst.Call(args=[_, *_] as arguments):
            return all(_is_text(argument.value) for argument in arguments)
    return isinstance(node, cst.FormattedString | cst.ConcatenatedString)


def mutation_sites(module: str, path: Path) -> list[MutationSite]:
    """Return all mutation sites of a module, in order."""
    wrapper = MetadataWrapper(cst.parse_module(path.read_text(encoding="utf-8")), unsafe_skip_copy=True)
    visitor = SiteCollector(module, wrapper.module)
    wrapper.visit(visitor)
    return visitor.sites


def sample(sites: Sequence[MutationSite], size: int, seed: int) -> Iterator[tuple[MutationSite, str]]:
    """Yield ``size`` mutants, one of each drawn site; packages are represented in proportion to their sites, with at
    least ten each."""
    by_package: dict[str, list[MutationSite]] = defaultdict(list)
    for site in sites:
        by_package[package_of(site.module)].append(site)
    counts = {name: len(package_sites) for name, package_sites in by_package.items()}
    shares = {name: max(min(LEAST, count), size * count // len(sites)) for name, count in counts.items()}
    while sum(shares.values()) > size:
        shares[max(shares, key=lambda name: shares[name])] -= 1
    while sum(shares.values()) < min(size, len(sites)):
        shares[max(counts, key=lambda name: counts[name] / (shares[name] + 1))] += 1
    random_generator = random.Random(seed)
    for name, package_sites in sorted(by_package.items()):
        random_generator.shuffle(package_sites)
        mutable = ((site, sources) for site in package_sites if (sources := site.sources()))
        for _, (site, sources) in zip(range(shares[name]), mutable, strict=False):
            yield site, random_generator.choice(sources)


def changed_lines(revision: str) -> dict[Path, set[int]]:
    """Return the new or changed line numbers of each file since the revision."""
    command = ["git", "diff", "--unified=0", "--no-color", "--no-ext-diff", revision, "--", "*.py"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines: dict[Path, set[int]] = defaultdict(set)
    for file_diff in re.split(r"^diff --git ", text, flags=re.MULTILINE):
        if name := re.search(r"^\+\+\+ b/(.*)$", file_diff, re.MULTILINE):
            for start, count in HUNK.findall(file_diff):
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
    graph, mutant_counts = ModuleGraph(), Counter[str]()
    if options.changed:
        lines = changed_lines(options.changed)
        sites = [
            site
            for module in graph.pure
            if (changed_numbers := lines.get(graph.files[module]))
            for site in mutation_sites(module, graph.files[module])
            if site.line in changed_numbers
        ]
        mutants = [(site, source) for site in sites for source in site.sources()]
    else:
        sites = [site for module in graph.pure for site in mutation_sites(module, graph.files[module])]
        mutants = list(sample(sites, options.size, options.seed))
    with options.out.open("w", encoding="utf-8") as file:
        for site, source in mutants:
            module, path = site.module, str(graph.files[site.module])
            mutant_counts[location := f"{path}:{site.line}"] += 1
            lines_of_diff = unified_diff(site.tree.code.splitlines(), source.splitlines(), n=0, lineterm="")
            row = Mutant(
                name=f"{location}#{mutant_counts[location]}",
                package=package_of(module),
                module=module,
                path=path,
                diff="\n".join(line for line in lines_of_diff if not line.startswith(("---", "+++", "@@"))),
                source=source,
            )
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{len(mutants)} mutants in {options.out}")


if __name__ == "__main__":
    main()
