"""Leads who opened the sealed labels of a hold-out."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0032_reasons_of_judge_checks_of_any_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='HoldOutOpening',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('lineage', models.CharField(max_length=100)),
                ('families', models.JSONField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='made by')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.project')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'lineage', 'created_by'), name='one_opening_per_person')],
            },
        ),
    ]
