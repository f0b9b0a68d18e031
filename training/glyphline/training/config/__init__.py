"""The one configuration file of a training run, as TOML, section by section."""

from glyphline.training.config.base import Section
from glyphline.training.config.data import (
    BlankConfig,
    CharactersConfig,
    ComposedConfig,
    DatasetConfig,
    DrawnSetConfig,
    EvaluationSet,
    FolderSetConfig,
    ReadingsConfig,
    RealConfig,
    RenderedConfig,
    Source,
    SourceConfig,
    StripSetConfig,
    WearConfig,
    read_evaluation_sets,
)
from glyphline.training.config.look import EffectsConfig
from glyphline.training.config.loop import LoopConfig
from glyphline.training.config.network import NetworkConfig
from glyphline.training.config.run import TrainingConfig, read_config
from glyphline.training.config.texts import CasesConfig, TextsConfig
from glyphline.training.config.vocabulary import VocabularyConfig, VocabularyKind

__all__ = [
    "BlankConfig",
    "CasesConfig",
    "CharactersConfig",
    "ComposedConfig",
    "DatasetConfig",
    "DrawnSetConfig",
    "EffectsConfig",
    "EvaluationSet",
    "FolderSetConfig",
    "LoopConfig",
    "NetworkConfig",
    "ReadingsConfig",
    "RealConfig",
    "RenderedConfig",
    "Section",
    "Source",
    "SourceConfig",
    "StripSetConfig",
    "TextsConfig",
    "TrainingConfig",
    "VocabularyConfig",
    "VocabularyKind",
    "WearConfig",
    "read_config",
    "read_evaluation_sets",
]
