"""Node types from functions: `@node` reads the signature of a function, and `Node` says what it declares and how to call it.

* a function is called once for each item and returns its result;
* a generator yields: each yield is an item of its own, or a piece of one value with `correlation="chunk"`;
* a function with a `Stream[...]` parameter reads that input value by value;
* each of them may be `async`.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from typing import Any, Callable, Generic, Iterator, Literal, Mapping, TypeVar, Union

from atelier_worker._proto.atelier.kernel.v1 import node_service_pb2 as types_pb
from atelier_worker._proto.atelier.kernel.v1 import worker_service_pb2 as pb
from atelier_worker.values import Media, to_value, type_of

T = TypeVar("T")
KINDS = {
    "single": pb.OUTPUT_CORRELATION_KIND_SINGLE,
    "forward": pb.OUTPUT_CORRELATION_KIND_FORWARD,
    "chunk": pb.OUTPUT_CORRELATION_KIND_CHUNK,
    "iteration": pb.OUTPUT_CORRELATION_KIND_ITERATION,
    "aggregate": pb.OUTPUT_CORRELATION_KIND_AGGREGATE,
}


class Stream(Generic[T]):
    """A streamed input, as an annotation: the function gets an iterator over its values."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError

    def __aiter__(self):
        raise NotImplementedError

    def items(self) -> Iterator[Any]:
        """Values with the handles of what they belong to, for `ctx.forward` and `ctx.drop`."""
        raise NotImplementedError


class Context:
    """What a node reaches while it runs. A parameter that is annotated with it, or called `ctx`, gets one."""

    job_id: str
    node_id: str
    node_type: str
    invocation_key: str
    attempt: int

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled."""
        raise NotImplementedError


class Outputs(dict):
    """Values by output."""

    artifact = False


def outputs(**values: Any) -> Outputs:
    """A result, or a yield, with several outputs."""
    return Outputs(values)


def artifact(**values: Any) -> Outputs:
    """A yield that is a whole artifact: kept, numbered and saved by itself. Its outputs are among the `artifacts` of the node."""
    made = Outputs(values)
    made.artifact = True
    return made


class Node:
    """A node type and the function that serves it."""

    def __init__(self, function: Callable[..., Any], declared: pb.WorkerNodeType, streams: list[str], context: str | None):
        self.function, self.declared = function, declared
        self.streams, self.context = streams, context
        self.name = declared.node_type.node_type
        self.outputs = [output.name for output in declared.node_type.outputs]
        self.inputs = [prop.name for prop in declared.node_type.properties]
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, for tests of it."""
        return self.function(*args, **kwargs)

    def shape(self, result: Any) -> Outputs:
        """What a function returned, or yielded, by output."""
        if isinstance(result, Outputs):
            made = result
        elif isinstance(result, Mapping) and set(result) <= set(self.outputs) and (result or len(self.outputs) != 1):
            made = Outputs(result)
        elif len(self.outputs) == 1:
            made = Outputs({self.outputs[0]: result})
        elif result is None:
            made = Outputs()
        else:
            raise TypeError(f"{self.name} has the outputs {', '.join(self.outputs)}: return a dict of them")
        unknown = [name for name in made if name not in self.outputs]
        if unknown and not self.declared.dynamic_outputs:
            raise TypeError(f"{self.name} has no output {unknown[0]}")
        if made.artifact and not set(made) & set(self.declared.artifact_outputs):
            raise TypeError(f"{self.name}: none of the outputs of artifact(...) is among its artifacts")
        return made


REGISTERED: dict[str, Node] = {}


def node(node_type: str, *, outputs: Mapping[str, str] | None = None, title: str = "", description: str = "",
         correlation: str | Mapping[str, str] | None = None, artifacts: typing.Sequence[str] = (), retry_safe: bool = False,
         save: bool = False, controlled: bool = False, join: bool = False, dynamic_inputs: bool = False,
         dynamic_outputs: bool = False, primary_output: str = "", register: bool = True) -> Callable[[Callable[..., Any]], Node]:
    """Makes a function a node type.

    `outputs`: types by output; default: `output` with the type that the function is annotated to return. `correlation`: how
    outputs relate to inputs, one kind for all of them or by output: `single`, `chunk`, `iteration`, `forward:INPUT`,
    `aggregate:INPUT`. `artifacts`: outputs whose yields are artifacts of their own. `retry_safe`: running it again with equal
    inputs is harmless. `save`: its artifacts are saved as assets.
    """

    def wrap(function: Callable[..., Any]) -> Node:
        made = _read(function, node_type, outputs)
        declared, kind = made.declared, made.declared.node_type
        kind.title = title or node_type.rsplit(".", 1)[-1]
        kind.description = description or inspect.getdoc(function) or ""
        kind.auto_save_asset, kind.controlled, kind.join = save, controlled, join
        kind.dynamic_inputs, kind.primary_output = dynamic_inputs, primary_output
        declared.retry_safe, declared.dynamic_outputs = retry_safe, dynamic_outputs
        declared.artifact_outputs.extend(artifacts)
        _correlate(made, correlation)
        if register:
            REGISTERED[node_type] = made
        return made

    return wrap


def _read(function: Callable[..., Any], node_type: str, outputs: Mapping[str, str] | None) -> Node:
    hints = typing.get_type_hints(function)
    kind = types_pb.NodeType(node_type=node_type)
    streams, context = [], None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = hints.get(name, Any)
        if hint is Context or name == "ctx":
            context = name
            continue
        has_default = parameter.default is not parameter.empty
        if typing.get_origin(hint) is Stream or hint is Stream:
            streams.append(name)
            hint = next(iter(typing.get_args(hint)), Any)
        ty, values = _type(hint)
        if ty == "any" and has_default and name not in hints:
            ty = type_of(parameter.default)
        prop = kind.properties.add(name=name, type=ty, required=not has_default)
        if has_default and not isinstance(parameter.default, Media):
            prop.default_value.CopyFrom(to_value(parameter.default))
        prop.values.extend(to_value(value) for value in values)
    generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if outputs is None:
        hint = hints.get("return", Any)
        if generator:
            hint = next(iter(typing.get_args(hint)), Any)
        outputs = {"output": _type(hint)[0]}
    for name, ty in outputs.items():
        kind.outputs.add(name=name, type=ty, stream=generator)
    kind.streaming_input, kind.streaming_output = bool(streams), generator
    return Node(function, pb.WorkerNodeType(node_type=kind), streams, context)


def _correlate(made: Node, correlation: str | Mapping[str, str] | None) -> None:
    kind = made.declared.node_type
    if correlation is None:
        if made.streams:
            correlation = f"forward:{made.streams[0]}" if len(made.streams) == 1 else "single"
        elif kind.streaming_output:
            correlation = "iteration"
        else:
            return
    if isinstance(correlation, str):
        correlation = {name: correlation for name in made.outputs}
    for output, said in correlation.items():
        word, _, source = said.partition(":")
        if word not in KINDS:
            raise ValueError(f"{made.name}: {word!r} is no correlation")
        group = "items" if word == "iteration" else ""
        made.declared.output_correlations.add(output=output, kind=KINDS[word], source=source, group=group)


SIMPLE = {int: "int", float: "float", str: "str", bool: "bool", bytes: "bytes", dict: "dict", list: "list", type(None): "none"}


def _type(hint: Any) -> tuple[str, tuple[Any, ...]]:
    """The type string of an annotation, and the values that it allows."""
    if hint in SIMPLE:
        return SIMPLE[hint], ()
    if isinstance(hint, type) and issubclass(hint, Media):
        return hint.kind, ()
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return type_of(args[0]), args
    if origin in (Union, types.UnionType):
        real = [arg for arg in args if arg is not type(None)]
        if len(real) == 1:
            return _type(real[0])
        return f"union[{', '.join(_type(arg)[0] for arg in real)}]", ()
    if origin in (list, tuple, set, collections.abc.Sequence):
        return (f"list[{_type(args[0])[0]}]" if args else "list"), ()
    if origin in (dict, collections.abc.Mapping):
        return "dict", ()
    return "any", ()
