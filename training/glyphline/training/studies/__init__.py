"""Studies: small measurements that show why recurrent networks are built, and their gates opened, as they are here."""

from glyphline.training.studies.registry import find_study, study_names
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell
from glyphline.training.studies.write import Outcome, run_study

__all__ = ["Outcome", "Study", "StudyOptions", "Table", "Tell", "find_study", "run_study", "study_names"]
