"""Long time: tokens followed through plateaus of any length to consensus, on the coordinate log t."""

from attnflow.flows.longtime.ensemble import Merges, MergeTimes, merge_times
from attnflow.flows.longtime.method import LongTime
from attnflow.flows.longtime.solve import LongFlow, SolveLong, solve_long
from attnflow.flows.longtime.tree import Tree

__all__ = ["LongFlow", "LongTime", "MergeTimes", "Merges", "SolveLong", "Tree", "merge_times", "solve_long"]
