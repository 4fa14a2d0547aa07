"""The report of a run in every format, gates, and exports of a queue's items.

Used by others: ``gathering.gather``, ``report.report_of``, ``exporting.REPORT_EXPORTS``, ``item_export``.
"""
