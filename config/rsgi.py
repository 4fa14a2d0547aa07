"""The entrance that ``serve`` starts: ``config/wsgi.py``, with bodies awaited before a thread is taken."""

from django.conf import settings

from config.entrance import Entrance
from config.wsgi import application as wsgi

application = Entrance(wsgi, at_most=5 * settings.CONCORD_UPLOAD_BYTES)
