"""The entrance that ``serve`` starts: ``config/wsgi.py``, with bodies awaited before a thread is taken."""

from django.conf import settings

from config.entrance import Entrance
from config.wsgi import application as wsgi

ENVELOPE = 1024 * 1024  # what a form adds to its file
LARGEST = max(5 * settings.CONCORD_UPLOAD_BYTES, settings.CONCORD_LARGE_UPLOAD_BYTES + ENVELOPE)
application = Entrance(wsgi, at_most=LARGEST)
