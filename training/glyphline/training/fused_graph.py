"""The fused graph of a step-wise head: its decoder's step inside an ONNX `Loop`, made of the step's own graph.

One run of it is a whole search. Width of the beam, allowed symbols and limits are inputs, so one graph serves every
request that no lexicon or language model steers. It holds two loops, of which each run takes one: the greedy search
has nothing to sort or to reorder and needs far fewer operators. Both use one copy of the weights. The rules are those
of `glyphline.models.decoding.attention`; what the graph gives is read by `glyphline.models.decoding.fused`.

The encoder is not part of it. It keeps its own file, so that its weights, by far the most, are stored once, and that
what is only the encoder's, its int8 variant and other runtimes, goes with the fused graph as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from glyphline.models.decoding.fused import FUSED_INPUTS, fused_outputs

_FRAMES = ("memory", "keys", "lengths")
_KINDS = {
    "allowed": TensorProto.BOOL,
    "max_output_length": TensorProto.INT64,
    "beam_width": TensorProto.INT64,
    "max_alternatives": TensorProto.INT64,
    "length_penalty": TensorProto.DOUBLE,
    "symbols": TensorProto.INT64,
    "log_probabilities": TensorProto.FLOAT,
    "attention": TensorProto.FLOAT,
    "parents": TensorProto.INT64,
    "totals": TensorProto.DOUBLE,
    "live": TensorProto.BOOL,
}
_SHAPES = {
    "symbols": ["steps", "images", "slots"],
    "log_probabilities": ["steps", "rows", "symbols"],
    "attention": ["steps", "rows", "frames"],
    "parents": ["steps", "images", "slots_or_none"],
    "totals": ["steps", "images", "slots_or_none"],
    "live": ["steps", "images_or_none"],
}


class _Graph:
    """Collects the nodes of one graph. Names made here begin with a prefix of its own, so no two graphs share any."""

    def __init__(self, prefix: str, constants: dict[str, TensorProto]) -> None:
        self.prefix = prefix
        self.nodes: list[onnx.NodeProto] = []
        self.constants = constants

    def add(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:  # noqa: ANN401
        """Adds a node with one output and returns that."""
        return self.add_many(kind, inputs, [name or f"{kind.lower()}_{len(self.nodes)}"], **attributes)[0]

    def add_many(
        self,
        kind: str,
        inputs: Sequence[str],
        names: Sequence[str],
        **attributes: Any,  # noqa: ANN401
    ) -> list[str]:
        """Adds a node and returns its outputs."""
        outputs = [self.prefix + name for name in names]
        self.nodes.append(helper.make_node(kind, list(inputs), outputs, f"{outputs[0]}_node", **attributes))
        return outputs

    def constant(self, value: NDArray[Any] | np.generic | int | list[int]) -> str:
        """Returns the name of a constant, which all graphs share; plain numbers are int64."""
        array = np.asarray(value, dtype=None if isinstance(value, np.ndarray | np.generic) else np.int64)
        name = f"fused.{array.dtype}_{'x'.join(map(str, array.shape))}_{'_'.join(map(str, array.ravel().tolist()))}"
        self.constants.setdefault(name, numpy_helper.from_array(array, name))
        return name


_MINUS_INFINITY = np.float32(-np.inf)


class _Step:
    """The decoder's step, to be put into the loops.

    Args:
        model: The graph of the step.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self.nodes = list(graph.node)
        self.weights = list(graph.initializer)
        inputs = {each.name: each.type for each in graph.input}
        self.frames = [name for name in _FRAMES if name in inputs]
        self.states = [name for name in inputs if name not in (*_FRAMES, "symbols")]
        self.types = {name: inputs[name] for name in (*self.frames, *self.states)}
        outputs = {each.name: each.type for each in graph.output}
        self.outputs = ["log_probabilities", *(["attention"] if "attention" in outputs else [])]
        self.symbols = outputs["log_probabilities"].tensor_type.shape.dim[-1].dim_value

    def place(self, outer: _Graph, body: _Graph, names: dict[str, str]) -> dict[str, str]:
        """Puts the step into the body of a loop, and into the graph around it what is the same at every step.

        Args:
            outer: The graph around the loop.
            body: The body.
            names: What stands for each input of the step, and for the initial value of each state.

        Returns:
            What stands for each tensor of the step.
        """
        known = dict(names)
        steady = {each.name for each in self.weights} | {names[frames] for frames in self.frames}
        steady |= {names[f"initial_{state}"] for state in self.states}
        for node in self.nodes:
            inputs = [known.get(name, name) for name in node.input]
            if node.op_type == "Shape" and node.input[0] in self.states:
                inputs = [names[f"initial_{node.input[0]}"]]  # states keep their shape
            same = steady.issuperset(name for name in inputs if name)
            graph = outer if same else body
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            del copy.input[:], copy.output[:]
            copy.input.extend(inputs)
            copy.output.extend(f"{graph.prefix}step.{name}" for name in node.output)
            copy.name = f"{copy.output[0]}_node"
            graph.nodes.append(copy)
            known.update(zip(node.output, copy.output, strict=True))
            if same:
                steady.update(copy.output)
        return known


def fuse(step: onnx.ModelProto) -> onnx.ModelProto:
    """Makes the fused graph of a decoder's step.

    Args:
        step: `decoder_step.onnx` of a bundle.

    Returns:
        The graph: its inputs are what the encoder gives and `FUSED_INPUTS`, its outputs those of `FusedOutput`.
    """
    parts = _Step(step)
    constants: dict[str, TensorProto] = {}
    main = _Graph("", constants)
    greedy, beam = _Graph("greedy.", constants), _Graph("beam.", constants)
    names = fused_outputs(looks_at_frames=bool(parts.frames))
    branches = {
        "then_branch": helper.make_graph([], "greedy", [], _list_outputs(names, _add_greedy(parts, greedy))),
        "else_branch": helper.make_graph([], "beam", [], _list_outputs(names, _BeamSearch(parts, beam).add())),
    }
    branches["then_branch"].node.extend(greedy.nodes)
    branches["else_branch"].node.extend(beam.nodes)
    narrow = main.add("Equal", "beam_width", main.constant(1))
    main.add_many("If", [narrow], names, **branches)
    inputs = [helper.make_value_info(name, parts.types[name]) for name in parts.frames]
    inputs += [helper.make_value_info(f"initial_{name}", parts.types[name]) for name in parts.states]
    for name in FUSED_INPUTS:
        inputs.append(helper.make_tensor_value_info(name, _KINDS[name], [parts.symbols] if name == "allowed" else []))
    outputs = []
    for name in names:
        shape: list[str | int] = [parts.symbols if axis == "symbols" else axis for axis in _SHAPES[name]]
        outputs.append(helper.make_tensor_value_info(name, _KINDS[name], shape))
    graph = helper.make_graph(main.nodes, "fused", inputs, outputs, [*parts.weights, *constants.values()])
    model = helper.make_model(graph, opset_imports=list(step.opset_import), ir_version=step.ir_version)
    onnx.checker.check_model(model, full_check=True)
    return model


def write_fused(step: Path, path: Path) -> None:
    """Writes the fused graph of the step that is in a file."""
    onnx.save(fuse(onnx.load(step)), path)


def _list_outputs(names: Sequence[str], found: dict[str, str]) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(found[name], _KINDS[name], None) for name in names]


def _add_loop(
    graph: _Graph,
    body: _Graph,
    state: Mapping[str, tuple[str, str, int]],
    going: str,
    scanned: Mapping[str, tuple[str, int]],
) -> dict[str, str]:
    """Adds a loop of at most one step more than the longest text has symbols.

    Args:
        graph: Where the loop goes.
        body: Its nodes.
        state: Of each tensor that steps hand on: its first value, its next one in the body, and its type. The body
            finds the present one by its name.
        going: Tells in the body whether there is another step.
        scanned: What every step gives: its name in the body, and its type.

    Returns:
        The name in the graph of what all steps gave.
    """
    numbers = {"step_number": TensorProto.INT64, "was_going": TensorProto.BOOL}
    inputs = [helper.make_tensor_value_info(body.prefix + name, kind, []) for name, kind in numbers.items()]
    inputs += [helper.make_tensor_value_info(body.prefix + name, kind, None) for name, (_, _, kind) in state.items()]
    outputs = [helper.make_tensor_value_info(going, TensorProto.BOOL, [])]
    following = [(name, kind) for _, name, kind in state.values()]
    outputs += [helper.make_tensor_value_info(name, kind, None) for name, kind in [*following, *scanned.values()]]
    made = helper.make_graph(body.nodes, body.prefix.strip("."), inputs, outputs)
    most = graph.add("Add", "max_output_length", graph.constant(1))
    first = [most, graph.constant(np.array(True)), *(initial for initial, _, _ in state.values())]
    names = [f"last_{name}" for name in state] + [f"all_{name}" for name in scanned]
    found = graph.add_many("Loop", first, names, body=made)
    return dict(zip(scanned, found[len(state) :], strict=True))


def _carry(parts: _Step, initial: dict[str, str], following: dict[str, str]) -> dict[str, Any]:
    """Returns the decoder's state as `_add_loop` takes it."""
    kinds = {name: parts.types[name].tensor_type.elem_type for name in parts.states}
    return {name: (initial[f"initial_{name}"], following[name], kinds[name]) for name in parts.states}


def _add_greedy(parts: _Step, graph: _Graph) -> dict[str, str]:
    """Adds the greedy search; returns the name of each output of the fused graph."""
    body = _Graph("greedy.body.", graph.constants)
    count = graph.add("Shape", f"initial_{parts.states[0]}", start=0, end=1)
    first = graph.add("Expand", graph.constant(parts.symbols), count)
    unended = graph.add("Expand", graph.constant(np.array(False)), count)

    here = {name: name for name in parts.frames} | {f"initial_{name}": f"initial_{name}" for name in parts.states}
    here |= {name: body.prefix + name for name in ("symbols", *parts.states)}
    step = parts.place(graph, body, here)
    possible = body.add("Where", "allowed", step["log_probabilities"], body.constant(_MINUS_INFINITY))
    symbols = body.add("ArgMax", possible, axis=1, keepdims=0)
    ended = body.add("Or", body.prefix + "ended", body.add("Equal", symbols, body.constant(0)))
    all_ended = body.add("ReduceMin", body.add("Cast", ended, to=TensorProto.INT32), keepdims=0)
    going = body.add("Equal", all_ended, body.constant(np.int32(0)))
    following = {name: step[f"next_{name}"] for name in parts.states}
    state = {"symbols": (first, symbols, TensorProto.INT64), "ended": (unended, ended, TensorProto.BOOL)}
    scanned = {"symbols": (body.add("Identity", symbols), TensorProto.INT64)}
    scanned |= {name: (step[name], TensorProto.FLOAT) for name in parts.outputs}
    found = _add_loop(graph, body, state | _carry(parts, here, following), going, scanned)
    found["symbols"] = graph.add("Unsqueeze", found["symbols"], graph.constant([2]))
    none = np.zeros((0, 0, 0))
    found["parents"] = graph.add("Identity", graph.constant(none.astype(np.int64)))
    found["totals"] = graph.add("Identity", graph.constant(none))
    found["live"] = graph.add("Identity", graph.constant(np.zeros((0, 0), dtype=np.bool_)))
    return found


class _BeamSearch:
    """The beam search; its parts in the order in which a step runs them."""

    def __init__(self, parts: _Step, graph: _Graph) -> None:
        """Adds what is the same at every step: shapes, the numbers of images and slots, and what is allowed."""
        self._parts = parts
        self._graph = graph
        self._body = _Graph("beam.body.", graph.constants)
        self._constant = constant = graph.constant
        self._minus_infinity = constant(np.float64(-np.inf))
        self._zero = constant(np.float64(0))
        self._others = constant(parts.symbols - 1)  # all symbols but the end
        self._count = graph.add("Shape", f"initial_{parts.states[0]}", start=0, end=1)
        self._width = graph.add("Reshape", "beam_width", constant([1]))
        self._most = graph.add("Reshape", "max_alternatives", constant([1]))
        self._slots = graph.add("Range", constant(0), "beam_width", constant(1))
        images = graph.add("Range", constant(0), graph.add("Squeeze", self._count), constant(1))
        self._flat = constant([-1])
        self._by_slot = graph.add("Concat", self._count, self._width, axis=0)  # shape (images, slots)
        self._by_symbol = graph.add("Concat", self._count, self._width, self._flat, axis=0)  # (images, slots, symbols)
        self._by_image = graph.add("Concat", self._count, self._flat, axis=0)
        self._first_rows = graph.add("Mul", images, "beam_width")  # (images), the first row of each
        self._first_rows_column = graph.add("Unsqueeze", self._first_rows, constant([1]))
        repeated = graph.add("Expand", graph.add("Unsqueeze", images, constant([1])), self._by_slot)
        self._image_of = graph.add("Reshape", repeated, self._flat)  # (rows), the image of each
        self._last_slot = graph.add("Equal", self._slots, graph.add("Sub", "beam_width", constant(1)))
        smallest = graph.add("ReduceMin", graph.add("Cast", "allowed", to=TensorProto.INT32), keepdims=0)
        self._unrestricted = graph.add("Equal", smallest, constant(np.int32(1)))
        self._even = graph.add("Where", "allowed", self._zero, self._minus_infinity)
        longest = graph.add("Cast", graph.add("Add", "max_output_length", constant(1)), to=TensorProto.DOUBLE)
        self._longest = graph.add("Pow", longest, "length_penalty")

    def add(self) -> dict[str, str]:
        """Adds the loop; returns the name of each output of the fused graph."""
        parts, graph, body, constant = self._parts, self._graph, self._body, self._constant
        here = {name: graph.add("Gather", name, self._image_of) for name in parts.frames}
        for name in parts.states:
            here[f"initial_{name}"] = graph.add("Gather", f"initial_{name}", self._image_of)
        here |= {name: body.prefix + name for name in ("symbols", *parts.states)}
        totals, greedy, best, live = (body.prefix + name for name in ("totals", "greedy", "best", "live"))

        step = parts.place(graph, body, here)
        values = self._restrict(step["log_probabilities"])
        by_symbol = body.add("Reshape", values, self._by_symbol)
        reached = body.add("Add", body.add("Unsqueeze", totals, constant([2])), by_symbol)  # (images, slots, symbols)
        number = body.add("Cast", body.add("Add", body.prefix + "step_number", constant(1)), to=TensorProto.DOUBLE)
        best_now = self._collect(reached, number, best)
        chosen, next_totals, next_greedy = self._choose(reached, values, greedy)
        parents = body.add("Div", chosen, self._others)
        symbols = body.add("Sub", chosen, body.add("Mul", parents, self._others))
        symbols = body.add("Add", symbols, constant(1))
        origin = body.add("Reshape", body.add("Add", parents, self._first_rows_column), self._flat)
        following = {name: body.add("Gather", step[f"next_{name}"], origin) for name in parts.states}
        next_live = self._judge(next_totals, number, best_now, live)
        any_live = body.add("ReduceMax", body.add("Cast", next_live, to=TensorProto.INT32), keepdims=0)
        going = body.add("Equal", any_live, constant(np.int32(1)))

        # The search begins with one empty text an image; the other slots are empty.
        one = graph.add("Where", graph.add("Equal", self._slots, constant(0)), self._zero, self._minus_infinity)
        none = graph.add("Expand", self._minus_infinity, graph.add("Concat", self._count, self._most, axis=0))
        start = graph.add("Expand", constant(parts.symbols), graph.add("Mul", self._count, self._width))
        everywhere = graph.add("Expand", constant(np.array(True)), self._count)
        state = {
            "symbols": (start, body.add("Reshape", symbols, self._flat), TensorProto.INT64),
            "totals": (graph.add("Expand", one, self._by_slot), next_totals, TensorProto.DOUBLE),
            "greedy": (graph.add("Expand", constant(0), self._count), next_greedy, TensorProto.INT64),
            "best": (none, best_now, TensorProto.DOUBLE),
            "live": (everywhere, next_live, TensorProto.BOOL),
        }
        scanned = {
            "symbols": (symbols, TensorProto.INT64),
            "parents": (parents, TensorProto.INT64),
            "totals": (body.add("Identity", totals), TensorProto.DOUBLE),
            "live": (body.add("Identity", live), TensorProto.BOOL),
        }
        scanned |= {name: (step[name], TensorProto.FLOAT) for name in parts.outputs}
        return _add_loop(graph, body, state | _carry(parts, here, following), going, scanned)

    def _restrict(self, log_probabilities: str) -> str:
        """Leaves only what is allowed (rows, symbols), as `restrict` does it."""
        body = self._body
        values = body.add("Cast", log_probabilities, to=TensorProto.DOUBLE)
        values = body.add("Where", "allowed", values, self._minus_infinity)
        peak = body.add("ReduceMax", values, self._flat, keepdims=1)
        impossible = body.add("Equal", peak, self._minus_infinity)
        values = body.add("Where", impossible, self._even, values)
        peak = body.add("Where", impossible, self._zero, peak)
        sums = body.add("ReduceSum", body.add("Exp", body.add("Sub", values, peak)), self._flat, keepdims=1)
        norm = body.add("Add", body.add("Log", sums), peak)
        return body.add("Sub", values, body.add("Where", self._unrestricted, self._zero, norm))

    def _collect(self, reached: str, number: str, best: str) -> str:
        """Returns the best scores of all texts that ended so far (images, alternatives)."""
        body = self._body
        ending = body.add("Gather", reached, self._constant(0), axis=2)
        scores = body.add("Div", ending, body.add("Pow", number, "length_penalty"))
        candidates = body.add("Concat", best, scores, axis=1)
        return body.add_many("TopK", [candidates, self._most], ["best_now", "best_places"], axis=1)[0]

    def _choose(self, reached: str, values: str, greedy: str) -> tuple[str, str, str]:
        """Chooses the best continuations, and the greedy path's in the place of the worst if need be.

        Returns:
            The continuations (images, slots), their log-probabilities, and the slot of the greedy path (images), -1
            once it has ended.
        """
        body, constant = self._body, self._constant
        continued = body.add("Slice", reached, constant([1]), constant([2**31]), constant([2]))
        continued = body.add("Reshape", continued, self._by_image)
        chosen = body.add_many("TopK", [continued, self._width], ["chosen_values", "chosen"], axis=1)[1]
        row = body.add("Add", body.add("Max", greedy, constant(0)), self._first_rows)
        symbol = body.add("ArgMax", body.add("Gather", values, row), axis=1, keepdims=0)
        unended = body.add("GreaterOrEqual", greedy, constant(0))
        follows = body.add("And", unended, body.add("Greater", symbol, constant(0)))
        wanted = body.add("Add", body.add("Mul", greedy, self._others), symbol)
        wanted = body.add("Unsqueeze", body.add("Sub", wanted, constant(1)), constant([1]))
        found = body.add("Cast", body.add("Equal", chosen, wanted), to=TensorProto.INT32)
        absent = body.add("Equal", body.add("ReduceMax", found, constant([1]), keepdims=0), constant(np.int32(0)))
        lost = body.add("Unsqueeze", body.add("And", follows, absent), constant([1]))
        chosen = body.add("Where", body.add("And", lost, self._last_slot), wanted, chosen)
        present = body.add("Cast", body.add("Equal", chosen, wanted), to=TensorProto.INT32)
        slot = body.add("ArgMax", present, axis=1, keepdims=0)
        next_totals = body.add("GatherElements", continued, chosen, axis=1)
        return chosen, next_totals, body.add("Where", follows, slot, constant(-1))

    def _judge(self, totals: str, number: str, best: str, live: str) -> str:
        """Tells which images go on: where a text may become the best, or is about to get among the alternatives."""
        body, constant = self._body, self._constant
        leader = body.add("ReduceMax", totals, constant([1]), keepdims=0)
        first = body.add("ReduceMax", best, constant([1]), keepdims=0)
        last = body.add("ReduceMin", best, constant([1]), keepdims=0)
        after = body.add("Pow", body.add("Add", number, constant(np.float64(1))), "length_penalty")
        hopeful = body.add("Greater", body.add("Div", leader, self._longest), first)
        near = body.add("Greater", body.add("Div", leader, after), last)
        return body.add("And", live, body.add("Or", hopeful, near))
