from django.db import migrations, models

import plans.models.fields


class Migration(migrations.Migration):

    dependencies = [
        ('plans', '0004_completion_checks'),
    ]

    operations = [
        # jsonb forgets the order of keys; results are to be the same to the byte.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    'ALTER TABLE plans_runstep ALTER COLUMN output TYPE json USING output::json',
                    'ALTER TABLE plans_runstep ALTER COLUMN output TYPE jsonb USING output::jsonb',
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name='runstep',
                    name='output',
                    field=plans.models.fields.ExactJSONField(blank=True, null=True),
                ),
            ],
        ),
        migrations.AddField(
            model_name='runstep',
            name='root_position',
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
