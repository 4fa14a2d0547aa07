"""RSGI application that ``serve`` starts: ``config/wsgi.py`` with buffered request bodies."""

from django.conf import settings

from config.rsgi_adapter import BufferedRSGIAdapter
from config.wsgi import application as wsgi

# Allowance for the other fields and boundaries of a multipart form.
FORM_OVERHEAD_BYTES = 1024 * 1024
MAX_BODY_BYTES = max(5 * settings.CONCORD_UPLOAD_BYTES, settings.CONCORD_LARGE_UPLOAD_BYTES + FORM_OVERHEAD_BYTES)
application = BufferedRSGIAdapter(wsgi, max_body_bytes=MAX_BODY_BYTES, trusted_proxies=settings.CONCORD_TRUSTED_PROXIES)
