from glyphline.models.image import read_image
from glyphline.service.playground.examples import examples


def test_there_are_strips_of_digits_and_one_for_each_other_model() -> None:
    found = {each.name: each for each in examples()}
    assert list(found) == ["light on dark", "meter", "register", "handwriting", "words"]
    for example in found.values():
        assert read_image(example.content).height > 10
    assert [each.task for each in found.values()][:3] == ["digits"] * 3
    assert "words" in found["words"].task
    assert found["meter"].address.startswith("data:image/jpeg;base64,")
    assert found["words"].address.startswith("data:image/png;base64,")
