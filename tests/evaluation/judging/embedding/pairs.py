"""Pairs of texts with the figures of the ``bert-score`` package 0.3.13 on the model of ``tiny.py``.

``test_against_bert_score.py`` computes them again where the package is installed. Pair by pair (``batch_size=1``): in
larger batches the package pads, and padding lifts a best cosine below 0 to 0 (0.3212 for 0.2995 in the last row).
"""

from __future__ import annotations

Triple = tuple[float, float, float]

PAIRS = (
    ("The fund tracks an index of large companies.", "The fund pays a dividend every quarter."),
    ("the price rises today", "the price falls today"),
    ("The index is good.", "The index is good."),
    ("small companies pays and tracks, every month , not bad?", "a dividend"),
)
#: layer -> precision, recall and F1 of each pair
FIGURES: dict[int, tuple[Triple, ...]] = {
    1: (
        (0.897437, 0.913627, 0.905460),
        (0.991801, 0.991801, 0.991801),
        (1.0, 1.0, 1.0),
        (0.299453, 0.810912, 0.437388),
    ),
    2: (
        (0.980058, 0.989889, 0.984949),
        (0.995275, 0.995559, 0.995417),
        (1.0, 1.0, 1.0),
        (0.785477, 0.830645, 0.807430),
    ),
    3: (
        (0.988917, 0.994903, 0.991901),
        (0.999193, 0.999155, 0.999174),
        (1.0, 1.0, 1.0),
        (0.910202, 0.939137, 0.924443),
    ),
}
CLOSE = 2e-6  # single precision, added up in another order
