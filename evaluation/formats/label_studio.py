"""Label Studio: export a labelling configuration and tasks, import annotations as ratings.

Tasks carry question id, sample and an opaque answer key in ``data``. Controls are named by their metric; each has a
choice ``cannot_judge``. A text area ``comment`` (or ``METRIC_comment``) holds the reason. Formats: Label Studio's JSON
export and its labelling configuration."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaluation.core.canonical import content_hash
from evaluation.core.scales import Scale, ScaleKind
from evaluation.formats.rating_rows import (
    Origin,
    Phase,
    Rater,
    RatingFile,
    RatingRow,
    refuse_duplicates,
    value_on_scale,
)
from evaluation.formats.tree import FileTree, Node, NodeKind, Problems, plain_value
from evaluation.formats.values import Field, display_value

CANNOT_JUDGE = "cannot_judge"
COMMENT = "comment"


@dataclass(frozen=True, slots=True)
class Control:
    """Labelling control of a metric: its question, and a text for each level."""

    name: str
    title: str
    scale: Scale
    levels: Mapping[float, str]


def labelling_config(controls: Sequence[Control]) -> str:
    """Labelling configuration: question, references, passages and answer, then one control per metric."""
    view = ET.Element("View")
    ET.SubElement(view, "Header", value="$question")
    ET.SubElement(view, "Text", name="references", value="$references")
    ET.SubElement(view, "Text", name="answer", value="$answer")
    ET.SubElement(view, "Text", name="contexts", value="$contexts")
    for control in controls:
        ET.SubElement(view, "Header", value=control.title)
        _add_control(view, control)
    ET.SubElement(view, "TextArea", name=COMMENT, toName="answer", placeholder="Comment")
    return ET.tostring(view, encoding="unicode")


def _add_control(view: ET.Element, control: Control) -> None:
    """Add a number field for a real scale, otherwise single-choice options and "cannot judge"."""
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


def build_task(data: Mapping[str, Any], answer_id: int) -> dict[str, Any]:
    """Task without predictions, so that annotators do not see the judge."""
    return {"data": {**data, "answer_key": answer_key(answer_id)}}


def answer_key(answer_id: int) -> str:
    """Sixteen-character key of an answer. Consecutive ids would reveal which answers share a system."""
    return content_hash(["answer", answer_id])[:16]


def read_annotations(
    tree: FileTree, problems: Problems, *, scales: Mapping[str, Scale], annotators: Mapping[str, str]
) -> RatingFile:
    """Read every annotation as ratings, one per control.

    ``annotators`` maps a Label Studio user id or e-mail address to a label; other annotators keep their address, else
    ``annotator ID``. Cancelled annotations are skipped with a remark. Ratings of tasks with predictions are not blind.

    :raises InvalidFile: with every problem, its task's line and its field's path."""
    reader = _Reader(problems, scales, annotators)
    tasks = tree.root.elements
    if tree.root.kind is not NodeKind.LIST or not tasks:
        problems.stop("no_tasks", tree.root.line)
    rows = [row for index, task_node in enumerate(tasks) for row in reader.read_task(task_node, f"[{index}]")]
    if not rows and not problems.errors:
        problems.add("no_annotations", tree.root.line)
    refuse_duplicates(rows, problems)
    problems.refuse_if_any()
    if reader.cancelled:
        problems.remark("annotations_cancelled", rows=reader.cancelled)
    return RatingFile(tuple(rows), (), {}, (), tuple(problems.remarks), tree.format, tree.encoding)


_ABSENT = Node(NodeKind.NULL, None, 0)


def _is_whole_number(node: Node) -> bool:
    return node.kind is NodeKind.INTEGER and isinstance(node.value, int) and node.value >= 0


def _node_at(node: Node, *path: str) -> Node:
    """Descend along ``path``; :data:`_ABSENT` if a name is missing."""
    for name in path:
        node = node.entries.get(name, _ABSENT)
    return node


@dataclass(slots=True)
class _Reader:
    problems: Problems
    scales: Mapping[str, Scale]
    annotators: Mapping[str, str]
    cancelled: int = 0

    def read_task(self, node: Node, path: str) -> list[RatingRow]:
        question_id, sample = _text(_node_at(node, "data", "question_id")), _node_at(node, "data", "sample")
        if not question_id:
            self.problems.add("task_without_question", node.line, f"{path}.data.question_id")
            return []
        if sample is not _ABSENT and not _is_whole_number(sample):
            self.problems.add("not_integer", sample.line, f"{path}.data.sample", value=display_value(sample))
            return []
        make_row = partial(
            RatingRow,
            question_id=question_id,
            sample=sample.value or 0,
            parts=(),
            metadata={},
            line=node.line,
            answer_key=_text(_node_at(node, "data", "answer_key")),
        )
        blind = not _node_at(node, "predictions").elements
        annotations = enumerate(self._list_at(node, "annotations", path) or ())
        return [
            rating
            for i, annotation in annotations
            for rating in self.read_annotation(annotation, f"{path}.annotations[{i}]", blind, make_row)
        ]

    def read_annotation(
        self, node: Node, path: str, blind: bool, make_row: Callable[..., RatingRow]
    ) -> list[RatingRow]:
        if _node_at(node, "was_cancelled").value is True:
            self.cancelled += 1
            return []
        author = self._read_author(_node_at(node, "completed_by"), path, node.line)
        results = self._list_at(node, "result", path)
        if results is None:
            return []
        created = _node_at(node, "created_at")
        moment = None if created.absent else Field(created, f"{path}.created_at", self.problems).moment()
        origin = Origin(Rater.HUMAN, author, Phase.INITIAL, blind, None, moment)
        values, comments = self._read_results(results, f"{path}.result")
        ratings = []
        for metric, value in values.items():
            comment = comments.get(metric) or comments.get("", "")
            ratings.append(
                make_row(
                    metric=metric,
                    value=value if isinstance(value, float) else None,
                    label=value if isinstance(value, str) else None,
                    failure=f"{CANNOT_JUDGE}: {comment}" if value is None else "",
                    reason=comment,
                    origin=origin,
                )
            )
        return ratings

    def _list_at(self, node: Node, name: str, path: str) -> list[Node] | None:
        child = node.entries.get(name)
        if child is not None and child.kind is NodeKind.LIST:
            return child.elements
        kind = "nothing" if child is None else child.kind.value
        self.problems.add("not_list", node.line, f"{path}.{name}", found=kind)
        return None

    def _read_results(self, results: Sequence[Node], path: str) -> tuple[dict[str, float | str | None], dict[str, str]]:
        """Values by metric (``None``: cannot judge) and comments by metric; key ``""`` is the comment on the whole
        task."""
        values: dict[str, float | str | None] = {}
        comments: dict[str, str] = {}
        for index, result in enumerate(results):
            result_path = f"{path}[{index}]"
            name = _text(_node_at(result, "from_name"))
            metric = name.removesuffix(f"_{COMMENT}") if name.endswith(f"_{COMMENT}") else name
            if name == COMMENT or (metric != name and metric in self.scales):
                comments["" if name == COMMENT else metric] = _comment(result)
            elif name not in self.scales:
                known = ", ".join(sorted(self.scales)[:20])
                self.problems.add(
                    "control_unknown", result.line, f"{result_path}.from_name", name=name[:80], known=known
                )
            elif name in values:
                self.problems.add("control_twice", result.line, f"{result_path}.from_name", name=name)
            else:
                values[name] = self._read_value(result, name, result_path)
        return values, comments

    def _read_value(self, result: Node, metric: str, result_path: str) -> float | str | None:
        kind, scale = _text(_node_at(result, "type")), self.scales[metric]
        value_node = _node_at(result, "value", kind)
        if kind == "choices" and len(value_node.elements) == 1:
            value_node = value_node.elements[0]
        elif kind not in {"rating", "number"} or value_node is _ABSENT:
            self.problems.add("result_unreadable", result.line, f"{result_path}.value", type=kind[:40] or "–")
            return None
        if _text(value_node) == CANNOT_JUDGE:
            return None
        # A choice is text even for a numeric level, as in a table's cell.
        if value_node.kind is NodeKind.TEXT:
            value_node = Node(NodeKind.CELL, value_node.value, value_node.line, str(value_node.value))
        value = value_on_scale(value_node, scale)
        if value is None:
            path = f"{result_path}.value.{kind}"
            self.problems.add("off_scale", result.line, path, value=display_value(value_node), scale=str(scale))
        return value

    def _read_author(self, node: Node, path: str, line: int) -> str:
        annotator = plain_value(node)
        user_id, email = (
            (annotator.get("id"), annotator.get("email")) if isinstance(annotator, dict) else (annotator, None)
        )
        if isinstance(user_id, str) and not email:
            user_id, email = None, user_id
        if user_id is None and not email:
            self.problems.add("annotator_missing", line, f"{path}.completed_by")
            return ""
        for key in (email, user_id):
            if key is not None and str(key) in self.annotators:
                return self.annotators[str(key)]
        return str(email) if email else f"annotator {user_id}"


def _text(node: Node) -> str:
    return "" if node.kind in {NodeKind.LIST, NodeKind.MAP, NodeKind.NULL} else str(node.value).strip()


def _comment(result: Node) -> str:
    texts = _node_at(result, "value", "text")
    return "\n".join(map(_text, texts.elements)) if texts.kind is NodeKind.LIST else _text(texts)
