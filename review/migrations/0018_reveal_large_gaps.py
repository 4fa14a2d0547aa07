from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('review', '0017_tokens_that_wrote'),
    ]

    operations = [
        migrations.AlterField(
            model_name='reviewqueue',
            name='reveal_threshold',
            field=models.FloatField(default=3.0, verbose_name='difference that shows the judge'),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
