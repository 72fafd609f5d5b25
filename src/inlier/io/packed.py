"""How much a compressed stream unpacks to: read off its header, or counted without keeping anything."""

from __future__ import annotations

import struct
import zlib
from typing import BinaryIO

# What one byte can become at most: deflate's longest copies; zstd's blocks of 128 KiB that are four bytes long.
DEFLATE_RATIO, BLOCK_RATIO = 1100, 32768
_STEP = 1024**2  # bytes that are unpacked at a time
_ZSTD = b"\x28\xb5\x2f\xfd"


def deflated_size(stream: BinaryIO, most: int) -> int:
    """Bytes that zlib or gzip streams unpack to; counting stops when there are more than ``most``."""
    produced = 0
    unpacker = zlib.decompressobj(wbits=47)  # the header says which of the two
    while data := unpacker.unconsumed_tail or unpacker.unused_data or stream.read(_STEP):
        if unpacker.eof:  # several streams one after the other count as one file
            unpacker = zlib.decompressobj(wbits=47)
        try:
            produced += len(unpacker.decompress(data, _STEP))
        except zlib.error:  # damaged: the reader will say so
            return produced
        if produced > most:
            break
    return produced


def announced_size(kind: str, head: bytes) -> int:
    """Bytes that a blosc or zstd stream announces in its first 18; 0 where it does not say, as zstd need not."""
    if kind == "blosc":
        return int(struct.unpack_from("<I", head, 4)[0]) if len(head) >= 16 and head[0] in (1, 2) else 0
    if not head.startswith(_ZSTD) or len(head) < 6:
        return 0
    flags = head[4]
    is_single, width = bool(flags & 32), (1, 2, 4, 8)[flags >> 6]
    if flags >> 6 == 0 and not is_single:
        return 0
    start = 5 + (not is_single) + (0, 1, 2, 4)[flags & 3]
    field = head[start : start + width]
    return int.from_bytes(field, "little") + (256 if width == 2 else 0)
