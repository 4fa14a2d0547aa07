"""REST of the machine's half, and what both halves' REST shares: endpoints, pages, parsers, errors. An entrance.

Door for ``review.api``: ``endpoints.Endpoint``, ``pages.Pages``, ``uploading.UploadEndpoint``, ``errors``.
"""
