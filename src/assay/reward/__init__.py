"""Rewards for reinforcement learning, in the shapes that trainers call."""

from assay.reward.benches import ProgramJudge
from assay.reward.openrlhf import OpenRlhfReward
from assay.reward.rewards import Reward, Score
from assay.reward.tests import own_problem
from assay.reward.trl import TrlReward
from assay.reward.verl import VerlReward

__all__ = [
    "OpenRlhfReward", "ProgramJudge", "Reward", "Score", "TrlReward", "VerlReward", "own_problem",
]  # fmt: skip
