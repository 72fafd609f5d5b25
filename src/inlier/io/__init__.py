"""Reading and writing files."""

from inlier.io.atomic import write_file

__all__ = ["write_file"]
