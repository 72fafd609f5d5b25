"""Find the map that most pairs agree on, and say whether chance could have done it.

`find`: the whole, on one screen; `search`: the loop; `candidates`: where rough maps come from; `refine`: from a rough
map to the best one near it; `evidence`: what support is worth, and where pairs that agree tightly end; `pairs`:
residuals of many pairs; `clumps`: whether mistakes come together; `uncertainty`: how far the found map may be off.
"""
