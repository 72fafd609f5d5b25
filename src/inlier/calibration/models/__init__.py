"""What can be learned from pairs of which many are wrong: a linear map, two ridges, anchors; and which of them is."""
