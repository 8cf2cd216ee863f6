"""The package without a kernel."""

import asyncio
import pathlib
import sys
import unittest
from typing import Any, AsyncIterator, Iterator, Literal, Optional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from atelier_worker import Context, Image, NodeFailure, Stream, artifact, node, outputs  # noqa: E402
from atelier_worker._proto.atelier.kernel.v1 import worker_service_pb2 as pb  # noqa: E402
from atelier_worker.identity import sign  # noqa: E402
from atelier_worker.invocation import Invocation  # noqa: E402
from atelier_worker.values import from_value, to_map, to_value  # noqa: E402


class Wire:
    """A stream that keeps what is put into it."""

    def __init__(self) -> None:
        self.said: list[pb.ConnectRequest] = []

    def put(self, **message: Any) -> None:
        self.said.append(pb.ConnectRequest(**message))


class Stage:
    """A worker's limits."""

    limits = pb.WorkerWelcome(frame_window=100, max_message_bytes=100_000, max_part_bytes=1000, max_media_bytes=50_000)


def perform(made: Any, mode: int, inputs: dict[str, Any], streams: tuple[str, ...] = ()) -> tuple[Invocation, Wire]:
    message = pb.Invocation(invocation_id="i", mode=mode, inputs=to_map(inputs), stream_inputs=streams)
    invocation, wire = Invocation(Stage(), made, message), Wire()
    invocation.attach(wire)
    return invocation, wire


def bodies(wire: Wire) -> list[str]:
    return [said.frame.WhichOneof("body") for said in wire.said if said.HasField("frame")]


class Values(unittest.TestCase):
    def test_values_come_back_as_they_went(self) -> None:
        for value in [None, True, 0, -(2**63), 1.5, "ä", b"\0", [1, [None]], {"a": {"b": []}}]:
            back = from_value(to_value(value))
            self.assertEqual((back, type(back)), (value, type(value)))

    def test_what_is_no_value_is_refused(self) -> None:
        deep: list[Any] = []
        for _ in range(100):
            deep = [deep]
        for value, error in [(2**63, ValueError), (object(), TypeError), ({1: 2}, TypeError), (deep, ValueError)]:
            with self.assertRaises(error):
                to_value(value)

    def test_media_are_uploaded_when_they_are_large(self) -> None:
        small = to_value(Image(b"x", mime_type="image/png"), lambda data: "upload:1").media_value
        large = to_value(Image(b"x" * 5000), lambda data: f"upload:{len(data)}").media_value
        self.assertEqual((small.data, small.mime_type, large.uri), (b"x", "image/png", "upload:5000"))


class Declared(unittest.TestCase):
    def test_types_come_from_annotations(self) -> None:
        @node("t.Types", register=False)
        def types(ctx: Context, a: int, b: float = 1.0, c: Optional[str] = None, d: list[int] = [], e: Literal["x", "y"] = "x",
                  f: Image = None, g=3, h: int | str = 1) -> Image:
            """Says what it does."""

        kind = types.declared.node_type
        found = {prop.name: (prop.type, prop.required) for prop in kind.properties}
        self.assertEqual(found, {
            "a": ("int", True), "b": ("float", False), "c": ("str", False), "d": ("list[int]", False), "e": ("str", False),
            "f": ("image", False), "g": ("int", False), "h": ("union[int, str]", False),
        })
        self.assertEqual([(output.name, output.type) for output in kind.outputs], [("output", "image")])
        self.assertEqual((kind.title, kind.description, kind.streaming_output), ("Types", "Says what it does.", False))
        self.assertEqual([value.string_value for value in kind.properties[4].values], ["x", "y"])

    def test_generators_and_readers_say_how_outputs_relate(self) -> None:
        @node("t.Gen", register=False)
        def gen() -> Iterator[str]:
            yield ""

        @node("t.Read", register=False)
        async def read(texts: Stream[str]) -> AsyncIterator[str]:
            yield ""

        self.assertTrue(gen.declared.node_type.streaming_output)
        self.assertEqual(gen.declared.output_correlations[0].kind, pb.OUTPUT_CORRELATION_KIND_ITERATION)
        self.assertTrue(read.declared.node_type.streaming_input)
        self.assertEqual(read.declared.output_correlations[0].source, "texts")
        self.assertEqual(read.declared.node_type.properties[0].type, "str")
        with self.assertRaises(ValueError):
            node("t.Bad", correlation="sideways", register=False)(lambda: None)


class Invocations(unittest.TestCase):
    def test_results_and_failures(self) -> None:
        @node("t.Add", register=False)
        def add(a: int, b: int = 2) -> int:
            if a < 0:
                raise NodeFailure("negative", code="t.negative", lost="item")
            return a + b

        invocation, wire = perform(add, pb.INVOCATION_MODE_PROCESS, {"a": 1})
        invocation.run()
        self.assertEqual(from_value(wire.said[0].frame.result.entries[0].value), 3)
        invocation, wire = perform(add, pb.INVOCATION_MODE_PROCESS, {"a": -1})
        invocation.run()
        failure = wire.said[0].frame.failure
        self.assertEqual((failure.message, failure.code, failure.kind), ("negative", "t.negative", pb.FAILURE_KIND_ITEM))
        invocation, wire = perform(add, pb.INVOCATION_MODE_PROCESS, {})
        with self.assertLogs("atelier_worker", "ERROR"):
            invocation.run()
        self.assertIn("TypeError", wire.said[0].frame.failure.message)

    def test_several_outputs_and_markings(self) -> None:
        @node("t.Two", outputs={"a": "int", "b": "int"}, artifacts=["a"], register=False)
        def two(wrong: bool = False):
            yield artifact(a=1)
            yield outputs(a=2, b=3)
            yield artifact(b=1) if wrong else {"b": 4}

        invocation, wire = perform(two, pb.INVOCATION_MODE_STREAM, {})
        invocation.run()
        self.assertEqual(bodies(wire), ["values"] * 3 + ["end"])
        invocation, wire = perform(two, pb.INVOCATION_MODE_STREAM, {"wrong": True})
        with self.assertLogs("atelier_worker", "ERROR"):
            invocation.run()
        self.assertIn("artifacts", wire.said[-1].frame.failure.message)

    def test_async_code_and_cancels(self) -> None:
        @node("t.Async", register=False)
        async def numbers(ctx: Context) -> AsyncIterator[int]:
            yield 1
            await asyncio.sleep(0)
            ctx.on_cancel(False)
            yield 2

        invocation, wire = perform(numbers, pb.INVOCATION_MODE_STREAM, {})
        invocation.run()
        self.assertEqual(bodies(wire), ["values", "failure"])
        self.assertEqual(wire.said[-1].frame.failure.kind, pb.FAILURE_KIND_CANCELLED)

    def test_too_large_values_fail_and_media_go_in_parts(self) -> None:
        @node("t.Large", register=False)
        def large(media: bool = False) -> Any:
            return Image(b"x" * 5000) if media else "x" * 200_000

        invocation, wire = perform(large, pb.INVOCATION_MODE_PROCESS, {"media": True})
        invocation.run()
        self.assertEqual(bodies(wire), ["media"] * 5 + ["result"])
        invocation, wire = perform(large, pb.INVOCATION_MODE_PROCESS, {})
        invocation.run()
        self.assertEqual(wire.said[-1].frame.failure.code, "worker.too_large")

    def test_streams_are_read_once_and_answered_when_read(self) -> None:
        @node("t.Stream", register=False)
        def stream(texts: Stream[str], mark: str = "!") -> Iterator[str]:
            for text in texts:
                yield text + mark

        invocation, wire = perform(stream, pb.INVOCATION_MODE_RUN, {"mark": "?"}, ("texts",))
        for number in (0, 0, 1):
            invocation.on_input(pb.InvocationInput(number=number, input="texts", value=to_value(f"t{number}"), lineage=bytes([number])))
        invocation.on_input(pb.InvocationInput(number=2, input="texts"))
        invocation.run()
        yields = [said.frame.values for said in wire.said if said.frame.WhichOneof("body") == "values"]
        self.assertEqual([(from_value(made.values.entries[0].value), made.lineage) for made in yields], [("t0?", b"\0"), ("t1?", b"\1")])
        receipts = [number for said in wire.said for number in said.input_receipt.numbers]
        self.assertEqual(sorted(receipts), [0, 1, 2])

    def test_what_was_not_accepted_is_sent_again(self) -> None:
        @node("t.Gen3", register=False)
        def gen() -> Iterator[int]:
            yield from range(3)

        invocation, wire = perform(gen, pb.INVOCATION_MODE_STREAM, {})
        invocation.run()
        invocation.on_receipt(pb.FrameReceipt(next_frame=1))
        invocation.detach(wire)
        second = Wire()
        invocation.attach(second, 2)
        self.assertEqual([said.frame.ordinal for said in second.said], [2, 3])
        self.assertEqual([frame.ordinal for frame in invocation.frames], [1, 2, 3])


class Identity(unittest.TestCase):
    def test_a_signature_has_the_form_that_services_read(self) -> None:
        body, signature = sign("a secret of some length", "42").split(".")
        self.assertTrue(body and len(signature) == 43)


if __name__ == "__main__":
    unittest.main()
