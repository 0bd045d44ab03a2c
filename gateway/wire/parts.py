"""Content parts of a message: text joined into one string, other kinds checked and kept as they came. Pure."""

from typing import Any

from gateway.wire.checks import array, filled_text, invalid_value, mapping, missing, one_of, required_text, text

Part = dict[str, Any]

_TEXT_KEYS = {"text": "text", "refusal": "refusal"}


def content_parts(value: list[Any], param: str, allowed: tuple[str, ...]) -> tuple[str | list[Part], int, bool]:
    """Check content parts, of the ``allowed`` types.

    Returns the content to use (one string when every part is text), its characters, and whether a part is not text.
    """
    texts: list[str] = []
    is_multimodal = False
    for index, item in enumerate(array(value, param)):
        path = f"{param}[{index}]"
        part = mapping(item, path)
        if "type" not in part:
            raise missing(f"{path}.type")
        kind = one_of(part["type"], f"{path}.type", allowed)
        if kind in _TEXT_KEYS:
            texts.append(_text_of(part, _TEXT_KEYS[kind], path))
        else:
            _CHECKS[kind](part, path)
            is_multimodal = True
    return (value if is_multimodal else "\n".join(texts)), sum(map(len, texts)), is_multimodal


def _text_of(part: Part, key: str, param: str) -> str:
    if key not in part:
        raise missing(f"{param}.{key}")
    return text(part[key], f"{param}.{key}")


def _inner(part: Part, key: str, param: str) -> tuple[Part, str]:
    path = f"{param}.{key}"
    if key not in part:
        raise missing(path)
    return mapping(part[key], path), path


def _image(part: Part, param: str) -> None:
    image, path = _inner(part, "image_url", param)
    required_text(image, "url", path)
    if image.get("detail") is not None:
        one_of(image["detail"], f"{path}.detail", ("auto", "low", "high"))


def _audio(part: Part, param: str) -> None:
    audio, path = _inner(part, "input_audio", param)
    required_text(audio, "data", path)
    one_of(required_text(audio, "format", path), f"{path}.format", ("wav", "mp3"))


def _file(part: Part, param: str) -> None:
    document, path = _inner(part, "file", param)
    given = [key for key in ("file_id", "file_data", "filename") if document.get(key) is not None]
    for key in given:
        filled_text(document[key], f"{path}.{key}")
    if not {"file_id", "file_data"}.intersection(given):
        raise invalid_value(path, "give file_id or file_data")


_CHECKS = {"image_url": _image, "input_audio": _audio, "file": _file}
