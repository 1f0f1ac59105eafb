"""Make a screenshot small: at most 256 colours, each pixel the nearest of those that most pixels have."""

from __future__ import annotations

import struct
import zlib
from collections import Counter

_HEAD = b"\x89PNG\r\n\x1a\n"


def small(png: bytes) -> bytes:
    """Return a picture of 8 bits a channel with a palette."""
    width, height, channels, rows = _read(png)
    pixels = [row[at : at + 3] for row in rows for at in range(0, width * channels, channels)]
    counted, commonest = Counter(pixels), dict[bytes, bytes]()
    for pixel, _ in counted.most_common():
        commonest.setdefault(_coarse(pixel), pixel)
    weights = Counter[bytes]()
    for pixel, times in counted.items():
        weights[commonest[_coarse(pixel)]] += times
    palette = [colour for colour, _ in weights.most_common(256)]
    near = {colour: _nearest(colour, palette) for colour in weights}
    places = {pixel: near[commonest[_coarse(pixel)]] for pixel in counted}
    flat = bytes(places[pixel] for pixel in pixels)
    lines = b"".join(b"\0" + flat[at : at + width] for at in range(0, len(flat), width))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return _HEAD + b"".join(_chunk(kind, data) for kind, data in parts)


def _coarse(pixel: bytes) -> bytes:
    """Return what pixels have in common that nobody tells apart."""
    return bytes(part & 0xFC for part in pixel)


def _nearest(colour: bytes, palette: list[bytes]) -> int:
    if colour in palette:
        return palette.index(colour)
    distances = [sum((one - other) ** 2 for one, other in zip(colour, known, strict=True)) for known in palette]
    return distances.index(min(distances))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _read(png: bytes) -> tuple[int, int, int, list[bytes]]:
    """Return width, height, channels and the rows of a picture, without their filters."""
    at, data, head = len(_HEAD), b"", b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        head = body if kind == b"IHDR" else head
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB", head[:10])
    if depth != 8 or colour not in {2, 6}:
        raise ValueError(f"a picture of {depth} bits and colour type {colour} is not read here")
    channels = 3 if colour == 2 else 4
    raw, size = zlib.decompress(data), width * channels
    rows, before = [], bytes(size)
    for number in range(height):
        start = number * (size + 1)
        before = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + size]), before, channels)
        rows.append(before)
    return width, height, channels, rows


def _unfiltered(kind: int, row: bytearray, above: bytes, step: int) -> bytes:
    for at in range(len(row)):
        left = row[at - step] if at >= step else 0
        corner = above[at - step] if at >= step else 0
        row[at] = (row[at] + _foreseen(kind, left, above[at], corner)) & 255
    return bytes(row)


def _foreseen(kind: int, left: int, above: int, corner: int) -> int:
    """Return what a filter of PNG foresees of a byte."""
    if kind < 4:
        return (0, left, above, (left + above) // 2)[kind]
    guess = left + above - corner
    return min((left, above, corner), key=lambda known: abs(guess - known))
