"""Background tasks of runs, uploads and accounts."""

from __future__ import annotations

from evaluation.accounts.audit import seal_old_rows
from evaluation.extensions import Feature
from evaluation.runs import large_uploads

FEATURE = Feature(
    name="evaluation",
    jobs=(large_uploads.process_upload,),
    periodic=(large_uploads.delete_unused_chunks, seal_old_rows),
)
