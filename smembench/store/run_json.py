"""run.json: the config, devices, versions and end of a run. A journal's first line is the same without the end."""

from __future__ import annotations

from codecs import BOM_UTF8
from datetime import UTC, datetime
from pathlib import Path
from reprlib import repr as shortened
from typing import Annotated, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic_core import PydanticCustomError, ValidationError

from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.model.faults import wanted
from smembench.model.measurement import moment
from smembench.store.files import read_whole

M = TypeVar("M", bound=BaseModel)


def _moment(text: str) -> str:
    try:
        if not text or 1970 <= datetime.fromisoformat(text).year <= 9998:
            return text
    except ValueError:
        pass
    raise PydanticCustomError("moment", "should be a time such as 2026-01-31T02:00:00+00:00")


Moment = Annotated[str, AfterValidator(_moment)]
"""ISO 8601, or empty."""
RUN = "run.json"
ABSENT = "absent"
"""The value of a fact that one of two runs lacks, in a difference."""
_SHORT_HASH = 12
OF_THE_END = ("resumed_with_differences", "complete", "ended_at_utc", "checksums")
"""Fields that a run has when it ends, and not when it begins."""


class Part(BaseModel):
    """Base class. Every field may be missing; unknown fields, from other versions, are kept and written back."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)

    @property
    def data(self) -> dict[str, JsonValue]:
        """Plain data for JSON: only the fields that were given."""
        return self.model_dump(mode="json", exclude_unset=True)


class Git(Part):
    """The commit of a checkout, and whether it had uncommitted changes."""

    revision: str = ""
    dirty: bool = False


class Host(Part):
    """The machine: host name and operating system."""

    name: str = ""
    system: str = ""


class StoredConfig(Part):
    """The config of a run, as stored. The keys that decide nothing here are kept unchecked."""

    name: str = ""
    threshold: float | None = None
    decide: float = 0.0
    sweep: list[dict[str, JsonValue]] = []

    @model_serializer(mode="wrap")
    def _sweeps_last(self, dump: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Keep the order of ``run.config.Config``."""
        data: dict[str, JsonValue] = dump(self)
        if "sweep" in data:
            data["sweep"] = data.pop("sweep")
        return data


class Description(Part):
    """A whole run.json.

    Attributes:
        git, host: None if unknown, ``host`` also in an anonymous run; ``git`` is of smembench's own checkout.
        kernels_git: of the checkout that holds the kernel files from outside, if that is one.
        code: hash of smembench's own files.
        kernels: hashes of the kernel files from outside, and of the arrays that launches read, by name.
        environment: settings that decide the code or its time, by variable (see ``toolchains.settings``).
        resumed_with_differences: what differed, for each time that the run was resumed with --force.
        complete: None until the run ends, False if it was cut off.
        checksums: of the CSV files beside it, by file name, as the end of the run wrote them.
    """

    schema_version: Literal[1] = 1
    run_id: str = ""
    started_at_utc: Moment = ""
    seed: int | None = None
    config: StoredConfig = StoredConfig()
    versions: dict[str, str] = {}
    git: Git | None = None
    kernels_git: Git | None = None
    code: str = ""
    kernels: dict[str, str] = {}
    environment: dict[str, str] = {}
    devices: list[DeviceInfo] = []
    host: Host | None = None
    argv: list[str] = []
    resumed_with_differences: list[list[str]] = []
    complete: bool | None = None
    ended_at_utc: str | None = None
    checksums: dict[str, str] = {}

    @property
    def deciding(self) -> dict[str, str]:
        """What decides a result besides versions and revision: files by short hashes, and settings."""
        hashes = {name: digest[:_SHORT_HASH] for name, digest in self.kernels.items()}
        files = {f"{'data' if name.endswith('.npy') else 'kernel'} file {name}": text for name, text in hashes.items()}
        return {**files, **self.environment}

    @property
    def measured_git(self) -> Git | None:
        """The checkout of what was measured: that of the kernels from outside, or smembench's own."""
        return self.kernels_git or self.git

    def device(self, name: str) -> DeviceInfo | None:
        """The device with that name; None if the run has none."""
        return next((device for device in self.devices if device.name == name), None)

    def identity(self, name: str) -> str:
        """Identity of a device among others of its model; "" if the run does not record it.

        A GPU's UUID or a CPU's host; in an anonymous run its pseudonym.
        """
        device = self.device(name)
        host = self.host.name if self.host and name == "cpu" else ""
        return (device.uuid if device else None) or host


def ahead(started: str) -> str:
    """The reason to ignore a run that claims to begin after now, in series and as the newest; "" for any other.

    The clock was wrong when it began. Taken at its word it would be the newest for years.
    """
    try:
        late = bool(started) and moment(started) > datetime.now(UTC)
    except ValueError:
        return ""
    return f"it claims to begin at {started}, after now; correct started_at_utc in its {RUN}" if late else ""


def fault(error: ValidationError) -> str:
    """The first error as one line: the path of the field and what is wrong with its value."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return f"it is not JSON ({first['ctx']['error']})"
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).removeprefix(".")
    if first["type"] == "missing":
        return f"{place} is missing"
    known = wanted(first)
    reason = f"should be {known}" if known else first["msg"].removeprefix("Input ")
    return f"{f'{place}:' if place else 'it'} {reason}, not {shortened(first['input'])}"


def read_json(path: Path, model: type[M], way_out: str) -> M | None:
    """A file of JSON; None if there is none. ``way_out`` says what to do with a damaged one.

    Raises:
        UsageError: if it cannot be read, or is not what the model describes, with the field.
    """
    try:
        return model.model_validate_json(read_whole(path).removeprefix(BOM_UTF8))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        if newer := _newer(error):
            raise UsageError(f"{path}: schema version {newer}, of a newer smembench than this: update it") from None
        raise UsageError(f"{path}: damaged: {fault(error)}; {way_out}") from None


def _newer(error: ValidationError) -> int:
    """The schema version of a file that a later version wrote; 0 if it did not."""
    versions = [one["input"] for one in error.errors(include_url=False) if one["loc"] == ("schema_version",)]
    return versions[0] if versions and isinstance(versions[0], int) and versions[0] > 1 else 0
