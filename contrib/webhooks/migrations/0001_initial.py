import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models

from evaluation.storage.tables import CreateTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('evaluation', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        CreateTables([
            migrations.CreateModel(
                name='Webhook',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('url', models.CharField(max_length=2000)),
                    ('sealed_secret', models.TextField()),
                    ('events', models.JSONField(default=list)),
                    ('is_active', models.BooleanField(default=True)),
                    ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='webhooks', to='evaluation.project')),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='Delivery',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('message_id', models.UUIDField(default=uuid.uuid4, unique=True)),
                    ('event', models.CharField(choices=[('run.finished', 'Run finished'), ('gate.failed', 'Gate not passed'), ('queue.finished', 'Review queue finished'), ('review.overdue', 'Review overdue'), ('judge.drifted', 'Judge drifted'), ('test', 'Test message')], max_length=20)),
                    ('subject', models.CharField(max_length=200)),
                    ('body', models.TextField()),
                    ('state', models.CharField(choices=[('waiting', 'waiting'), ('delivered', 'delivered'), ('failed', 'failed')], default='waiting', max_length=10)),
                    ('attempts', models.PositiveSmallIntegerField(default=0)),
                    ('next_at', models.DateTimeField()),
                    ('status', models.PositiveSmallIntegerField(null=True)),
                    ('problem', models.CharField(blank=True, max_length=100)),
                    ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='webhooks.webhook')),
                ],
                options={
                    'verbose_name_plural': 'deliveries',
                    'indexes': [models.Index(fields=['webhook', 'state', 'next_at'], name='waiting_deliveries')],
                    'constraints': [models.UniqueConstraint(fields=('webhook', 'event', 'subject'), name='one_message_per_event'), models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'delivered', 'failed'])), name='known_state_of_delivery')],
                },
            ),
        ]),
    ]
