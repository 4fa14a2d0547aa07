"""The report of a run in every format, gates, and exports of a queue's items.

Used by others: ``load_inputs``, ``build_report``, ``REPORT_EXPORTS`` and ``item_export``."""
