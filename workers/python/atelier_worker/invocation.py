"""One invocation: the node's code in a thread of its own, what it gives out, and what it reads.

Frames are kept until the kernel has accepted them, and sent again over the next stream when one breaks. The code of the
node never notices.
"""

from __future__ import annotations

import asyncio
import collections
import inspect
import logging
import threading
from typing import Any, Iterator

from atelier_worker._proto.atelier.kernel.v1 import event_pb2 as events
from atelier_worker._proto.atelier.kernel.v1 import worker_service_pb2 as pb
from atelier_worker.errors import Cancelled, MediaError, NodeFailure
from atelier_worker.nodes import Context, Node, Outputs, Stream
from atelier_worker.values import Media, from_map, from_value, to_map, to_media, to_value

log = logging.getLogger("atelier_worker")
LOST = {
    "node": pb.FAILURE_KIND_NODE,
    "item": pb.FAILURE_KIND_ITEM,
    "refused": pb.FAILURE_KIND_REFUSED,
}
SEVERITIES = {
    "info": events.SEVERITY_INFO,
    "warning": events.SEVERITY_WARNING,
    "error": events.SEVERITY_ERROR,
}


class Item:
    """A value of a streamed input, and the handle of what it belongs to."""

    __slots__ = ("value", "lineage")

    def __init__(self, value: Any, lineage: bytes):
        self.value, self.lineage = value, lineage


class InputStream(Stream):
    """A streamed input."""

    def __init__(self, invocation: Invocation, name: str):
        self.invocation, self.name = invocation, name
        self.waiting: collections.deque[tuple[int, Item]] = collections.deque()
        self.last, self.ended = -1, False

    def take(self) -> Item | None:
        """The next value; None at the end."""
        return self.invocation.take(self)

    def items(self) -> Iterator[Item]:
        while (item := self.take()) is not None:
            yield item

    def __iter__(self) -> Iterator[Any]:
        for item in self.items():
            yield item.value

    async def __aiter__(self):
        while (item := await asyncio.get_running_loop().run_in_executor(None, self.take)) is not None:
            yield item.value


class Fixed(Stream):
    """A streamed input that nothing is connected to: its static value, once."""

    def __init__(self, values: list[Any]):
        self.values = values

    def items(self) -> Iterator[Item]:
        return (Item(value, b"") for value in self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    async def __aiter__(self):
        for value in self.values:
            yield value


class Invocation(Context):
    """One invocation of a node."""

    def __init__(self, worker: Any, node: Node, message: pb.Invocation):
        self.worker, self.node, self.message = worker, node, message
        self.id, self.job_id, self.node_id = message.invocation_id, message.job_id, message.node_id
        self.node_type, self.invocation_key, self.attempt = message.node_type, message.invocation_key, message.attempt
        self.changed = threading.Condition()
        self.session: Any = None
        self.frames: collections.deque[pb.InvocationFrame] = collections.deque()
        self.ordinal, self.accepted = 0, 0
        self.is_cancelled, self.is_forgotten = False, False
        self.inputs = {name: InputStream(self, name) for name in message.stream_inputs}
        self.lineage: bytes | None = None
        self.fetches: dict[int, dict[str, Any]] = {}
        self.numbers = 0

    # What node code calls.

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled."""
        return self.is_cancelled or self.is_forgotten

    def progress(self, progress: int, total: int) -> None:
        """Tells how far the node is."""
        self.check()
        self.send(progress=pb.FrameProgress(progress=int(progress), total=int(total)))

    def log(self, content: str, severity: str = "info") -> None:
        """Adds a line to the node's log; `severity` is `info`, `warning` or `error`."""
        self.send(log=pb.FrameLog(content=str(content), severity=SEVERITIES[severity]))

    def chunk(self, content: str, *, done: bool = False, thinking: bool = False) -> None:
        """Shows a piece of text that is not an output."""
        self.check()
        self.send(chunk=pb.FrameChunk(content=content, done=done, thinking=thinking))

    def sleep(self, seconds: float) -> None:
        """Waits; ends at once when the run is cancelled."""
        with self.changed:
            self.changed.wait_for(lambda: self.cancelled, seconds)
        self.check()

    def check(self) -> None:
        """Ends the node's code when the run was cancelled."""
        if self.cancelled:
            raise Cancelled

    def emit(self, *result: Any, item: Item | None = None, **values: Any) -> None:
        """Gives values out, as a yield does; of a streamed input's `item`, else of the one that was read last."""
        self.give(self.node.shape(result[0] if result else Outputs(values)), item)

    def forward(self, output: str, item: Item, value: Any = ...) -> None:
        """Gives something out in the place of an item; by default its own value."""
        self.check()
        made = to_value(item.value if value is ... else value, self.upload)
        self.send(forward=pb.FrameForward(output=output, value=made, lineage=item.lineage))

    def drop(self, output: str, item: Item) -> None:
        """Says that nothing comes for an item."""
        self.check()
        self.send(drop=pb.FrameDrop(output=output, lineage=item.lineage))

    def complete(self, output: str) -> None:
        """Ends an output while the node goes on."""
        self.check()
        self.send(complete=pb.FrameComplete(output=output))

    # Frames.

    def send(self, last: bool = False, **body: Any) -> None:
        """Sends a frame; waits while as many as the kernel takes are not accepted."""
        limits = self.worker.limits
        with self.changed:
            self.changed.wait_for(lambda: self.is_forgotten or self.ordinal - self.accepted < limits.frame_window)
            if self.is_forgotten:
                raise Cancelled
            frame = pb.InvocationFrame(invocation_id=self.id, ordinal=self.ordinal, **body)
            size = frame.ByteSize() + 16
            if size > limits.max_message_bytes:
                raise NodeFailure(
                    f"a value of {size} bytes is more than {limits.max_message_bytes}; give it out as media, or in pieces",
                    code="worker.too_large",
                )
            self.ordinal += 1
            self.frames.append(frame)
            if self.session:
                self.session.put(frame=frame)

    def upload(self, data: bytes) -> str:
        """Sends bytes of media; gives the reference that stands for them."""
        limits = self.worker.limits
        if len(data) > limits.max_media_bytes:
            raise NodeFailure(f"media of {len(data)} bytes are more than {limits.max_media_bytes}", code="worker.too_large")
        with self.changed:
            self.numbers += 1
            number = self.numbers
        view = memoryview(data)
        for at in range(0, len(data), limits.max_part_bytes):
            part = bytes(view[at : at + limits.max_part_bytes])
            self.send(media=pb.FrameMedia(upload_id=number, data=part))
        return f"upload:{number}"

    def give(self, made: Outputs, item: Item | None = None) -> None:
        """Sends a yield."""
        self.check()
        values = to_map(made, self.upload)
        frame = pb.FrameYield(values=values)
        lineage = item.lineage if item else self.lineage
        if lineage is not None:
            frame.lineage = lineage
        self.send(values=frame)

    # Inputs.

    def take(self, stream: InputStream) -> Item | None:
        with self.changed:
            self.changed.wait_for(lambda: stream.waiting or stream.ended or self.cancelled)
            self.check()
            if not stream.waiting:
                return None
            number, item = stream.waiting.popleft()
            self.lineage = item.lineage
            self.receipt(number)
            return item

    def receipt(self, number: int) -> None:
        # Lost with a stream, the input comes again and is answered again.
        if self.session:
            self.session.put(input_receipt=pb.InputReceipt(invocation_id=self.id, numbers=[number]))

    def on_input(self, message: pb.InvocationInput) -> None:
        with self.changed:
            stream = self.inputs.get(message.input)
            if stream is None:
                return
            if message.number <= stream.last:
                if all(number != message.number for number, _ in stream.waiting):
                    self.receipt(message.number)
                return
            stream.last = message.number
            if message.HasField("value"):
                value = from_value(message.value, self.fetch)
                stream.waiting.append((message.number, Item(value, message.lineage)))
            else:
                stream.ended = True
                self.receipt(message.number)
            self.changed.notify_all()

    def fetch(self, media: Media) -> bytes:
        """The bytes of a reference, through the kernel."""
        with self.changed:
            self.numbers += 1
            number = self.numbers
            fetch = pb.MediaFetch(invocation_id=self.id, fetch_id=number, media=to_media(media, None))
            asked = self.fetches[number] = {"parts": [], "done": False, "error": None, "message": fetch}
            if self.session:
                self.session.put(media_fetch=fetch)
            self.changed.wait_for(lambda: asked["done"] or self.cancelled)
            del self.fetches[number]
        self.check()
        if asked["error"] is not None:
            raise MediaError(asked["error"])
        return b"".join(asked["parts"])

    def on_part(self, part: pb.MediaPart) -> None:
        with self.changed:
            asked = self.fetches.get(part.fetch_id)
            if asked is None:
                return
            asked["parts"].append(part.data)
            if part.HasField("error"):
                asked["error"] = part.error
            asked["done"] = part.last
            self.changed.notify_all()

    # Streams that come and go.

    def attach(self, session: Any, next_frame: int | None = None) -> None:
        with self.changed:
            self.session = session
            if next_frame is None:
                return
            for frame in self.frames:
                if frame.ordinal >= next_frame:
                    session.put(frame=frame)
            for asked in self.fetches.values():
                asked["parts"].clear()
                session.put(media_fetch=asked["message"])

    def detach(self, session: Any) -> None:
        with self.changed:
            if self.session is session:
                self.session = None

    def on_receipt(self, receipt: pb.FrameReceipt) -> None:
        with self.changed:
            self.accepted = max(self.accepted, receipt.next_frame)
            while self.frames and self.frames[0].ordinal < self.accepted:
                self.frames.popleft()
            self.changed.notify_all()

    def on_cancel(self, forgotten: bool) -> None:
        with self.changed:
            self.is_cancelled = True
            self.is_forgotten = self.is_forgotten or forgotten
            self.changed.notify_all()

    # The node's code.

    def run(self) -> None:
        """Runs the node to its end and sends the last frame."""
        try:
            self.last(self.call())
        except Cancelled:
            self.fail("cancelled", "", pb.FAILURE_KIND_CANCELLED)
        except NodeFailure as failure:
            self.fail(str(failure), failure.code, LOST.get(failure.lost, pb.FAILURE_KIND_NODE))
        except Exception as error:  # Whatever the node's code fails with is its failure, not the worker's.
            log.exception("%s failed", self.node.name)
            self.fail(f"{type(error).__name__}: {error}"[:4000], "", pb.FAILURE_KIND_NODE)

    def fail(self, message: str, code: str, kind: int) -> None:
        try:
            self.send(last=True, failure=pb.FrameFailure(message=message or "failed", code=code, kind=kind))
        except (Cancelled, NodeFailure):
            log.debug("nobody waits for %s", self.id)

    def last(self, result: Any) -> None:
        made = self.node.shape(result) if result is not None else Outputs()
        if self.message.mode == pb.INVOCATION_MODE_PROCESS:
            self.send(last=True, result=to_map(made, self.upload))
            return
        if made:
            self.give(made)
        self.send(last=True, end=pb.FrameEnd())

    def call(self) -> Any:
        result = self.node.function(**self.arguments())
        if inspect.isasyncgen(result):
            return asyncio.run(self.drain(result))
        if inspect.iscoroutine(result):
            return asyncio.run(result)
        if not inspect.isgenerator(result):
            return result
        try:
            return self.collect(result)
        finally:
            result.close()

    def collect(self, result: Iterator[Any]) -> Any:
        whole = Outputs()
        for made in result:
            made = self.node.shape(made)
            if self.message.mode == pb.INVOCATION_MODE_PROCESS:
                whole.update(made)
            else:
                self.give(made)
        return whole or None

    async def drain(self, result: Any) -> Any:
        whole, loop = Outputs(), asyncio.get_running_loop()
        try:
            async for made in result:
                made = self.node.shape(made)
                if self.message.mode == pb.INVOCATION_MODE_PROCESS:
                    whole.update(made)
                else:
                    await loop.run_in_executor(None, self.give, made)
        finally:
            await result.aclose()
        return whole or None

    def arguments(self) -> dict[str, Any]:
        given = from_map(self.message.inputs, self.fetch)
        arguments: dict[str, Any] = {}
        for name in self.node.inputs:
            if name in self.node.streams:
                arguments[name] = self.inputs.get(name) or Fixed([given[name]] if given.get(name) is not None else [])
            elif name in self.inputs:
                item = self.take(self.inputs[name])
                if item is not None:
                    arguments[name] = item.value
                elif name in given:
                    arguments[name] = given[name]
                self.lineage = None
            elif name in given:
                arguments[name] = given[name]
        if self.node.declared.node_type.dynamic_inputs:
            arguments.update({name: value for name, value in given.items() if name not in self.node.inputs})
        if self.node.context:
            arguments[self.node.context] = self
        return arguments
