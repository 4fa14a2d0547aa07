"""The back office: Django's admin with access by project role instead of the staff flag."""

from django.contrib.admin.apps import AdminConfig


class BackOffice(AdminConfig):
    """Puts Concord's admin site in the place of Django's default one."""

    default_site = "config.back_office.BackOfficeSite"
