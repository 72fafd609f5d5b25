"""One slip explains many rows: lines lost or put in, blocks exchanged or turned round, plates put in the wrong way.

Families of slips are `lanes`, where rows of y stand beside rows of x; `path` is the best way through them;
`significance` says whether chance could have made it; `find` is the whole, `whole` where to begin, `slip` what is told.
"""
