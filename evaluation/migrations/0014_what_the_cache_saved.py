from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0013_expected_levels'),
    ]

    operations = [
        migrations.AddField(
            model_name='reply',
            name='saved',
            field=models.DecimalField(decimal_places=8, max_digits=14, null=True),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
