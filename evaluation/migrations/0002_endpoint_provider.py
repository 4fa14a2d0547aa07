import evaluation.models.judges
from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='endpoint',
            name='provider',
            field=models.CharField(choices=evaluation.models.judges.provider_choices, default='openai', max_length=40, verbose_name='provider'),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
