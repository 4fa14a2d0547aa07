import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0016_exports_taken'),
    ]

    operations = [
        migrations.AddField(
            model_name='endpointshare',
            name='project',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='evaluation.project'),
        ),
    ]
