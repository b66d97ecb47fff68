"""TenantQuota: what a tenant may use."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import _check, errors
from ._html import table
from ._signature import checks_arguments
from ._types import UInt32

if TYPE_CHECKING:
    from ._core import Tenant


# The fields are those of zinc_rt/tenant.h. The extension reads all of them by name.
@dataclass(kw_only=True)
class TenantQuota:
    """What a tenant may use. A value: it counts once a tenant is given it.

    A field of `tenant.quota` may be set, too: it holds for that tenant from the next step on.
    """

    max_concurrent_slots: UInt32 = 4  # requests that run at once; further ones wait
    max_kv_pages: UInt32 = 4096  # pages of 16 tokens; pages that the prefix cache supplied are not counted
    reserved_kv_pages: UInt32 = 0  # pages that only this tenant may take
    max_context_tokens: UInt32 = 128000
    decode_tokens_per_s: float = 1000.0  # both rates are averaged over 5 s; above them, requests wait
    prefill_tokens_per_s: float = 100000.0
    weight: float = 1.0  # relative to other tenants: twice the weight, twice the share
    qos_class: Literal["interactive", "standard", "batch"] = "standard"
    isolation_group: str | None = None  # tenants with the same group share cached prefixes
    speculate: str | None = None  # "auto", "off" or "1" to "32" tokens that a step may guess; None: as the model

    def _repr_html_(self) -> str:
        return table("Quota", _values(self))

    if not TYPE_CHECKING:  # otherwise type checkers would accept an assignment to any name

        def __setattr__(self, name, value):
            kinds = _KINDS.get(name)
            if kinds is None:
                raise errors.InvalidType(f"[TenantQuota] {name} is no field; there are: {', '.join(_KINDS)}")
            if found := _check.fault(name, value, kinds):
                raise found[0](f"[TenantQuota] {found[1]}")
            super().__setattr__(name, value)


TenantQuota.__init__ = checks_arguments(TenantQuota.__init__)
_KINDS = {field.name: _check.alternatives(field.type) for field in dataclasses.fields(TenantQuota)}


class _QuotaOfTenant(TenantQuota):
    """A tenant's quota: setting a field changes the tenant's. Copies, replacements and pickles are plain values."""

    @classmethod
    def of(cls, tenant: Tenant) -> _QuotaOfTenant:
        quota = cls(**_values(tenant._quota()))
        quota.__dict__["_tenant"] = tenant
        return quota

    def __setattr__(self, name, value):
        if "_tenant" in self.__dict__:
            changed = TenantQuota(**_values(self._tenant._quota()))
            setattr(changed, name, value)
            self._tenant._set_quota(changed)
            self.__dict__.update(_values(changed))
        else:
            super().__setattr__(name, value)

    def __repr__(self) -> str:
        return repr(TenantQuota(**_values(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TenantQuota) and _values(self) == _values(other)

    def __reduce__(self):
        return _plain, (_values(self),)


def _plain(values: dict[str, Any]) -> TenantQuota:
    return TenantQuota(**values)


def _values(quota: TenantQuota) -> dict[str, Any]:
    return {name: getattr(quota, name) for name in _KINDS}


def install(tenant_class: type) -> None:
    """Gives tenants the property `quota`."""

    def get(tenant) -> TenantQuota:
        return _QuotaOfTenant.of(tenant)

    def set_(tenant, quota: TenantQuota) -> None:
        if not isinstance(quota, TenantQuota):
            raise errors.InvalidType(f"[Tenant] quota is {_check.shown(quota)}; a TenantQuota is wanted")
        tenant._set_quota(quota)

    tenant_class.quota = property(get, set_, doc="What the tenant may use; assigning, also to its fields, changes it.")
