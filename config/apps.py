"""The back office: Django's admin with access by project role instead of the staff flag."""

from django.contrib.admin.apps import SimpleAdminConfig


class BackOffice(SimpleAdminConfig):
    """Puts Concord's admin site in the place of Django's default one; ``config/urls.py`` fills it."""

    default_site = "config.back_office.BackOfficeSite"
