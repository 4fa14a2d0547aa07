"""WSGI application, for servers that buffer bodies themselves or run behind a proxy that does.

``serve`` uses ``config/rsgi.py``."""

import os
from importlib import import_module

from django.core.wsgi import get_wsgi_application
from django.utils.module_loading import import_string

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
# Its tables can be imported only after the application is set up.
import_string("evaluation.worker.database.set_statement_timeouts")()
# The views; otherwise the first request waits until they are loaded.
import_module("config.urls")
