"""Corpora: documents split into chunks with stable ids and places, as versions; what is searched and cited. And the
reference system, which answers from a corpus.

Door: ``importing.import_corpus``, ``selectors`` (``corpus_named``, ``chunks_named``), ``splitting``,
``indexing`` and ``searching`` (BM25 and vectors), ``rechunking`` (known passages in another version).
"""
