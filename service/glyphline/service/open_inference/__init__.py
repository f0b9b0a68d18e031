"""The Open Inference Protocol v2 beside Glyphline's own API, for clients of Triton, KServe and Seldon.

Import it only where it is served (`--open-inference`). Its messages have the protocol's own names, of which protobuf
allows each once in a process, and a program that uses both Glyphline and tritonclient has them already.
"""

from glyphline.open_inference.v2 import open_inference_pb2
from glyphline.open_inference.v2.open_inference_pb2_grpc import (
    add_GRPCInferenceServiceServicer_to_server as add_to_server,
)
from glyphline.service.open_inference.servicer import OpenInferenceServicer
from glyphline.service.open_inference.statistics import Statistics

__all__ = ["SERVICE", "OpenInferenceServicer", "Statistics", "add_to_server"]

SERVICE = open_inference_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
"""The service, for those who count its calls and name it."""
