"""A site starts with one project, so that the first question set can be imported without the back office."""

from django.conf import settings
from django.db import migrations
from django.utils import translation
from django.utils.translation import gettext


def make_first(apps, schema_editor):
    projects = apps.get_model("evaluation", "Project").objects
    if not projects.exists():
        with translation.override(settings.LANGUAGE_CODE):
            projects.create(name=gettext("First project"))


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0022_default_judge_of_project")]

    operations = [migrations.RunPython(make_first, migrations.RunPython.noop)]
