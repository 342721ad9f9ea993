"""Kubernetes resource.Quantity, exactly: text in, whole units or thousandths out, rounded up as the scheduler does.

Which unit a resource is counted in (cpu in thousandths, the rest in whole units) is the caller's matter. Source:
apimachinery pkg/api/resource/quantity.go.
"""

import re
from functools import lru_cache

INT64_MAX = (1 << 63) - 1
_GRAMMAR = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]+))?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FAR = 64  # beyond ten to this power every int64 is exceeded, below its inverse every number rounds to one unit
_SHOWN = 40  # characters of a bad quantity that a message repeats


@lru_cache(maxsize=1 << 16, typed=True)
def value(text: str | int | float) -> int:
    """The quantity in whole units, rounded up (away from zero, as upstream's `Value()`).

    Numbers are taken as YAML and JSON write them. A quantity beyond the range of int64 is its nearest end.
    Raises ValueError, with one line, for what is not a quantity.
    """
    return _scaled(text, 0)


@lru_cache(maxsize=1 << 16, typed=True)
def milli_value(text: str | int | float) -> int:
    """The quantity in thousandths, rounded up, as upstream's `MilliValue()`; otherwise as `value`."""
    return _scaled(text, 3)


def written(amount: int, *, milli: bool = False, binary: bool = False) -> str:
    """An amount as Kubernetes writes it, exactly: thousandths (`milli`) as `1500m`, bytes (`binary`) as `512Mi`."""
    if milli:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if binary and amount:
        for suffix, two in reversed(_BINARY.items()):
            if amount % (1 << two) == 0:
                return f"{amount >> two}{suffix}"
    return str(amount)


def _scaled(text: str | int | float, places: int) -> int:
    """ceil(|quantity| * 10**places) with the quantity's sign, within int64."""
    negative, digits, ten, two = _parse(text)
    ten += places
    if digits == 0:
        return 0
    if ten > _FAR:
        magnitude = INT64_MAX
    elif ten >= 0:
        magnitude = (digits << two) * 10**ten
    elif -ten > _FAR + len(str(digits)):
        magnitude = 1
    else:
        magnitude = -(-(digits << two) // 10**-ten)
    magnitude = min(magnitude, INT64_MAX)
    return -magnitude if negative else magnitude


def _parse(text: str | int | float) -> tuple[bool, int, int, int]:
    """(negative, digits, power of ten, power of two): the quantity is digits * 10**ten * 2**two."""
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise ValueError(f"not a quantity: {_shown(text)}")
    match = _GRAMMAR.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"not a quantity: {_shown(text)} (a number and a suffix: n u m k M G T P E, Ki to Ei, or e3)")
    sign, whole, fraction, suffix, exponent = match.groups()
    fraction = fraction or ""
    if not whole and not fraction:
        raise ValueError(f"not a quantity: {_shown(text)} (no digits)")
    if len(whole) + len(fraction) > 1000:
        raise ValueError(f"not a quantity: {_shown(text)} (too many digits)")
    if exponent is not None:
        # int32 upstream; only its size matters here, so the digits of an absurd one need not be computed
        ten = int(exponent) if len(exponent) < 12 else (-(1 << 31) if exponent[0] == "-" else 1 << 31)
    else:
        ten = _DECIMAL.get(suffix or "", 0)
    return sign == "-", int(whole + fraction), ten - len(fraction), _BINARY.get(suffix or "", 0)


def _shown(text: object) -> str:
    shown = repr(text)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
