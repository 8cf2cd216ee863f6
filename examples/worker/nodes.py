"""Two nodes for atelier in plain Python: a picture of a gradient, and a stream of text made loud.

    atelier up --workers 127.0.0.1:7788
    python -m atelier_worker examples/worker/nodes.py --server 127.0.0.1:7788
    atelier run examples/worker/gradient.json
"""

import struct
import zlib
from typing import Iterator

from atelier_worker import Context, Image, Stream, artifact, node


def png(width: int, height: int, pixel) -> bytes:
    """A PNG without any library: eight bits a channel, no interlace."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(value for x in range(width) for value in pixel(x, y)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def color(text: str) -> tuple[int, int, int]:
    """The three numbers of `#rrggbb`."""
    number = int(text.removeprefix("#"), 16)
    return number >> 16 & 255, number >> 8 & 255, number & 255


@node("partner.image.Gradient", artifacts=["output"], save=True, retry_safe=True)
def gradient(ctx: Context, start: str = "#ff8800", end: str = "#0044aa", size: int = 128, count: int = 1) -> Iterator[Image]:
    """Pictures that go from one color to another, each a little further."""
    a, b = color(start), color(end)
    for number in range(count):
        reach = size * (number + 1) / count

        def pixel(x: int, y: int) -> list[int]:
            share = min(1.0, (x + y) / 2 / max(1.0, reach))
            return [round(one + (other - one) * share) for one, other in zip(a, b)]

        ctx.progress(number, count)
        picture = Image(png(size, size, pixel), mime_type="image/png")
        yield artifact(output=picture)
    ctx.progress(count, count)


@node("partner.text.Loud", retry_safe=True)
def loud(texts: Stream[str], ctx: Context, mark: str = "!") -> Iterator[str]:
    """Makes each text of a stream loud as it comes; empty ones are left out."""
    for item in texts.items():
        if item.value:
            yield item.value.upper() + mark
        else:
            ctx.drop("output", item)
