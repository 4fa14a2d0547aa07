import uuid

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0017_projects_of_shares'),
    ]

    operations = [
        migrations.CreateModel(
            name='BatchLine',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('digest', models.CharField(db_index=True, max_length=64)),
                ('in_file', models.BooleanField(default=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='JudgeBatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('model', models.CharField(max_length=200)),
                ('mark', models.UUIDField(default=uuid.uuid4, unique=True)),
                ('state', models.CharField(choices=[('made', 'being made'), ('uploaded', 'file handed over'), ('creating', 'being created'), ('sent', 'out'), ('ended', 'ended'), ('dropped', 'never sent'), ('lost', 'lost')], default='made', max_length=10)),
                ('reason', models.CharField(blank=True, max_length=100)),
                ('file_id', models.CharField(blank=True, max_length=200)),
                ('file_sha256', models.CharField(blank=True, max_length=64)),
                ('provider_id', models.CharField(blank=True, max_length=200)),
                ('status', models.CharField(blank=True, max_length=20)),
                ('lines', models.PositiveIntegerField(default=0)),
                ('done', models.PositiveIntegerField(default=0)),
                ('failed', models.PositiveIntegerField(default=0)),
                ('sent_at', models.DateTimeField(null=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('cancel_asked', models.BooleanField(default=False)),
                ('looks', models.PositiveIntegerField(default=0)),
                ('next_at', models.DateTimeField(null=True)),
                ('busy_until', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name_plural': 'judge batches',
            },
        ),
        migrations.RemoveConstraint(
            model_name='workunit',
            name='known_unit_state',
        ),
        migrations.AddField(
            model_name='endpoint',
            name='batches',
            field=models.BooleanField(default=False, help_text='The server offers batches (/v1/files, /v1/batches): cheaper calls that may take a day.', verbose_name='takes batches'),
        ),
        migrations.AlterField(
            model_name='workunit',
            name='state',
            field=models.CharField(choices=[('blocked', 'waiting for another step'), ('todo', 'waiting'), ('leased', 'in work'), ('batched', 'out in a batch'), ('done', 'done'), ('failed', 'failed'), ('skipped', 'skipped')], default='todo', max_length=8),
        ),
        migrations.AddConstraint(
            model_name='workunit',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['blocked', 'todo', 'leased', 'batched', 'done', 'failed', 'skipped'])), name='known_unit_state'),
        ),
        migrations.AddField(
            model_name='batchline',
            name='attempt',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='line', to='evaluation.attempt'),
        ),
        migrations.AddField(
            model_name='judgebatch',
            name='endpoint',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.endpoint'),
        ),
        migrations.AddField(
            model_name='judgebatch',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='batches', to='evaluation.run'),
        ),
        migrations.AddField(
            model_name='batchline',
            name='batch',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='requests', to='evaluation.judgebatch'),
        ),
        migrations.AddConstraint(
            model_name='judgebatch',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['made', 'uploaded', 'creating', 'sent', 'ended', 'dropped', 'lost'])), name='known_batch_state'),
        ),
        migrations.AddConstraint(
            model_name='judgebatch',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['sent', 'ended']), _negated=True), models.Q(('provider_id', ''), _negated=True), _connector='OR'), name='sent_batch_has_its_id'),
        ),
        migrations.AddConstraint(
            model_name='judgebatch',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['dropped', 'lost']), _negated=True), models.Q(('reason', ''), _negated=True), _connector='OR'), name='unsent_batch_says_why'),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
