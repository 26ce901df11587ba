"""The program's words for what is wrong with a value, in place of pydantic's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WANTED = {
    "greater_than": "a number above {gt:g}{unit}",
    "greater_than_equal": "{ge:g}{unit} or more",
    "less_than": "a number below {lt:g}{unit}",
    "less_than_equal": "{le:g}{unit} or less",
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    "int_parsing_size": "a whole number of fewer digits",
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    "string_type": "a string",
    "string_pattern_mismatch": "letters, digits and ._-, a letter or digit first",
    "string_too_long": "at most {max_length} characters",
    "literal_error": "{expected}",
    "too_short": "at least one value",
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("model_type", "model_attributes_type", "dataclass_type", "dict_type"), "an object"),
}


def wanted(fault: Mapping[str, Any], unit: str = "") -> str:
    """What a value should be, by the first of a ValidationError's faults; "" where pydantic has no words of its own."""
    return _WANTED.get(fault["type"], "").format(**fault.get("ctx", {}), unit=unit)
