"""The report of a run and every format it is written in, and exports of a queue's items.

Above ``decisions`` and ``results``.

Door: ``gathering.gather``, ``report.report_of``, ``exporting.REPORT_EXPORTS``, ``item_export``.
"""
