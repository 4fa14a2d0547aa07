"""Expert repair of retrieval labels: a pool of retrieved passages, blind ratings of a sample, and corrected figures.

``pooling`` creates a repair, ``rating`` serves passages to raters, ``results`` computes figures, ``acceptance`` copies
the labels into the question set."""
