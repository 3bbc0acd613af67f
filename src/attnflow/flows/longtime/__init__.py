"""Long time: tokens followed through plateaus of any length to consensus, on the coordinate log t."""

from attnflow.flows.longtime.ensemble import merge_times
from attnflow.flows.longtime.method import LongTime
from attnflow.flows.longtime.tree import Tree

__all__ = ["LongTime", "Tree", "merge_times"]
