"""The back office: Django's admin with access by project role instead of the staff flag."""

from django.contrib.admin.apps import SimpleAdminConfig


class BackOffice(SimpleAdminConfig):
    """Replaces Django's default admin site by Concord's; ``config/urls.py`` fills it."""

    default_site = "config.back_office.BackOfficeSite"
