"""What a person's version of a shipped rubric must keep: it may say things in other words, and nothing else.

Its text is hostile input. What the replies look like, how strictly they are read and how figures come of them is
decided by names, scales, levels, labels and steps, which have to be those of the shipped rubric; the texts are joined,
never formatted, and may hold no character that a reader does not see.
"""

from __future__ import annotations

import difflib
import json
import unicodedata
from collections.abc import Iterator

import yaml

from evaluation.core.errors import Refused
from evaluation.judging.rubric import Rubric, is_criterion, shipped_rubric

LONGEST = 40_000  # characters of all texts together; the longest shipped rubric has about 6,000
NAMES_SLOT = "{metrics}"
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def check_draft(rubric: Rubric) -> None:
    """Hold a person's version against the shipped rubric of its family and language.

    :raises UnknownName: for a family that does not ship.
    :raises Refused: ``rubric_of_criterion``; ``rubric_differs`` naming what is not as in the shipped one;
        ``rubric_unseen`` naming characters that nobody sees; ``rubric_too_long``.
    """
    if rubric.criterion is not None or is_criterion(rubric.family):
        raise Refused("rubric_of_criterion")
    shipped = shipped_rubric(rubric.family, rubric.language)
    if differing := [name for name, ours in _form(rubric).items() if ours != _form(shipped)[name]]:
        raise Refused("rubric_differs", parts=", ".join(differing), family=rubric.family)
    texts = list(texts_of(rubric))
    if sum(map(len, texts)) > LONGEST:
        raise Refused("rubric_too_long", limit=LONGEST)
    hidden = {c for text in texts for c in text if unicodedata.category(c) in _UNSEEN and c not in "\n\t"}
    if hidden:
        raise Refused("rubric_unseen", characters=", ".join(sorted(f"U+{ord(c):04X}" for c in hidden)))


def _form(rubric: Rubric) -> dict[str, object]:
    """Everything that decides what is asked for and how it is read."""
    return {
        "metrics": rubric.names,
        "scale": [str(metric.read_scale()) for metric in rubric.metrics],
        "levels": [metric.values for metric in rubric.metrics],
        "labels": [metric.verdicts for metric in rubric.metrics],
        "steps": [(step.name, step.metric) for step in rubric.steps],
        NAMES_SLOT: rubric.closing.count(NAMES_SLOT) > 0,
    }


def texts_of(rubric: Rubric) -> Iterator[str]:
    """All texts of a rubric that a judge reads."""
    yield from (rubric.instruction, rubric.closing, rubric.repair)
    for step in rubric.steps:
        yield from (step.instruction, step.closing)
    for metric in rubric.metrics:
        yield metric.question
        yield from (level.text for level in metric.levels)
        yield from (label.text for label in metric.labels)


def plainly(value: object) -> str:
    """A value as JSON in which every character is one that a reader sees, for a text that quotes what others wrote."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(json.dumps(c)[1:-1] if unicodedata.category(c) in _UNSEEN else c for c in text)


class _Blocks(yaml.SafeDumper):
    """Writes texts of several lines as blocks, line by line."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Blocks.add_representer(str, _text)


def as_yaml(rubric: Rubric) -> str:
    """The rubric as people read and write it."""
    written = rubric.model_dump(mode="json", exclude_defaults=True)
    return yaml.dump(written, Dumper=_Blocks, allow_unicode=True, sort_keys=False, width=110)


def differences(before: Rubric, after: Rubric, names: tuple[str, str]) -> list[str]:
    """What the second says differently, as lines of a unified diff of both in YAML; none where they say the same."""
    ours, theirs = as_yaml(before).splitlines(), as_yaml(after).splitlines()
    return list(difflib.unified_diff(ours, theirs, *names, lineterm=""))
