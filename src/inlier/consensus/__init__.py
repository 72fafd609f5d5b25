"""Find the map that most pairs agree on, and say whether chance could have done it.

`search`: the loop; `candidates`: where rough maps come from; `refine`: from a rough map to the best one near it;
`evidence`: what support is worth; `pairs`: residuals of many pairs; `near_misses`: where pairs that agree tightly end;
`uncertainty`: how far the found map may be off.
"""

from inlier.consensus.evidence import Evidence
from inlier.consensus.refine import Consensus
from inlier.consensus.search import as_generator, find_consensus

__all__ = ["Consensus", "Evidence", "as_generator", "find_consensus"]
