"""Retrieval figures when only a sample of the pooled passages was rated: the pool, the draw, the figures with
intervals.

Pure numpy. Door: ``pool.Pool``, ``drawing.draw_passages``, ``estimating.estimate``. ``docs/retrieval-truth.md`` has the
formulas with a worked example.
"""
