"""Who is called and does not answer: since when, and how the last call ended."""

from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0027_tokens_of_their_makers'),
    ]

    operations = [
        migrations.AddField(
            model_name='endpoint',
            name='down_since',
            field=models.DateTimeField(blank=True, editable=False, null=True, verbose_name='not answering since'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='fault',
            field=models.CharField(blank=True, default='', editable=False, max_length=30, verbose_name='last fault'),
        ),
        migrations.AddField(
            model_name='system',
            name='down_since',
            field=models.DateTimeField(blank=True, editable=False, null=True, verbose_name='not answering since'),
        ),
        migrations.AddField(
            model_name='system',
            name='fault',
            field=models.CharField(blank=True, default='', editable=False, max_length=30, verbose_name='last fault'),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
