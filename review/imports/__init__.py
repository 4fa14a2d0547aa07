"""Ratings and judges' scores that were made elsewhere. Above ``results``' neighbours and ``evidence``.

Door: ``files.import_ratings``.
"""
