"""A reward for OpenRLHF: programs are judged by assay, in one warm sandbox per process.

    python -m openrlhf.cli.train_ppo_ray \
        --reward.remote_url examples/reward/openrlhf_reward.py \
        --data.label_key tests ...

The column that ``--data.label_key`` names has JSON with your own tests, or with ``benchmark`` and
``task_id``. docs/guides/rewards.md lists the fields.
"""

from assay.reward import OpenRlhfReward

reward_func = OpenRlhfReward(partial=True)
