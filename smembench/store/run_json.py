"""run.json: what a run was, on what it was measured, and how it ended. A journal begins with the same, but its end."""

from __future__ import annotations

from reprlib import repr as shortened

from pydantic import BaseModel, ConfigDict, Field, JsonValue, SerializerFunctionWrapHandler, model_serializer
from pydantic_core import ValidationError

from smembench.model.device import DeviceInfo

_OBJECT = ("model_type", "model_attributes_type", "dataclass_type", "dict_type")


class _Part(BaseModel):
    """A part of run.json. Every field may be missing; fields of other versions are kept and written back."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)

    @property
    def data(self) -> dict[str, JsonValue]:
        """Plain data for JSON: the fields that were given, and no others."""
        return self.model_dump(mode="json", exclude_unset=True)


class Git(_Part):
    """The checkout smembench ran from, and whether it had changes."""

    revision: str = ""
    dirty: bool = False


class Host(_Part):
    """The machine."""

    name: str = ""
    system: str = ""


class StoredConfig(_Part):
    """The config of a run as it is stored: its name and its sweeps; how long was sampled is among the other fields."""

    name: str = ""
    sweep: list[dict[str, JsonValue]] = []

    @model_serializer(mode="wrap")
    def _sweeps_last(self, dump: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """In the order of ``run.config.Config``."""
        data: dict[str, JsonValue] = dump(self)
        if "sweep" in data:
            data["sweep"] = data.pop("sweep")
        return data


class Description(_Part):
    """A whole run.json.

    ``complete`` is None until a run ends, False where it was cut off. ``git`` and ``host`` are None where they are not
    known or not told. ``resumed_with_differences``: what was another, each time that the run went on with --force.
    """

    schema_version: int = 1
    run_id: str = ""
    started_at_utc: str = ""
    seed: int | None = None
    config: StoredConfig = StoredConfig()
    versions: dict[str, str] = {}
    git: Git | None = None
    devices: list[DeviceInfo] = []
    host: Host | None = None
    argv: list[str] = []
    resumed_with_differences: list[list[str]] = []
    complete: bool | None = None
    ended_at_utc: str | None = None

    def device(self, name: str) -> DeviceInfo | None:
        """The device of that name; None where the run does not tell."""
        return next((device for device in self.devices if device.name == name), None)


def fault(error: ValidationError) -> str:
    """The first fault in one line: the field's place and what is wrong with its value."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return f"it is not JSON ({first['ctx']['error']})"
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).removeprefix(".")
    reason = "should be an object" if first["type"] in _OBJECT else first["msg"].removeprefix("Input ")
    said = f"{place}: {reason}" if place else f"it {reason}"
    return said if first["type"] == "missing" else f"{said}, not {shortened(first['input'])}"
