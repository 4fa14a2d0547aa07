"""Label Studio: a labelling interface and tasks out, annotations back in as ratings.

Tasks carry the ids of question and sample in ``data``, and a key of the answer that tells nothing else; controls are
named by their metric, ``cannot_judge`` is a choice of each, and a text area ``comment`` (or ``METRIC_comment``) holds
the reason. Formats: Label Studio's export as JSON, and its labelling configuration.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaluation.core.canonical import content_hash
from evaluation.core.scales import Scale, ScaleKind
from evaluation.formats.rating_rows import Origin, Phase, Rater, RatingFile, RatingRow, refuse_duplicates, value_on
from evaluation.formats.tree import FileTree, Kind, Node, Problems, plain
from evaluation.formats.values import Field, shown

CANNOT_JUDGE = "cannot_judge"
COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Control:
    """A metric as the labelling interface asks for it: its question, and each level's text."""

    name: str
    title: str
    scale: Scale
    levels: Mapping[float, str]


def labelling_config(controls: Sequence[Control]) -> str:
    """The labelling configuration: question, references, passages and answer, then a control for each metric."""
    view = ET.Element("View")
    ET.SubElement(view, "Header", value="$question")
    ET.SubElement(view, "Text", name="references", value="$references")
    ET.SubElement(view, "Text", name="answer", value="$answer")
    ET.SubElement(view, "Text", name="contexts", value="$contexts")
    for control in controls:
        ET.SubElement(view, "Header", value=control.title)
        _control(view, control)
    ET.SubElement(view, "TextArea", name=COMMENT, toName="answer", placeholder="Comment")
    return ET.tostring(view, encoding="unicode")


def _control(view: ET.Element, control: Control) -> None:
    """A number for reals; else one choice of the levels, labels or yes and no, or that it cannot be judged."""
    if control.scale.kind in {ScaleKind.REAL, ScaleKind.SECONDS}:
        low, high = f"{control.scale.low:g}", f"{control.scale.high:g}"
        ET.SubElement(view, "Number", name=control.name, toName="answer", min=low, max=high)
        return
    attributes = {"name": control.name, "toName": "answer", "choice": "single-radio", "required": "true"}
    choices = ET.SubElement(view, "Choices", attributes)
    for value, caption in _options(control):
        ET.SubElement(choices, "Choice", value=caption, alias=value)
    ET.SubElement(choices, "Choice", value="cannot judge", alias=CANNOT_JUDGE)


def _options(control: Control) -> list[tuple[str, str]]:
    scale = control.scale
    if scale.kind is ScaleKind.CLASS:
        return [(label, label) for label in scale.labels]
    if scale.kind is ScaleKind.YES_NO:
        return [("1", "yes"), ("0", "no")]
    texts = [(level, control.levels.get(level, "")) for level in scale.levels]
    return [(f"{level:g}", f"{level:g} · {text}" if text else f"{level:g}") for level, text in texts]


def task(data: Mapping[str, Any], answer_id: int) -> dict[str, Any]:
    """A task without predictions: whoever labels it has not seen the judge."""
    return {"data": {**data, "answer_key": answer_key(answer_id)}}


def answer_key(answer_id: int) -> str:
    """Sixteen characters for an answer. Not its id: ids of one system's answers follow each other."""
    return content_hash(["answer", answer_id])[:16]


def read_annotations(
    tree: FileTree, problems: Problems, *, scales: Mapping[str, Scale], annotators: Mapping[str, str]
) -> RatingFile:
    """Every annotation as ratings, one for each of its controls. ``annotators``: Label Studio's id or e-mail address of
    a person -> the label to keep; others keep their address, else ``annotator ID``.

    Cancelled annotations are left out, which is remarked. Ratings of tasks that came with predictions are not blind.

    :raises InvalidFile: with every problem, each with the line of its task and the path of its field.
    """
    reader = _Reader(problems, scales, annotators)
    tasks = tree.root.elements
    if tree.root.kind is not Kind.LIST or not tasks:
        problems.stop("no_tasks", tree.root.line)
    rows = [row for place, one in enumerate(tasks) for row in reader.task(one, f"[{place}]")]
    if not rows and not problems.found:
        problems.add("no_annotations", tree.root.line)
    refuse_duplicates(rows, problems)
    problems.refuse_if_any()
    if reader.cancelled:
        problems.remark("annotations_cancelled", rows=reader.cancelled)
    return RatingFile(tuple(rows), (), {}, (), tuple(problems.remarks), tree.format, tree.encoding)


_NOTHING = Node(Kind.NULL, None, 0)


def _is_count(node: Node) -> bool:
    return node.kind is Kind.INTEGER and isinstance(node.value, int) and node.value >= 0


def _entry(node: Node, *path: str) -> Node:
    """What stands there, :data:`_NOTHING` where nothing does."""
    for name in path:
        node = node.entries.get(name, _NOTHING)
    return node


@dataclass(slots=True)
class _Reader:
    problems: Problems
    scales: Mapping[str, Scale]
    annotators: Mapping[str, str]
    cancelled: int = 0

    def task(self, node: Node, path: str) -> list[RatingRow]:
        question_id, sample = _text(_entry(node, "data", "question_id")), _entry(node, "data", "sample")
        if not question_id:
            self.problems.add("task_without_question", node.line, f"{path}.data.question_id")
            return []
        if sample is not _NOTHING and not _is_count(sample):
            self.problems.add("not_integer", sample.line, f"{path}.data.sample", value=shown(sample))
            return []
        row = partial(
            RatingRow,
            question_id=question_id,
            sample=sample.value or 0,
            parts=(),
            metadata={},
            line=node.line,
            answer_key=_text(_entry(node, "data", "answer_key")),
        )
        blind = not _entry(node, "predictions").elements
        annotations = enumerate(self._list(node, "annotations", path) or ())
        return [
            found for i, one in annotations for found in self.annotation(one, f"{path}.annotations[{i}]", blind, row)
        ]

    def annotation(self, node: Node, path: str, blind: bool, row: Callable[..., RatingRow]) -> list[RatingRow]:
        if _entry(node, "was_cancelled").value is True:
            self.cancelled += 1
            return []
        author = self._author(_entry(node, "completed_by"), path, node.line)
        results = self._list(node, "result", path)
        if results is None:
            return []
        created = _entry(node, "created_at")
        moment = None if created.absent else Field(created, f"{path}.created_at", self.problems).moment()
        origin = Origin(Rater.HUMAN, author, Phase.INITIAL, blind, None, moment)
        given, comments = self._given(results, f"{path}.result")
        found = []
        for metric, value in given.items():
            comment = comments.get(metric) or comments.get("", "")
            found.append(
                row(
                    metric=metric,
                    value=value if isinstance(value, float) else None,
                    label=value if isinstance(value, str) else None,
                    failure=f"{CANNOT_JUDGE}: {comment}" if value is None else "",
                    reason=comment,
                    origin=origin,
                )
            )
        return found

    def _list(self, node: Node, name: str, path: str) -> list[Node] | None:
        found = node.entries.get(name)
        if found is not None and found.kind is Kind.LIST:
            return found.elements
        kind = "nothing" if found is None else found.kind.value
        self.problems.add("not_list", node.line, f"{path}.{name}", found=kind)
        return None

    def _given(self, results: Sequence[Node], path: str) -> tuple[dict[str, float | str | None], dict[str, str]]:
        """Metric -> what was given (``None``: cannot judge), and metric -> comment, that of the whole under ``""``."""
        given: dict[str, float | str | None] = {}
        comments: dict[str, str] = {}
        for place, result in enumerate(results):
            where = f"{path}[{place}]"
            name = _text(_entry(result, "from_name"))
            metric = name.removesuffix(f"_{COMMENT}") if name.endswith(f"_{COMMENT}") else name
            if name == COMMENT or (metric != name and metric in self.scales):
                comments["" if name == COMMENT else metric] = _comment(result)
            elif name not in self.scales:
                known = ", ".join(sorted(self.scales)[:20])
                self.problems.add("control_unknown", result.line, f"{where}.from_name", name=name[:80], known=known)
            elif name in given:
                self.problems.add("control_twice", result.line, f"{where}.from_name", name=name)
            else:
                given[name] = self._value(result, name, where)
        return given, comments

    def _value(self, result: Node, metric: str, where: str) -> float | str | None:
        kind, scale = _text(_entry(result, "type")), self.scales[metric]
        told = _entry(result, "value", kind)
        if kind == "choices" and len(told.elements) == 1:
            told = told.elements[0]
        elif kind not in {"rating", "number"} or told is _NOTHING:
            self.problems.add("result_unreadable", result.line, f"{where}.value", type=kind[:40] or "–")
            return None
        if _text(told) == CANNOT_JUDGE:
            return None
        if told.kind is Kind.TEXT:  # a choice is a text, whatever it stands for; so is a table's cell
            told = Node(Kind.CELL, told.value, told.line, str(told.value))
        found = value_on(told, scale)
        if found is None:
            path = f"{where}.value.{kind}"
            self.problems.add("off_scale", result.line, path, value=shown(told), scale=str(scale))
        return found

    def _author(self, node: Node, path: str, line: int) -> str:
        who = plain(node)
        number, address = (who.get("id"), who.get("email")) if isinstance(who, dict) else (who, None)
        if isinstance(number, str) and not address:
            number, address = None, number
        if number is None and not address:
            self.problems.add("annotator_missing", line, f"{path}.completed_by")
            return ""
        for key in (address, number):
            if key is not None and str(key) in self.annotators:
                return self.annotators[str(key)]
        return str(address) if address else f"annotator {number}"


def _text(node: Node) -> str:
    return "" if node.kind in {Kind.LIST, Kind.MAP, Kind.NULL} else str(node.value).strip()


def _comment(result: Node) -> str:
    texts = _entry(result, "value", "text")
    return "\n".join(map(_text, texts.elements)) if texts.kind is Kind.LIST else _text(texts)
