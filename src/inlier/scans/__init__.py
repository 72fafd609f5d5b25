"""Many scans in, one model out: pairs that are asked, loops that check them, poses, and what does not belong."""
