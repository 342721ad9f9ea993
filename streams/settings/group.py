"""What every group of settings has in common."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class SettingsGroup(BaseModel):
    """Frozen, in camelCase outside; unknown keys are refused, and what was given is in no error's text."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True
    )
