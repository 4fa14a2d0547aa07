import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from evaluation.storage import append_only
from evaluation.storage.tables import CreateTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('evaluation', '0001_initial'),
    ]

    operations = [
        CreateTables([
            migrations.CreateModel(
                name='PracticeProgress',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='practice', to=settings.AUTH_USER_MODEL, verbose_name='person')),
                    ('given', models.JSONField(default=dict, verbose_name='levels given')),
                    ('rounds', models.PositiveIntegerField(default=0, verbose_name='times completed')),
                ],
                options={
                    'verbose_name': 'practice progress',
                    'verbose_name_plural': 'practice progress',
                    'indexes': [],
                    'constraints': [],
                },
            ),
        ]),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
