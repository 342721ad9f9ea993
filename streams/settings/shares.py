"""Settings of what one namespace may have of a site."""

from pydantic import Field

from underhost.schemas.shares import Shares
from underhost.streams.settings.group import SettingsGroup

_DEFAULT = Shares()


class ShareSettings(SettingsGroup):
    """The most that one namespace may have of the site; a finding of rule `Tenant` names who asks for more."""

    terms: int = Field(default=_DEFAULT.terms, ge=1)
    """Terms between pods, and spread constraints, of one pod that count; those after them are left out of account."""
    drs_rules: int = Field(default=_DEFAULT.drs_rules, ge=1)
    """DRS rules in a vSphere cluster."""
    drs_edits: int = Field(default=_DEFAULT.drs_edits, ge=1)
    """Rules changed in a vSphere cluster in one hour. Namespaces take turns within `drsRules.editsPerMinute`."""
    moves: int = Field(default=_DEFAULT.moves, ge=1)
    """vMotions for its findings in one hour. Namespaces take turns within `moves.perMinute`."""
    findings: int = Field(default=_DEFAULT.findings, ge=1)
    """Open findings, the gravest first."""
    alerts: int = Field(default=_DEFAULT.alerts, ge=1)
    """Findings that fire at each receiver at one time."""
    events: int = Field(default=_DEFAULT.events, ge=1)
    """Events told in one minute."""
    owner: int = Field(default=_DEFAULT.owner, ge=1, le=100)
    """Percent of `drsRules` and of `findings` that one owner in it (a Deployment, say) may have."""
