"""WSGI entrance."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import reverse

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()

# What is loaded for good is not searched for garbage again: that took 0.1 s in the middle of some request.
reverse("home")  # loads every view
gc.collect()
gc.freeze()
