"""How the judge's values lie beside the experts' means: the answers counted by place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evaluation.core.registry import Scale, ScaleKind

PLACES = 20  # steps along each side of a continuous scale


def spread(
    judge: Sequence[float | str | None], expert_means: Sequence[float | str | None], scale: Scale
) -> tuple[tuple[float, float, int], ...]:
    """``(expert, judge, answers)`` of every place that holds an answer, in order. Means stand at the nearest quarter of
    a level, reals at the nearest twentieth of the scale. Answers without either value are left out, classes too."""
    if scale.kind is ScaleKind.CLASS:
        return ()
    step = 0.25 if scale.levels else scale.width / PLACES
    counted = Counter(
        (_nearest(float(theirs), scale, step), _nearest(float(ours), scale, step))
        for ours, theirs in zip(judge, expert_means, strict=True)
        if ours is not None and theirs is not None and scale.holds_mean(float(ours))
    )
    return tuple((expert, judged, count) for (expert, judged), count in sorted(counted.items()))


def _nearest(value: float, scale: Scale, step: float) -> float:
    return scale.low + round((value - scale.low) / step) * step
