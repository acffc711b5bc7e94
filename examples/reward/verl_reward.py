"""A reward for verl: programs are judged by assay, in batches, in one warm sandbox per process.

    python -m verl.trainer.main_ppo \
        custom_reward_function.path=examples/reward/verl_reward.py \
        custom_reward_function.name=compute_score ...

With verl's batch reward manager (``reward_manager.name=batch``), name ``compute_scores`` instead.

The rows of the dataset have ``data_source``, the name of a benchmark, and
``reward_model.ground_truth``, one of its task ids. Alternatively, ``ground_truth`` is JSON with
your own tests. docs/guides/rewards.md lists the fields, which include verl's ``inputs``,
``outputs``, ``fn_name`` and ``assert_case``.
"""

from assay.reward import VerlReward

compute_score = VerlReward(partial=True)
compute_scores = compute_score.batch
