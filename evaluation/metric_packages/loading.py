"""Loading and registration of packages of own metrics.

A package is registered as a whole or, with a fault, not at all. Its stamp (name, version, hash of the source) is
recorded in every run that uses its metrics."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from types import ModuleType

from evaluation.core.errors import InvalidFile
from evaluation.core.metric_specs import Bilingual, Direction, MetricKind, MetricSpec, RuleMetric
from evaluation.core.scales import ReviewForm, Scale, ScaleKind, default_review_form
from evaluation.judging.calls import Family, JudgeCase, Judging
from evaluation.judging.catalogue import add_family, families
from evaluation.judging.formulas import score_in_one_call
from evaluation.judging.rubric import Rubric, add_rubrics, parse_rubric
from evaluation.metric_packages.declared import declared_metrics
from evaluation.metric_packages.discovery import FAULTS, PackageFault, PackageSource
from evaluation.metric_packages.package import MetricPackage
from evaluation.metric_packages.results import encode_result
from evaluation.metrics.catalogue import add_rule_metric

#: Attribute of a file of own metrics.
ATTRIBUTE = "PACKAGE"
FILE_MODULE = "concord_metrics"
LANGUAGES = ("en", "ko")
RULE_INPUTS = frozenset(
    {
        *("reference", "keywords", "check", "required_info", "nuggets", "ground_truth_chunk_ids"),
        *("contexts", "retrieved_ids", "latency"),
    }
)
JUDGE_INPUTS = frozenset(
    {
        *("reference", "contexts", "passages", "evidence", "points", "nuggets", "check", "required_info"),
        *("persona", "history", "clarification_ok"),
    }
)
_HASH_CHARACTERS = 16
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


class InvalidPackage(Exception):
    """A package that cannot be registered; ``reasons`` has a sentence for each fault."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(reasons))


@dataclass(frozen=True, slots=True)
class LoadedPackage:
    """A package whose declarations are valid. ``stamp``: name, version and hash of its source."""

    source: PackageSource
    stamp: str
    rule_metrics: Mapping[str, RuleMetric]
    families: Mapping[str, Family]
    rubrics: tuple[Rubric, ...]

    @property
    def specs(self) -> tuple[MetricSpec, ...]:
        judged = (spec for family in self.families.values() for spec in family.metrics)
        return (*(metric.spec for metric in self.rule_metrics.values()), *judged)


#: Registered packages, in the order of their registration.
PACKAGES: list[LoadedPackage] = []


def register_packages(sources: Iterable[PackageSource], judge: Callable[[str], Callable[[JudgeCase], Judging]]) -> None:
    """Load and register packages. ``judge`` returns the function that stands in for the judge function of a family.

    A package with a fault is left out, and its faults are added to ``FAULTS``."""
    for source in sources:
        try:
            package = load_package(source)
            _check_names(package)
        except InvalidPackage as error:
            FAULTS.extend(PackageFault(str(source), reason) for reason in error.reasons)
            continue
        PACKAGES.append(package)
        for metric in package.rule_metrics.values():
            add_rule_metric(metric)
        for family in package.families.values():
            add_family(family if family.judge is score_in_one_call else replace(family, judge=judge(family.name)))
        add_rubrics(package.rubrics)


def stamps(names: Iterable[str]) -> dict[str, str]:
    """Stamps of the packages of those metrics that are own metrics, by metric."""
    by_metric = {spec.name: package.stamp for package in PACKAGES for spec in package.specs}
    return {name: by_metric[name] for name in names if name in by_metric}


def changed_packages(recorded: Mapping[str, str]) -> str:
    """Packages whose stamps differ from the recorded ones, by metric, with both; empty if there are none."""
    installed = stamps(recorded)
    changes = {(stamp, installed.get(name, "–")) for name, stamp in recorded.items()}
    return ", ".join(f"{before} → {now}" for before, now in sorted(changes) if before != now)


def load_package(source: PackageSource) -> LoadedPackage:
    """Import a package and check its declarations.

    :raises InvalidPackage: if it cannot be imported or a declaration is invalid."""
    try:
        module, package = _import(source.target)
        stamp = f"{source} {_source_hash(module)}"
        if not isinstance(package, MetricPackage):
            raise InvalidPackage([f"{source.target} is a {type(package).__name__}, not a MetricPackage"])
        rubrics, faults = _read_rubrics(package)
        faults += [*_declaration_faults(package), *_rubric_faults(package, rubrics)]
        if faults:
            raise InvalidPackage(faults)
        return LoadedPackage(
            source,
            stamp,
            {metric.spec.name: metric for metric in package.rule_metrics},
            {family.name: _with_constant_floor(family) for family in package.families},
            rubrics,
        )
    except InvalidPackage:
        raise
    # The code of a package may raise anything, also by leaving the process.
    except (Exception, SystemExit) as error:
        raise InvalidPackage([f"{type(error).__name__}: {error}"]) from error


def _with_constant_floor(family: Family) -> Family:
    """The family with the results of its floor, whose code then no longer runs.

    :raises InvalidResult: if one of them is invalid."""
    if family.floor is None:
        return family
    floors = {spec.name: family.floor(spec) for spec in family.metrics}
    for spec in family.metrics:
        if floors[spec.name] is not None:
            encode_result(spec, floors[spec.name])
    return replace(family, floor=lambda spec: floors[spec.name])


def _import(target: str) -> tuple[ModuleType, object]:
    if target.endswith(".py"):
        file_spec = spec_from_file_location(FILE_MODULE, target)
        if file_spec is None or file_spec.loader is None:
            raise ImportError(f"{target} is not a Python file")
        module = module_from_spec(file_spec)
        # Dataclasses look their module up.
        sys.modules[FILE_MODULE] = module
        file_spec.loader.exec_module(module)
        return module, getattr(module, ATTRIBUTE)
    name, _, attribute = target.partition(":")
    module = import_module(name)
    return module, attrgetter(attribute)(module) if attribute else module


def _source_hash(module: ModuleType) -> str:
    """Hash of the files of the module's top-level package, or of its own file."""
    top = module if module.__name__ == FILE_MODULE else import_module(module.__name__.partition(".")[0])
    own_file = Path(str(top.__file__))
    files = {Path(folder): sorted(Path(folder).rglob("*")) for folder in getattr(top, "__path__", ())}
    digest = sha256()
    for folder, paths in (files or {own_file.parent: [own_file]}).items():
        for path in paths:
            if path.is_file() and "__pycache__" not in path.parts:
                content = path.read_bytes()
                digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:_HASH_CHARACTERS]


def _check_names(package: LoadedPackage) -> None:
    taken_metrics, taken_families = declared_metrics(), {*families(), *RESERVED_FAMILIES}
    reasons = [f"the metric {spec.name} exists already" for spec in package.specs if spec.name in taken_metrics]
    reasons += [f"the family {name} exists already" for name in package.families if name in taken_families]
    if reasons:
        raise InvalidPackage(reasons)


# The rubric of comparisons of pairs, which belongs to no catalogue.
RESERVED_FAMILIES = ("pairwise",)


def _declaration_faults(package: MetricPackage) -> Iterator[str]:
    if not package.rule_metrics and not package.families:
        yield "the package has no metrics"
    names: list[str] = []
    for metric in package.rule_metrics:
        spec = getattr(metric, "spec", None)
        if not callable(metric) or not isinstance(spec, MetricSpec):
            yield f"{getattr(metric, '__name__', metric)!s} is not a function declared with rule_metric"
            continue
        names.append(spec.name)
        yield from _spec_faults(spec, MetricKind.RULE, RULE_INPUTS)
        if spec.rubric_family:
            yield f"the rule metric {spec.name} has a rubric family"
    for family in package.families:
        names += [spec.name for spec in family.metrics]
        yield from _family_faults(family)
    family_names = [family.name for family in package.families]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"the metric {name} is declared twice"
    for name in sorted({name for name in family_names if family_names.count(name) > 1}):
        yield f"the family {name} is declared twice"


def _family_faults(family: Family) -> Iterator[str]:
    if not _NAME.fullmatch(family.name):
        yield f"{family.name!r} is not a name: use small letters, digits and _"
    if not family.metrics:
        yield f"the family {family.name} has no metrics"
    if family.decided_rules:
        yield f"the family {family.name} decides rule metrics, which only shipped families may do"
    for spec in family.metrics:
        yield from _spec_faults(spec, MetricKind.JUDGE, JUDGE_INPUTS)
        if spec.rubric_family != family.name:
            yield f"rubric_family of {spec.name} is {spec.rubric_family!r}, not {family.name!r}"


def _spec_faults(spec: MetricSpec, kind: MetricKind, inputs: frozenset[str]) -> Iterator[str]:
    """Faults of a declaration, whose types nobody has checked."""
    if not isinstance(spec.name, str) or not _NAME.fullmatch(spec.name):
        yield f"{spec.name!r} is not a name: use small letters, digits and _"
    if spec.kind is not kind:
        yield f"the kind of {spec.name} is {spec.kind}, not {kind}"
    if type(spec.version) is not int or spec.version < 1:
        yield f"the version of {spec.name} is not a whole number from 1"
    for field in ("title", "formula"):
        text = getattr(spec, field)
        if not isinstance(text, Bilingual) or not (text.en and text.ko):
            yield f"the {field} of {spec.name} is not a Bilingual with both texts"
    if not isinstance(spec.direction, Direction):
        yield f"the direction of {spec.name} is not a Direction"
    if spec.aggregation != "mean":
        yield f"the aggregation of {spec.name} is not mean"
    if unknown := sorted({*spec.inputs, *spec.optional_inputs} - inputs):
        yield f"unknown inputs of {spec.name}: {', '.join(unknown)} (known: {', '.join(sorted(inputs))})"
    if not _is_valid_scale(spec.scale):
        yield f"the scale of {spec.name} is not a range from a lower to a higher number, or a list of classes"
    elif spec.scale.kind is ScaleKind.CLASS and spec.direction is not Direction.NONE:
        yield f"the direction of {spec.name} is {spec.direction}; classes have none"
    elif spec.review_form not in {form := default_review_form(spec.scale), ReviewForm.NONE}:
        yield f"the review_form of {spec.name} is {spec.review_form}; use {form} or none"


def _is_valid_scale(scale: object) -> bool:
    """Return whether a scale is stored and read again without a change."""
    try:
        return Scale.parse(str(scale)) == scale
    except ValueError:
        return False


def _read_rubrics(package: MetricPackage) -> tuple[tuple[Rubric, ...], list[str]]:
    rubrics, faults = [], []
    for family in package.families:
        for language in LANGUAGES:
            file = Path(package.rubrics or "") / f"{family.name}.{language}.yaml"
            try:
                if package.rubrics is None:
                    raise FileNotFoundError("the package names no folder of rubrics")
                rubric = parse_rubric(file.read_text("utf-8"), file=file.name)
                if (rubric.family, rubric.language) != (family.name, language):
                    faults.append(f"{file.name} is a rubric of {rubric.family} in {rubric.language}")
                rubrics.append(rubric)
            except (OSError, UnicodeDecodeError) as error:
                faults.append(f"{file.name}: {error}")
            except InvalidFile as error:
                faults += [f"{p.file} {p.field}: {p.params.get('error', p.code)}" for p in error.problems]
    return tuple(rubrics), faults


def _rubric_faults(package: MetricPackage, rubrics: Iterable[Rubric]) -> Iterator[str]:
    specs = {family.name: {spec.name: spec for spec in family.metrics} for family in package.families}
    for rubric in rubrics:
        name = f"the rubric {rubric.family}.{rubric.language}"
        family_specs = specs.get(rubric.family, {})
        if set(rubric.names) != set(family_specs):
            yield f"{name} does not have exactly the metrics of its family"
        for metric in rubric.metrics:
            if metric.name in family_specs and metric.read_scale() != family_specs[metric.name].scale:
                yield f"{name} has another scale for {metric.name}: {metric.read_scale()}"
