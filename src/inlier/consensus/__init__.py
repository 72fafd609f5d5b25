"""Find the map that most pairs agree on, and say whether chance could have done it.

`models`: the maps; `pairs`: residuals of many pairs; `crowding`: what chance can do at most; `evidence`: what support
is worth; `refine`: from a rough map to the best one near it; `scales`: which scales and tolerances to try; `search`:
where rough maps come from; `outcome`: what it found; `uncertainty`: how far the found one may be off.
"""

from inlier.consensus.evidence import Evidence
from inlier.consensus.models import MapModel
from inlier.consensus.outcome import Consensus
from inlier.consensus.search import find_consensus

__all__ = ["Consensus", "Evidence", "MapModel", "find_consensus"]
