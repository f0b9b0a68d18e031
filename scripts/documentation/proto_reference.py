"""The reference of a gRPC API: Markdown from the descriptor of a .proto file and the comments in it."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import grpc_tools
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from google.rpc import status_pb2
from grpc_tools import protoc
from markdown_text import escape, paragraphs, table

__all__ = ["describe", "render"]

# Numbers of fields in descriptor.proto, of which the place of a comment is made up.
_PACKAGE, _MESSAGE, _ENUM, _SERVICE = 2, 4, 5, 6
_FIELD, _NESTED, _NESTED_ENUM, _ONEOF = 2, 3, 4, 8
_METHOD = _VALUE = 2

_Place = tuple[int, ...]


def describe(proto: Path, root: Path) -> FileDescriptorProto:
    """Compiles a .proto file to its descriptor, comments included.

    Args:
        proto: The file.
        root: Folder that its imports start from.

    Raises:
        ValueError: If it does not compile; protoc has said why.
    """
    includes = [root, Path(grpc_tools.__file__).parent / "_proto", Path(str(status_pb2.__file__)).parents[2]]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "descriptors"
        options = ["--include_source_info", f"--descriptor_set_out={output}"]
        if protoc.main(["protoc", *(f"-I{include}" for include in includes), *options, str(proto)]):
            raise ValueError(f"{proto} does not compile")
        return FileDescriptorSet.FromString(output.read_bytes()).file[0]


def render(file: FileDescriptorProto, title: str) -> str:
    """Writes the reference of an API.

    Args:
        file: Descriptor with comments.
        title: Heading of the page.

    Returns:
        Markdown: what the file says of itself, its services, its messages, its enumerations.
    """
    return _Writer(file).page(title)


@dataclass(frozen=True)
class _Writer:
    """Writes the parts of one file."""

    file: FileDescriptorProto

    def page(self, title: str) -> str:
        """The whole page."""
        parts = [f"# {title}\n", f"Package `{self.file.package}`.\n", self._comment((_PACKAGE,))]
        for number, service in enumerate(self.file.service):
            parts += self._service(service, (_SERVICE, number))
        parts.append("## Messages\n")
        for number, message in enumerate(self.file.message_type):
            parts += self._message(message, (_MESSAGE, number), message.name)
        if self.file.enum_type:
            parts.append("## Enumerations\n")
        for number, enum in enumerate(self.file.enum_type):
            parts += self._enum(enum, (_ENUM, number), enum.name)
        return "\n".join(part for part in parts if part)

    def _comment(self, place: _Place) -> str:
        """What is written above something, as Markdown; empty where nothing is."""
        found = [each.leading_comments for each in self.file.source_code_info.location if tuple(each.path) == place]
        text = dedent(found[0]).strip() if found else ""
        # A list needs an empty line before it, which comments do without.
        return "".join(f"{_with_list(_escape_list(part))}\n\n" for part in paragraphs(text)).removesuffix("\n")

    def _service(self, service: ServiceDescriptorProto, place: _Place) -> list[str]:
        parts = [f"## {service.name}\n", self._comment(place)]
        for number, method in enumerate(service.method):
            parts.append(f"### {method.name} {{ #{_anchor(f'{service.name}-{method.name}')} }}\n")
            parts.append(f"`/{self.file.package}.{service.name}/{method.name}`: {self._signature(method)}\n")
            parts.append(self._comment((*place, _METHOD, number)))
        return parts

    def _signature(self, method: MethodDescriptorProto) -> str:
        sent, got = self._link(method.input_type), self._link(method.output_type)
        many = "a stream of "
        return f"{many if method.client_streaming else ''}{sent} → {many if method.server_streaming else ''}{got}"

    def _message(self, message: DescriptorProto, place: _Place, name: str) -> list[str]:
        parts = [f"### {name} {{ #{_anchor(name)} }}\n", self._comment(place)]
        if message.field:
            rows = [self._row(message, number, place) for number in range(len(message.field))]
            parts.append(table(("field", "type", "what it is", "no."), rows))
        parts += self._choices(message, place)
        for number, nested in enumerate(message.nested_type):
            parts += self._message(nested, (*place, _NESTED, number), f"{name}.{nested.name}")
        for number, enum in enumerate(message.enum_type):
            parts += self._enum(enum, (*place, _NESTED_ENUM, number), f"{name}.{enum.name}")
        return parts

    def _row(self, message: DescriptorProto, number: int, place: _Place) -> tuple[str, str, str, str]:
        field = message.field[number]
        kind = self._type(field)
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            kind = f"repeated {kind}"
        elif field.proto3_optional:
            kind = f"optional {kind}"
        elif field.HasField("oneof_index"):
            kind = f"{kind}, one of `{message.oneof_decl[field.oneof_index].name}`"
        return f"`{field.name}`", kind, self._comment((*place, _FIELD, number)), str(field.number)

    def _choices(self, message: DescriptorProto, place: _Place) -> list[str]:
        """What is said of the groups of which one field may be set; those that `optional` makes are no groups."""
        made = {field.oneof_index for field in message.field if field.proto3_optional}
        return [
            f"`{choice.name}`: {self._comment((*place, _ONEOF, number))}"
            for number, choice in enumerate(message.oneof_decl)
            if number not in made
        ]

    def _enum(self, enum: EnumDescriptorProto, place: _Place, name: str) -> list[str]:
        rows = [
            (f"`{value.name}`", self._comment((*place, _VALUE, number)), str(value.number))
            for number, value in enumerate(enum.value)
        ]
        return [
            f"### {name} {{ #{_anchor(name)} }}\n",
            self._comment(place),
            table(("value", "what it is", "no."), rows),
        ]

    def _type(self, field: FieldDescriptorProto) -> str:
        if field.type_name:
            return self._link(field.type_name)
        return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()

    def _link(self, type_name: str) -> str:
        """A type of this file is a link, any other its full name."""
        name = type_name.removeprefix(".")
        own = name.removeprefix(f"{self.file.package}.")
        return f"`{name}`" if own == name else f"[{own}](#{_anchor(own)})"


def _anchor(name: str) -> str:
    return name.lower().replace(".", "-")


def _escape_list(text: str) -> str:
    """Escapes a comment's paragraph, but for the stars that make a list of it."""
    return re.sub(r"^(\s*)\\\*(\s)", r"\1-\2", escape(text), flags=re.MULTILINE)


def _with_list(text: str) -> str:
    """Puts an empty line before a list, and its items to the margin."""
    before, mark, rest = text.partition("\n  - ")
    if not mark:
        return text
    return f"{before}\n\n" + dedent(f"  - {rest}")
