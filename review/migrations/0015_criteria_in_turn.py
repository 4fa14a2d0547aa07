import django.db.models.deletion
from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0025_imported_judges_that_count'),
        ('review', '0014_turns_at_looks_and_licences'),
    ]

    operations = [
        migrations.AddField(
            model_name='draw',
            name='metric',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.metricdefinition'),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='asks',
            field=models.JSONField(default=list),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
