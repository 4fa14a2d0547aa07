"""Versioned corpora: documents split into chunks with stable ids and positions, and a reference system that answers
from them.

Public interface: ``importing.import_corpus``, ``selectors`` (``get_corpus``, ``get_chunks``), ``splitting``,
``indexing`` and ``corpus_search`` (BM25 and vectors), ``chunk_mapping`` (chunks in another version)."""
