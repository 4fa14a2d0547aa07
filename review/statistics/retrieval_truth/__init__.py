"""Retrieval metrics from a rated sample of the pooled passages: pool, draw, and estimates with intervals.

Pure numpy. Entry points: ``pool.Pool``, ``drawing.draw_passages``, ``estimating.estimate``. ``docs/retrieval-truth.md``
has the formulas and a worked example."""
