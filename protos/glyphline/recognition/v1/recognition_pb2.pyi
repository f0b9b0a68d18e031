import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.rpc import status_pb2 as _status_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_LOW: _ClassVar[Priority]
    PRIORITY_NORMAL: _ClassVar[Priority]
    PRIORITY_HIGH: _ClassVar[Priority]
PRIORITY_UNSPECIFIED: Priority
PRIORITY_LOW: Priority
PRIORITY_NORMAL: Priority
PRIORITY_HIGH: Priority

class RecognizeRequest(_message.Message):
    __slots__ = ("image", "config", "reference_text", "request_id")
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_TEXT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    image: Image
    config: RecognitionConfig
    reference_text: str
    request_id: str
    def __init__(self, image: _Optional[_Union[Image, _Mapping]] = ..., config: _Optional[_Union[RecognitionConfig, _Mapping]] = ..., reference_text: _Optional[str] = ..., request_id: _Optional[str] = ...) -> None: ...

class RecognizeResponse(_message.Message):
    __slots__ = ("alternatives", "model", "model_version", "evaluation", "metadata")
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    alternatives: _containers.RepeatedCompositeFieldContainer[Alternative]
    model: str
    model_version: str
    evaluation: Evaluation
    metadata: ResponseMetadata
    def __init__(self, alternatives: _Optional[_Iterable[_Union[Alternative, _Mapping]]] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ..., evaluation: _Optional[_Union[Evaluation, _Mapping]] = ..., metadata: _Optional[_Union[ResponseMetadata, _Mapping]] = ...) -> None: ...

class Image(_message.Message):
    __slots__ = ("content",)
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    content: bytes
    def __init__(self, content: _Optional[bytes] = ...) -> None: ...

class RecognitionConfig(_message.Message):
    __slots__ = ("model", "model_version", "greedy", "beam_search", "max_alternatives", "max_output_length", "allowed_characters", "lexicon", "enable_token_details", "priority", "language_model", "length_bonus")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    GREEDY_FIELD_NUMBER: _ClassVar[int]
    BEAM_SEARCH_FIELD_NUMBER: _ClassVar[int]
    MAX_ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_CHARACTERS_FIELD_NUMBER: _ClassVar[int]
    LEXICON_FIELD_NUMBER: _ClassVar[int]
    ENABLE_TOKEN_DETAILS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_MODEL_FIELD_NUMBER: _ClassVar[int]
    LENGTH_BONUS_FIELD_NUMBER: _ClassVar[int]
    model: str
    model_version: str
    greedy: GreedyDecoder
    beam_search: BeamSearchDecoder
    max_alternatives: int
    max_output_length: int
    allowed_characters: str
    lexicon: Lexicon
    enable_token_details: bool
    priority: Priority
    language_model: LanguageModel
    length_bonus: float
    def __init__(self, model: _Optional[str] = ..., model_version: _Optional[str] = ..., greedy: _Optional[_Union[GreedyDecoder, _Mapping]] = ..., beam_search: _Optional[_Union[BeamSearchDecoder, _Mapping]] = ..., max_alternatives: _Optional[int] = ..., max_output_length: _Optional[int] = ..., allowed_characters: _Optional[str] = ..., lexicon: _Optional[_Union[Lexicon, _Mapping]] = ..., enable_token_details: bool = ..., priority: _Optional[_Union[Priority, str]] = ..., language_model: _Optional[_Union[LanguageModel, _Mapping]] = ..., length_bonus: _Optional[float] = ...) -> None: ...

class Lexicon(_message.Message):
    __slots__ = ("words", "name", "several_words")
    WORDS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEVERAL_WORDS_FIELD_NUMBER: _ClassVar[int]
    words: _containers.RepeatedScalarFieldContainer[str]
    name: str
    several_words: bool
    def __init__(self, words: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., several_words: bool = ...) -> None: ...

class LanguageModel(_message.Message):
    __slots__ = ("name", "weight")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: float
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[float] = ...) -> None: ...

class GreedyDecoder(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BeamSearchDecoder(_message.Message):
    __slots__ = ("beam_width", "length_penalty")
    BEAM_WIDTH_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    beam_width: int
    length_penalty: float
    def __init__(self, beam_width: _Optional[int] = ..., length_penalty: _Optional[float] = ...) -> None: ...

class Alternative(_message.Message):
    __slots__ = ("text", "confidence", "log_probability", "tokens", "truncated")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    LOG_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    text: str
    confidence: float
    log_probability: float
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    truncated: bool
    def __init__(self, text: _Optional[str] = ..., confidence: _Optional[float] = ..., log_probability: _Optional[float] = ..., tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., truncated: bool = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("text", "confidence", "span")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    text: str
    confidence: float
    span: Span
    def __init__(self, text: _Optional[str] = ..., confidence: _Optional[float] = ..., span: _Optional[_Union[Span, _Mapping]] = ...) -> None: ...

class Span(_message.Message):
    __slots__ = ("start", "end")
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    start: float
    end: float
    def __init__(self, start: _Optional[float] = ..., end: _Optional[float] = ...) -> None: ...

class Evaluation(_message.Message):
    __slots__ = ("edit_distance", "reference_length", "character_error_rate", "exact_match")
    EDIT_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    CHARACTER_ERROR_RATE_FIELD_NUMBER: _ClassVar[int]
    EXACT_MATCH_FIELD_NUMBER: _ClassVar[int]
    edit_distance: int
    reference_length: int
    character_error_rate: float
    exact_match: bool
    def __init__(self, edit_distance: _Optional[int] = ..., reference_length: _Optional[int] = ..., character_error_rate: _Optional[float] = ..., exact_match: bool = ...) -> None: ...

class ResponseMetadata(_message.Message):
    __slots__ = ("request_id", "queue_duration", "inference_duration", "batch_size", "execution_provider")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DURATION_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_DURATION_FIELD_NUMBER: _ClassVar[int]
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_PROVIDER_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    queue_duration: _duration_pb2.Duration
    inference_duration: _duration_pb2.Duration
    batch_size: int
    execution_provider: str
    def __init__(self, request_id: _Optional[str] = ..., queue_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., inference_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., batch_size: _Optional[int] = ..., execution_provider: _Optional[str] = ...) -> None: ...

class BatchRecognizeRequest(_message.Message):
    __slots__ = ("items", "config")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[BatchItem]
    config: RecognitionConfig
    def __init__(self, items: _Optional[_Iterable[_Union[BatchItem, _Mapping]]] = ..., config: _Optional[_Union[RecognitionConfig, _Mapping]] = ...) -> None: ...

class BatchItem(_message.Message):
    __slots__ = ("id", "image", "reference_text", "request_id", "config")
    ID_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_TEXT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    id: str
    image: Image
    reference_text: str
    request_id: str
    config: RecognitionConfig
    def __init__(self, id: _Optional[str] = ..., image: _Optional[_Union[Image, _Mapping]] = ..., reference_text: _Optional[str] = ..., request_id: _Optional[str] = ..., config: _Optional[_Union[RecognitionConfig, _Mapping]] = ...) -> None: ...

class BatchRecognizeResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[BatchItemResult]
    def __init__(self, results: _Optional[_Iterable[_Union[BatchItemResult, _Mapping]]] = ...) -> None: ...

class BatchItemResult(_message.Message):
    __slots__ = ("id", "response", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: str
    response: RecognizeResponse
    error: _status_pb2.Status
    def __init__(self, id: _Optional[str] = ..., response: _Optional[_Union[RecognizeResponse, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class StreamingRecognizeRequest(_message.Message):
    __slots__ = ("config", "item")
    CONFIG_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    config: RecognitionConfig
    item: BatchItem
    def __init__(self, config: _Optional[_Union[RecognitionConfig, _Mapping]] = ..., item: _Optional[_Union[BatchItem, _Mapping]] = ...) -> None: ...

class StreamingRecognizeResponse(_message.Message):
    __slots__ = ("result",)
    RESULT_FIELD_NUMBER: _ClassVar[int]
    result: BatchItemResult
    def __init__(self, result: _Optional[_Union[BatchItemResult, _Mapping]] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models", "next_page_token")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    next_page_token: str
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class GetModelResponse(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: Model
    def __init__(self, model: _Optional[_Union[Model, _Mapping]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("name", "version", "task", "head", "alphabet", "max_output_length", "image_height", "max_image_width", "default_decoder", "default_beam_width", "is_default", "is_latest", "execution_provider", "licence", "evaluations", "labels", "sha256")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    ALPHABET_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    IMAGE_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_IMAGE_WIDTH_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_DECODER_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_BEAM_WIDTH_FIELD_NUMBER: _ClassVar[int]
    IS_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    IS_LATEST_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_PROVIDER_FIELD_NUMBER: _ClassVar[int]
    LICENCE_FIELD_NUMBER: _ClassVar[int]
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    task: str
    head: str
    alphabet: _containers.RepeatedScalarFieldContainer[str]
    max_output_length: int
    image_height: int
    max_image_width: int
    default_decoder: str
    default_beam_width: int
    is_default: bool
    is_latest: bool
    execution_provider: str
    licence: str
    evaluations: _containers.RepeatedCompositeFieldContainer[ModelEvaluation]
    labels: _containers.RepeatedScalarFieldContainer[str]
    sha256: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., task: _Optional[str] = ..., head: _Optional[str] = ..., alphabet: _Optional[_Iterable[str]] = ..., max_output_length: _Optional[int] = ..., image_height: _Optional[int] = ..., max_image_width: _Optional[int] = ..., default_decoder: _Optional[str] = ..., default_beam_width: _Optional[int] = ..., is_default: bool = ..., is_latest: bool = ..., execution_provider: _Optional[str] = ..., licence: _Optional[str] = ..., evaluations: _Optional[_Iterable[_Union[ModelEvaluation, _Mapping]]] = ..., labels: _Optional[_Iterable[str]] = ..., sha256: _Optional[str] = ...) -> None: ...

class ModelEvaluation(_message.Message):
    __slots__ = ("data_set", "image_count", "character_error_rate", "exact_match_rate")
    DATA_SET_FIELD_NUMBER: _ClassVar[int]
    IMAGE_COUNT_FIELD_NUMBER: _ClassVar[int]
    CHARACTER_ERROR_RATE_FIELD_NUMBER: _ClassVar[int]
    EXACT_MATCH_RATE_FIELD_NUMBER: _ClassVar[int]
    data_set: str
    image_count: int
    character_error_rate: float
    exact_match_rate: float
    def __init__(self, data_set: _Optional[str] = ..., image_count: _Optional[int] = ..., character_error_rate: _Optional[float] = ..., exact_match_rate: _Optional[float] = ...) -> None: ...

class SubmitReferenceRequest(_message.Message):
    __slots__ = ("request_id", "reference_text")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_TEXT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    reference_text: str
    def __init__(self, request_id: _Optional[str] = ..., reference_text: _Optional[str] = ...) -> None: ...

class SubmitReferenceResponse(_message.Message):
    __slots__ = ("evaluation", "recognized_text", "model", "model_version")
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    RECOGNIZED_TEXT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    evaluation: Evaluation
    recognized_text: str
    model: str
    model_version: str
    def __init__(self, evaluation: _Optional[_Union[Evaluation, _Mapping]] = ..., recognized_text: _Optional[str] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ...) -> None: ...
