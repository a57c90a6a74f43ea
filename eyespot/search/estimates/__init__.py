"""Answers by group: how many photos of each month, place or species are relevant, from a few dozen verdicts.

plan = plan_groups(months, looks=120)  # the month of each unit, best-ranked first
found = estimate(plan, [judge(unit) for unit in plan.units])  # 0, 1, or NaN for what nobody can tell
found.groups[7].share  # median, low, high

Units are photos, or bursts and observations that count once.
"""

from eyespot.search.calibration.curve import Interval
from eyespot.search.estimates.estimating import GroupedEstimate, GroupEstimate, estimate
from eyespot.search.estimates.pairs import GroupPair, looks_needed
from eyespot.search.estimates.planning import UNKNOWN, GroupPlan, plan_groups

__all__ = [
    "UNKNOWN",
    "GroupEstimate",
    "GroupPair",
    "GroupPlan",
    "GroupedEstimate",
    "Interval",
    "estimate",
    "looks_needed",
    "plan_groups",
]
