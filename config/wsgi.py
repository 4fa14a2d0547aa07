"""WSGI entrance."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from config.drain_request_body import read_to_the_end

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = read_to_the_end(get_wsgi_application(), at_most=5 * settings.CONCORD_UPLOAD_BYTES)
