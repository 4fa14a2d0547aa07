"""WSGI entrance, for servers that read bodies themselves or stand behind a proxy that does; ``serve`` uses
``config/rsgi.py``."""

import os

from django.core.wsgi import get_wsgi_application
from django.utils.module_loading import import_string

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
import_string("evaluation.worker.database.limit_waits")()  # its tables can be imported from here on only
