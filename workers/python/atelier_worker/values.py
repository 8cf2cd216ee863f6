"""Values of Python and values on the wire.

None, bool, int, float, str, bytes, lists and dicts with text keys map one to one; media are `Media`.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Iterable, Mapping

from atelier_worker._proto.atelier.common.v1 import value_pb2 as pb
from atelier_worker.errors import MediaError

MAX_DEPTH = 60
KINDS = ("image", "audio", "video", "text", "html", "document", "model_3d", "folder", "sketch", "timeline")


class Media:
    """Media by reference, or with the bytes that a node made.

    `Image(data=png, mime_type="image/png")` makes some; `image.read()` gives the bytes of an input.
    """

    kind = "document"

    def __init__(self, data: bytes | None = None, *, uri: str = "", asset_id: str | None = None,
                 mime_type: str | None = None, kind: str | None = None, extra: Mapping[str, Any] | None = None):
        self.data, self.uri, self.asset_id, self.mime_type = data, uri, asset_id, mime_type
        self.kind = kind or type(self).kind
        self.extra = dict(extra or {})
        self._fetch: Callable[[Media], bytes] | None = None

    def read(self) -> bytes:
        """The bytes; fetched through the kernel where they are not here."""
        if self.data is None:
            if self._fetch is None:
                raise MediaError("the reference belongs to no invocation")
            self.data = self._fetch(self)
        return self.data

    def __repr__(self) -> str:
        size = f"{len(self.data)} bytes" if self.data is not None else self.uri
        return f"<{self.kind} {size}>"


class Image(Media):
    """A picture."""
    kind = "image"


class Audio(Media):
    """A sound."""
    kind = "audio"


class Video(Media):
    """A film."""
    kind = "video"


class Document(Media):
    """A document."""


CLASSES = {"image": Image, "audio": Audio, "video": Video, "document": Document}


def to_value(value: Any, upload: Callable[[bytes], str] | None = None, depth: int = 0) -> pb.Value:
    """The message of a value. `upload` takes large bytes of media and gives the reference to them."""
    if depth > MAX_DEPTH:
        raise ValueError(f"a value is nested more than {MAX_DEPTH} levels deep")
    if value is None:
        return pb.Value(null_value=pb.NULL_VALUE_UNSPECIFIED)
    if isinstance(value, bool):
        return pb.Value(bool_value=value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError("an integer does not fit into 64 bits")
        return pb.Value(int_value=value)
    if isinstance(value, float):
        return pb.Value(double_value=value)
    if isinstance(value, str):
        return pb.Value(string_value=value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return pb.Value(bytes_value=bytes(value))
    if isinstance(value, Media):
        return pb.Value(media_value=to_media(value, upload, depth))
    if isinstance(value, Mapping):
        return pb.Value(map_value=to_map(value, upload, depth + 1))
    if isinstance(value, Iterable):
        return pb.Value(list_value=pb.ListValue(values=[to_value(item, upload, depth + 1) for item in value]))
    raise TypeError(f"{type(value).__name__} is no value that can be given out")


def to_map(values: Mapping[str, Any], upload: Callable[[bytes], str] | None = None, depth: int = 0) -> pb.MapValue:
    """The message of a map."""
    entries = []
    for key, value in values.items():
        if not isinstance(key, str):
            raise TypeError(f"the key {key!r} of a map is no text")
        entries.append(pb.MapEntry(key=key, value=to_value(value, upload, depth)))
    return pb.MapValue(entries=entries)


def to_media(media: Media, upload: Callable[[bytes], str] | None, depth: int = 0) -> pb.MediaRef:
    """The message of a reference."""
    made = media.data is not None and not media.uri and not media.asset_id
    message = pb.MediaRef(type=media.kind, uri=media.uri)
    if media.asset_id:
        message.asset_id = media.asset_id
    if media.mime_type:
        message.mime_type = media.mime_type
    if made and upload and len(media.data) > 4096:
        message.uri = upload(media.data)
    elif made:
        message.data = media.data
    if media.extra:
        message.extra.CopyFrom(to_map(media.extra, upload, depth + 1))
    return message


def from_value(value: pb.Value, fetch: Callable[[Media], bytes] | None = None) -> Any:
    """A value of a message; media fetch their bytes with `fetch`."""
    kind = value.WhichOneof("kind")
    if kind is None or kind == "null_value":
        return None
    if kind == "list_value":
        return [from_value(item, fetch) for item in value.list_value.values]
    if kind == "map_value":
        return from_map(value.map_value, fetch)
    if kind == "media_value":
        return from_media(value.media_value, fetch)
    return getattr(value, kind)


def from_map(values: pb.MapValue, fetch: Callable[[Media], bytes] | None = None) -> dict[str, Any]:
    """A map of a message."""
    return {entry.key: from_value(entry.value, fetch) for entry in values.entries}


def from_media(message: pb.MediaRef, fetch: Callable[[Media], bytes] | None) -> Media:
    """A reference of a message."""
    media = CLASSES.get(message.type, Media)(
        message.data if message.HasField("data") else None,
        uri=message.uri,
        asset_id=message.asset_id if message.HasField("asset_id") else None,
        mime_type=message.mime_type if message.HasField("mime_type") else None,
        kind=message.type or None,
        extra=from_map(message.extra, fetch),
    )
    media._fetch = fetch
    return media


def type_of(value: Any) -> str:
    """The type of a default value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "any" if math.isnan(value) else "float"
    if isinstance(value, str):
        return "str"
    return "any"
