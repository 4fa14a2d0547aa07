"""The report of a run in every format, gates, and exports of a queue's items."""
