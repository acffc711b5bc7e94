"""Rewards for reinforcement learning, in the shapes that trainers call."""

from assay.reward.judging import ProgramJudge, Score
from assay.reward.rewards import Reward
from assay.reward.shapes import OpenRlhfReward, TrlReward, VerlReward
from assay.reward.tests import own_problem

__all__ = [
    "OpenRlhfReward", "ProgramJudge", "Reward", "Score", "TrlReward", "VerlReward", "own_problem",
]  # fmt: skip
