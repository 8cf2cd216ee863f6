"""Serves node types of your own to atelier, over gRPC. See `README.md`."""

from atelier_worker.errors import Cancelled, Fatal, MediaError, NodeFailure, Refused
from atelier_worker.nodes import Context, Stream, artifact, node, outputs
from atelier_worker.values import Audio, Document, Image, Media, Video
from atelier_worker.worker import Worker

__all__ = [
    "Audio", "Cancelled", "Context", "Document", "Fatal", "Image", "Media", "MediaError", "NodeFailure", "Refused", "Stream",
    "Video", "Worker", "artifact", "node", "outputs",
]
