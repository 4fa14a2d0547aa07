import django.db.models.deletion
import django.utils.timezone
import uuid
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
                name='JudgeBatch',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='batches', to='evaluation.run')),
                    ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.endpoint')),
                    ('model', models.CharField(max_length=200)),
                    ('mark', models.UUIDField(default=uuid.uuid4, unique=True)),
                    ('state', models.CharField(choices=[('made', 'preparing'), ('uploaded', 'file uploaded'), ('creating', 'creating'), ('sent', 'processing'), ('ended', 'ended'), ('dropped', 'not sent'), ('lost', 'lost')], default='made', max_length=10)),
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
                    ('cancel_requested', models.BooleanField(default=False)),
                    ('poll_count', models.PositiveIntegerField(default=0)),
                    ('next_at', models.DateTimeField(null=True)),
                    ('busy_until', models.DateTimeField(null=True)),
                ],
                options={
                    'verbose_name_plural': 'judge batches',
                    'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['made', 'uploaded', 'creating', 'sent', 'ended', 'dropped', 'lost'])), name='known_batch_state'), models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['sent', 'ended']), _negated=True), models.Q(('provider_id', ''), _negated=True), _connector='OR'), name='sent_batch_has_its_id'), models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['dropped', 'lost']), _negated=True), models.Q(('reason', ''), _negated=True), _connector='OR'), name='unsent_batch_says_why')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='BatchLine',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('batch', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='requests', to='batches.judgebatch')),
                    ('attempt', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='line', to='evaluation.attempt')),
                    ('digest', models.CharField(db_index=True, max_length=64)),
                    ('in_file', models.BooleanField(default=True)),
                ],
                options={
                    'abstract': False,
                    'indexes': [],
                    'constraints': [],
                },
            ),
        ]),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
