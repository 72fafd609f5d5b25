"""Find the map that most pairs agree on, and say whether chance could have done it.

`find`: the whole, on one screen; `search`: the loop; `candidates`: where rough maps come from; `refine`: from a rough
map to the best one near it; `evidence`: what support is worth, and where pairs that agree tightly end; `pairs`:
residuals of many pairs; `clumps`: whether mistakes come together; `uncertainty`: how far the found map may be off.
"""

from inlier.consensus.evidence import Evidence
from inlier.consensus.find import doubt, find_consensus
from inlier.consensus.refine import Certainty, Consensus
from inlier.consensus.search import as_generator

__all__ = ["Certainty", "Consensus", "Evidence", "as_generator", "doubt", "find_consensus"]
