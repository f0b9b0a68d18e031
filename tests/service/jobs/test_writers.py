import io
import json
import os
from pathlib import Path

import pytest

from glyphline.service.jobs.writers import JsonLinesWriter, OutputError, StreamWriter


def test_the_output_appears_when_it_is_complete(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with JsonLinesWriter(output) as writer:
        writer.write({"text": "12 €", "source": "чек.png"})
        writer.write({"text": None})
        assert not output.exists()
    assert output.read_text(encoding="utf-8") == '{"text": "12 €", "source": "чек.png"}\n{"text": null}\n'
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_an_existing_output_is_refused_before_any_work(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("old")
    with pytest.raises(OutputError, match="--overwrite"):
        JsonLinesWriter(output)
    assert output.read_text() == "old"


def test_overwriting_replaces_the_old_output_only_at_the_end(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("old")
    with JsonLinesWriter(output, overwrite=True) as writer:
        writer.write({"new": 1})
        assert output.read_text() == "old"
    assert json.loads(output.read_text()) == {"new": 1}


def test_a_stopped_job_keeps_its_rows_apart(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt), JsonLinesWriter(output) as writer:
        writer.write({"row": 1})
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == ["out.jsonl.partial"]
    assert json.loads((tmp_path / "out.jsonl.partial").read_text()) == {"row": 1}
    with JsonLinesWriter(output) as writer:
        writer.write({"row": 2})
    assert os.listdir(tmp_path) == ["out.jsonl"]
    assert json.loads(output.read_text()) == {"row": 2}


def test_a_job_that_fails_before_its_first_row_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="early"), JsonLinesWriter(tmp_path / "out.jsonl"):
        raise ValueError("early")
    assert os.listdir(tmp_path) == []


def test_an_output_that_appears_meanwhile_is_not_lost(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with pytest.raises(OutputError, match="exists already"), JsonLinesWriter(output) as writer:
        writer.write({"row": 1})
        output.write_text("other")
    assert output.read_text() == "other"
    assert (tmp_path / "out.jsonl.partial").exists()


def test_two_jobs_cannot_write_one_output(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    with JsonLinesWriter(output) as writer:
        writer.write({"row": 1})
        with pytest.raises(OutputError, match="another job"), JsonLinesWriter(output):
            pass
    assert json.loads(output.read_text()) == {"row": 1}


def test_a_link_goes_on_pointing_at_its_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "folder" / "real.jsonl")
    with JsonLinesWriter(link) as writer:
        writer.write({})
    assert link.is_symlink()
    assert (tmp_path / "folder" / "real.jsonl").read_text() == "{}\n"


@pytest.mark.parametrize(("name", "reason"), [("missing/out.jsonl", "does not exist"), (".", "not an ordinary file")])
def test_impossible_outputs_are_named(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(OutputError, match=reason):
        JsonLinesWriter(tmp_path / name, overwrite=True)


def test_devices_are_not_replaced() -> None:
    with pytest.raises(OutputError, match="not an ordinary file"):
        JsonLinesWriter(Path("/dev/null"), overwrite=True)


def test_streams_get_whole_lines_and_stay_open() -> None:
    stream = io.StringIO()
    with StreamWriter(stream) as writer:
        writer.write({"a": 1})
        assert stream.getvalue() == '{"a": 1}\n'
    assert not stream.closed
