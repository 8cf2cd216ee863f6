"""The worker: keeps a stream to the kernel, and goes on over a new one when it breaks."""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
import uuid
from typing import Any, Iterable

import grpc

from atelier_worker import identity
from atelier_worker._proto.atelier.kernel.v1 import worker_service_pb2 as pb
from atelier_worker.errors import Fatal
from atelier_worker.invocation import Invocation
from atelier_worker.nodes import REGISTERED, Node

log = logging.getLogger("atelier_worker")
METHOD = "/atelier.kernel.v1.WorkerService/Connect"
# Largest message that is taken, in bytes; what the kernel sends is smaller.
MAX_MESSAGE = 64 * 1024 * 1024
# Pauses between tries to connect, in seconds.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
# How often types that were refused are declared again: whoever served them otherwise may have left.
DECLARE_AGAIN = 10.0
FATAL = {
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.ABORTED,
}


class Session:
    """One stream."""

    def __init__(self, call: Any):
        # Bounded by what causes messages: the windows of invocations, and heartbeats.
        self.out: queue.SimpleQueue[pb.ConnectRequest | None] = queue.SimpleQueue()
        self.responses = call(iter(self.out.get, None))
        self.heard = time.monotonic()
        self.over = threading.Event()

    def put(self, **message: Any) -> None:
        self.out.put(pb.ConnectRequest(**message))

    def end(self) -> None:
        self.over.set()
        self.out.put(None)
        self.responses.cancel()

    def beat(self, interval: float, timeout: float) -> None:
        """Gives signs of life, and ends a stream that gives none."""
        while not self.over.wait(interval):
            if time.monotonic() - self.heard > timeout:
                log.warning("the kernel has said nothing for %.0f s", timeout)
                self.responses.cancel()
                return
            self.put(heartbeat=pb.WorkerHeartbeat())


class Worker:
    """Serves node types to a kernel.

    `instance` is the worker's identity over restarts: invocations of an instance that comes back are offered to it again.
    Without one a restarted process is another worker.
    """

    def __init__(self, server: str, nodes: Iterable[Node] | None = None, *, name: str = "python", instance: str | None = None,
                 concurrency: int = 8, secret: str | None = None, user: str = "1", credentials: grpc.ChannelCredentials | None = None):
        self.server, self.name, self.concurrency = server, name, concurrency
        self.nodes = {node.name: node for node in (REGISTERED.values() if nodes is None else nodes)}
        self.instance = instance or str(uuid.uuid4())
        self.secret, self.user, self.credentials = secret, user, credentials
        self.limits = pb.WorkerWelcome()
        self.invocations: dict[str, Invocation] = {}
        self.lock = threading.Lock()
        self.session: Session | None = None
        self.stopping = threading.Event()

    def run(self) -> None:
        """Serves until `stop`. Raises `Fatal` when the kernel refuses the worker for good."""
        pause = FIRST_PAUSE
        while True:
            greeted = self.connect()
            if self.stopping.is_set() and not self.invocations:
                return
            pause = FIRST_PAUSE if greeted else min(pause * 2, LONGEST_PAUSE)
            time.sleep(pause * random.uniform(0.5, 1.0))
            if self.stopping.is_set() and not self.invocations:
                return

    def stop(self) -> None:
        """Takes no further invocations; `run` returns when the last one is over."""
        self.stopping.set()
        if session := self.session:
            session.put(goodbye=pb.WorkerGoodbye())

    def connect(self) -> bool:
        """Serves over one stream until it ends; whether the kernel greeted."""
        options = [
            ("grpc.max_receive_message_length", MAX_MESSAGE),
            ("grpc.max_send_message_length", MAX_MESSAGE),
            ("grpc.enable_retries", 0),
        ]
        if self.credentials:
            channel = grpc.secure_channel(self.server, self.credentials, options)
        else:
            channel = grpc.insecure_channel(self.server, options)
        greeted = False
        with channel:
            metadata = [(identity.METADATA, identity.sign(self.secret, self.user))] if self.secret else []
            method = channel.stream_stream(
                METHOD,
                request_serializer=pb.ConnectRequest.SerializeToString,
                response_deserializer=pb.ConnectResponse.FromString,
            )
            session = Session(lambda requests: method(requests, metadata=metadata))
            try:
                session.put(hello=self.hello())
                for response in session.responses:
                    session.heard = time.monotonic()
                    said = response.WhichOneof("message")
                    if said == "welcome":
                        greeted = True
                        self.on_welcome(session, response.welcome)
                    elif said:
                        self.hear(session, said, getattr(response, said))
                log.info("the kernel ended the stream")
            except grpc.RpcError as error:
                self.complain(error)
            finally:
                session.end()
                with self.lock:
                    self.session = None
                    held = list(self.invocations.values())
                for invocation in held:
                    invocation.detach(session)
        return greeted

    def complain(self, error: Any) -> None:
        code, text = error.code(), error.details() or ""
        if code in FATAL:
            raise Fatal(f"{code.name}: {text}") from error
        if not self.stopping.is_set():
            log.warning("no stream to %s: %s %s", self.server, code.name, text)

    def hello(self) -> pb.WorkerHello:
        with self.lock:
            held = list(self.invocations)
        return pb.WorkerHello(
            worker_name=self.name,
            instance_id=self.instance,
            protocol_version=1,
            max_invocations=self.concurrency,
            held_ids=held,
        )

    def on_welcome(self, session: Session, welcome: pb.WorkerWelcome) -> None:
        log.info("connected to %s as %s", self.server, self.instance)
        self.limits = welcome
        with self.lock:
            self.session = session
            forgotten = [self.invocations.pop(name, None) for name in welcome.forgotten_ids]
            resumed = [(self.invocations.get(again.invocation_id), again.next_frame) for again in welcome.resumed]
        for invocation in filter(None, forgotten):
            invocation.on_cancel(True)
        # The declaration first: whatever follows may bring new work.
        self.declare(session)
        for invocation, next_frame in resumed:
            if invocation:
                invocation.attach(session, next_frame)
        interval, timeout = welcome.heartbeat_interval, welcome.heartbeat_timeout
        beat = threading.Thread(
            target=session.beat, args=(interval.ToTimedelta().total_seconds(), timeout.ToTimedelta().total_seconds()), daemon=True
        )
        beat.start()
        if self.stopping.is_set():
            session.put(goodbye=pb.WorkerGoodbye())

    def declare(self, session: Session) -> None:
        if not session.over.is_set():
            session.put(declaration=pb.WorkerDeclaration(node_types=[node.declared for node in self.nodes.values()]))

    def hear(self, session: Session, said: str, message: Any) -> None:
        if said == "invocation":
            self.start(session, message)
        elif said == "declared":
            refused = [declared for declared in message.types if not declared.accepted]
            for declared in refused:
                log.error("%s is refused: %s", declared.node_type, declared.reason)
            if refused:
                again = threading.Timer(DECLARE_AGAIN, self.declare, (session,))
                again.daemon = True
                again.start()
            elif message.types:
                log.info("serving %s", ", ".join(declared.node_type for declared in message.types))
        elif said in ("input", "frame_receipt", "cancel", "media_part"):
            with self.lock:
                invocation = self.invocations.get(message.invocation_id)
                if said == "cancel" and message.forgotten or said == "frame_receipt" and message.closed:
                    self.invocations.pop(message.invocation_id, None)
            if invocation is None:
                return
            if said == "input":
                invocation.on_input(message)
            elif said == "frame_receipt":
                invocation.on_receipt(message)
            elif said == "cancel":
                invocation.on_cancel(message.forgotten)
            else:
                invocation.on_part(message)

    def start(self, session: Session, message: pb.Invocation) -> None:
        node = self.nodes.get(message.node_type)
        if node is None:
            failure = pb.FrameFailure(message=f"the worker has no {message.node_type}", code="worker.unknown_type")
            session.put(frame=pb.InvocationFrame(invocation_id=message.invocation_id, ordinal=0, failure=failure))
            return
        invocation = Invocation(self, node, message)
        with self.lock:
            if message.invocation_id in self.invocations:
                return
            self.invocations[message.invocation_id] = invocation
        invocation.attach(session)
        threading.Thread(target=invocation.run, name=message.invocation_id, daemon=True).start()
