"""Checks on edited versions of a shipped rubric: only the wording may change.

Drafts are untrusted input. Metric names, scales, levels, labels and steps decide the reply schema and the computed
scores, so they must equal those of the shipped rubric. Texts are concatenated, never formatted, and must not contain
invisible characters."""

from __future__ import annotations

import difflib
import json
import unicodedata
from collections.abc import Iterator

import yaml

from evaluation.core.errors import DomainError
from evaluation.judging.rubric import Rubric, is_criterion, shipped_rubric

# Characters of all texts together; the longest shipped rubric has about 6,000.
MAX_CHARACTERS = 40_000
NAMES_SLOT = "{metrics}"
_INVISIBLE_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def check_draft(rubric: Rubric) -> None:
    """Check a draft against the shipped rubric of its family and language.

    :raises UnknownName: for a family that does not ship.
    :raises DomainError: ``rubric_of_criterion``; ``rubric_differs`` with the parts that differ from the shipped rubric;
        ``rubric_unseen`` with the invisible characters; ``rubric_too_long``."""
    if rubric.criterion is not None or is_criterion(rubric.family):
        raise DomainError("rubric_of_criterion")
    shipped = shipped_rubric(rubric.family, rubric.language)
    if differing := [name for name, part in _fixed_parts(rubric).items() if part != _fixed_parts(shipped)[name]]:
        raise DomainError("rubric_differs", parts=", ".join(differing), family=rubric.family)
    texts = list(rubric_texts(rubric))
    if sum(map(len, texts)) > MAX_CHARACTERS:
        raise DomainError("rubric_too_long", limit=MAX_CHARACTERS)
    hidden = {c for text in texts for c in text if unicodedata.category(c) in _INVISIBLE_CATEGORIES and c not in "\n\t"}
    if hidden:
        raise DomainError("rubric_unseen", characters=", ".join(sorted(f"U+{ord(c):04X}" for c in hidden)))


def _fixed_parts(rubric: Rubric) -> dict[str, object]:
    """Parts of a rubric that determine the reply schema and must not change."""
    return {
        "metrics": rubric.names,
        "scale": [str(metric.read_scale()) for metric in rubric.metrics],
        "levels": [metric.values for metric in rubric.metrics],
        "labels": [metric.verdicts for metric in rubric.metrics],
        "steps": [(step.name, step.metric) for step in rubric.steps],
        NAMES_SLOT: rubric.closing.count(NAMES_SLOT) > 0,
    }


def rubric_texts(rubric: Rubric) -> Iterator[str]:
    """Every text of a rubric that a judge reads."""
    yield from (rubric.instruction, rubric.closing, rubric.repair)
    for step in rubric.steps:
        yield from (step.instruction, step.closing)
    for metric in rubric.metrics:
        yield metric.question
        yield from (level.text for level in metric.levels)
        yield from (label.text for label in metric.labels)


def visible_json(value: object) -> str:
    """Serialize a value as JSON with invisible characters escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(json.dumps(c)[1:-1] if unicodedata.category(c) in _INVISIBLE_CATEGORIES else c for c in text)


class _BlockDumper(yaml.SafeDumper):
    """YAML dumper that writes multi-line texts as literal blocks."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_BlockDumper.add_representer(str, _represent_text)


def rubric_yaml(rubric: Rubric) -> str:
    content = rubric.model_dump(mode="json", exclude_defaults=True)
    return yaml.dump(content, Dumper=_BlockDumper, allow_unicode=True, sort_keys=False, width=110)


def unified_diff(before: Rubric, after: Rubric, names: tuple[str, str]) -> list[str]:
    """Unified diff of two rubrics as YAML lines; empty if they are equal."""
    old_lines, new_lines = rubric_yaml(before).splitlines(), rubric_yaml(after).splitlines()
    return list(difflib.unified_diff(old_lines, new_lines, *names, lineterm=""))
